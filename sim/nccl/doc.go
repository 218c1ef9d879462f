// Package nccl models NCCL 2.28 on one NVLink node with NVLS off: rings, in
// which the order of a reduction follows from who owns the slice.
//
// A call is cut into channels, a channel into loops, a loop into one chunk per
// rank. Chunk c is folded in ring order and ends at its owner: x[c+1], x[c+2],
// ..., x[c], rounded in the element type at every hop. Reduce-scatter folds
// block r the same way, so its order does not depend on sizes. The hops are
// taken as one step, which changes no rounding.
//
// The rules were read in NCCL 2.28.3's scheduler, enqueue.cc
// scheduleCollTasksToPlan and calcCollChunking, and its device code,
// all_reduce.h runRing; they reproduce every result recorded from that version
// on two H200s. What the recordings cannot show is marked assumed: which
// protocol the tuner picks, and how many channels a communicator has. Both can
// be set as the library's own parameters.
//
// The rule users break: the order of a sum, and so its bits, depends on the
// count. A shorter call is not a prefix of a longer one.
package nccl
