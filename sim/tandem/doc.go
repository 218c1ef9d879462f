// Package tandem models our own collectives: the same bits on every rank,
// whatever the size, the path, the alignment, the number of CTAs or the place of
// the ranks.
//
// A reduction follows the balanced tree over the ranks (num.Balanced: n ranks
// split at the largest power of two below n, so 3 are (0+1)+2 and 6 are
// ((0+1)+(2+3))+(4+5)), one element at a time. Mode node rounds at every node in
// the element type, mode f32 accumulates in f32 along the same tree and rounds
// once. The mode comes from the call or the team, never from the size.
//
// A plan is computed from the call alone, never from an address. There are four
// paths. Small messages are pushed to the peers as lines, which carry their own
// flags. Larger ones are read directly from the peers' buffers, between flag
// barriers; all-reduce and broadcast do so in two shots where that moves fewer
// bytes. A team of one rank copies.
//
// The protocol is the device's, step by step: one epoch per team in device
// memory, a header line to every peer before anything else, deadlines, abort
// words, the rank that everybody waits for named first, and no error while a
// kernel could still touch the caller's memory. kernel.go says how a call runs.
//
// The rule users break: after an error the team is poisoned. Every later call
// fails with the first cause; close the team and open another.
package tandem
