// Package cascade is NVSHMEM's all-reduce as kernels of our own: its split over
// thread blocks, the selection in each, the cascade of multicast words with the
// holes it leaves, and the segment, exchange and line algorithms beside it. There
// are four versions: before PR #131, after it, and after each of the two
// follow-ups that its author names.
//
//	2dca770      any address and any slice goes through the switch
//	pr131        blocks get multiples of 16 bytes; odd slices and addresses do not
//	pr131-team   blocks get multiples of 16 bytes times the ranks
//	pr131-tail   of a range that its count alone keeps off the switch, the
//	             multiple of 16 bytes times the ranks goes through it
//
// The kernels decide for themselves; the host says only how many blocks there
// are and what of the call the library would look at.
//
// The rule users break: the buffers are symmetric, as the library's: at the same
// place on every rank.
package cascade
