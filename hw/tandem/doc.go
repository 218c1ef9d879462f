// Package tandem is our own collectives on GPUs: the same bits on every rank,
// whatever the size, the path, the alignment, the number of blocks or the place
// of the ranks.
//
// A reduction follows the balanced tree over the ranks, as num.Balanced: n ranks
// split at the largest power of two below n. The kernels are in hw/kernels; here
// is what the host decides for a call (plan.go), how it says so (args.go,
// layout.go) and what it makes of a call that ended badly (verdict.go).
//
// The rule users break: everything a call's launch depends on must be the same
// on all ranks. Never look at an address, or at one GPU, to choose a path.
package tandem
