// Package nvshmem models the collectives of the NVSHMEM library inside one
// NVSwitch node: which algorithm it selects, how it splits a call over CTAs and
// ranks, which words it moves and which elements it leaves out.
//
// [Plan] decides; it is pure, takes no buffers and works in 64 bits, so a call
// of 2^40 elements is planned in microseconds. The program executes the plan it
// is handed and decides nothing again. plan.go says what a plan holds for each
// algorithm.
//
// Three versions are modelled: 2dca770, the commit PR #131 starts from; pr131,
// that pull request, reconstructed from its text; and 3.4.5, the release whose
// results were recorded.
//
// The rule users break: NVSHMEM buffers are symmetric. Source and destination
// lie at the same address on every rank; offsets that differ between ranks are
// refused, never modelled. Alignment is judged on those addresses, in bytes.
package nvshmem
