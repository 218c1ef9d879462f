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
// all_reduce.h runRing; they reproduce every result recorded from 2.28.3 and
// 2.28.9 on two H200s. The averages of half-precision numbers among them show,
// for 100 counts from 2 Ki to 1.1 Mi elements, where each rank's chunks lie: 24
// channels, and the LL protocol up to 1.7 MB a call. Elsewhere, on more ranks and
// above, the protocol and the channels are assumed; both can be set as the
// library's own parameters.
//
// The rule users break: the order of a sum, and so its bits, depends on the
// count. A shorter call is not a prefix of a longer one.
package nccl
