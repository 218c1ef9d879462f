// Package arith reduces ranges: the fast form of api/num's Eval, equal to it bit
// for bit for every scheme, element type and operation.
//
// [Reduce] takes the scheme, one source a rank and the destination, which comes
// first and may be one of the sources, exactly. The rule users break: it may not
// overlap a source in any other way, and sources and destination have the same
// length. Nothing has to be aligned; elements are little-endian, as in device
// memory, on every host.
//
// A range is cut into tiles small enough for the first-level cache. For each tile
// the ranks are taken in turn, a few at a time, into an accumulator that stays in
// the cache, so that 72 ranks cost the same per input element as 8. Large ranges
// are spread over the processors. [ReduceAll] writes a result to several
// destinations, past the caches where these could not hold it, while the next
// results are computed.
//
// Every kernel exists in portable Go. On amd64 the common ones also exist in AVX2
// assembly, made by the generator in asmgen and used where the processor has
// AVX2, F16C and FMA, with AVX-512 for hashes where there is that; the build tag
// noasm leaves it out.
package arith
