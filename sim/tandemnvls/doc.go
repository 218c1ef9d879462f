// Package tandemnvls models tandem-nvls: our collectives through the switch,
// with no holes and no size at which they fall back.
//
// all_reduce, reduce_scatter and all_gather go through team memory that has a
// multicast address: every rank copies its source in, the switch reduces or
// spreads whole 16-byte words there, and every rank copies its result out. The
// copies shift the bytes, so that buffers may lie anywhere, and elsewhere on every
// rank. What is no multiple of 16 bytes x ranks (in a block of a reduce-scatter,
// of 16 bytes) goes to the peers as lines, and every rank that needs it reduces it
// for itself in tandem's fixed tree. Which element goes which way follows from its
// index alone. Every wait has a deadline.
//
// What the switch cannot do, and every other collective, is tandem's: its plan,
// its kernels, by name.
//
// The rule users break: a 16-bit sum done in the switch is faithful and no more,
// and the same call on tandem has other bits. Choose one of the two for good.
package tandemnvls
