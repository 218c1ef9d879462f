// Package tandem is our own collectives on GPUs: the same bits on every rank,
// whatever the size, the path, the alignment, the number of blocks or the place
// of the ranks.
//
// A reduction follows the balanced tree over the ranks, as num.Balanced: n ranks
// split at the largest power of two below n. The kernels are in hw/kernels; here
// is what the host decides for a call (plan.go, by the thresholds of table.json),
// how it says so (engine.go, layout.go, types.go) and what it makes of a call that
// ended badly (verdict.go).
//
// Every launch is cooperative, so that a rank's blocks run all at once or not at
// all. On an H200 that costs 0.35 us a call, which a GPU with one rank could save:
// a grid there is at most half of what fits, so that two teams' calls fit side by
// side. Programmatic dependent launch was measured there and gains nothing.
//
// The rule users break: everything a call's launch depends on must be the same
// on all ranks. Never look at an address, or at one GPU, to choose a path.
package tandem
