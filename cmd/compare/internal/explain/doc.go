// Package explain turns plans into words: what each CTA does and why, what
// stays unwritten and why, what it costs, and what changed between two plans.
//
// CTAs that do alike are told once, as are the ranks of a CTA. The rule users
// break: counts are elements, and a plan's cost is that of its slowest rank.
package explain
