// Package figure draws times over sizes from reports of benchmarks: before, after
// and a reference, a panel for each pair.
//
// It reads reports of compare bench and those of RL-Kernel's benchmark
// (kind "deterministic_collectives_benchmark").
//
// The rule users break: the two reports of a pair are of the same measurement. All
// pairs are checked before anything is drawn, and one that differs in world size,
// sizes, dtype, collective, GPU or form of launch is refused.
package figure
