// The kernel of cascade: an all-reduce as NVSHMEM does it, holes included. A
// launch does one call for all ranks of one GPU, a group of blocks each, and
// every block decides for its own range.
#include "cascade_peers.h"
#include "cascade_select.h"
#define HALF_AND_SINGLE_SUMS
#include "nvls_fabric.h"

// Words is a range on its way through the switch: what is left of it.
struct Words { u64 from, to, left, index; };

// stage moves what there is of words of a width, if both addresses are multiples
// of it:
// for i := range left/Width { to[i] = switch(from[i]) }
template <u32 Width> FN void stage(const Args &a, Words &w, bool local) {
	if (w.left < Width || (w.from | w.to) % Width != 0) return;
	u64 bytes = w.left - w.left % Width;
#pragma unroll 1
	for (u64 at = Width * thread(); at < bytes; at += Width * threads()) {
		Line l = reduceCast<Width>(a, w.from + at, w.index + (at >> a.log));
		if (local) storeBytes(w.to + at, l, Width);
		else storeCast<Width>(a, w.to + at, l);
	}
	w.from += bytes;
	w.to += bytes;
	w.left -= bytes;
	w.index += bytes >> a.log;
}

// cascade is words of 16, 8 and 4 bytes, one width after the other. What is left
// then, less than 4 bytes or all of a range at odd addresses, nobody touches.
FN void cascade(const Args &a, Words w, bool local) {
	stage<16>(a, w, local);
	stage<8>(a, w, local);
	stage<4>(a, w, local);
}

// through is the range by the switch: each rank reads all of it and stores its
// own, or each rank reads a slice of it, the last one with the remainder, and
// stores it everywhere.
FN void through(const Call &c, const Args &a, const Part &p, bool oneShot) {
	u64 first = 0, count = p.count;
	if (!oneShot) {
		u64 per = p.count / a.world;
		first = per * c.rank;
		count = c.rank + 1 == a.world ? p.count - first : per;
	}
	u64 skip = first << a.log;
	Words w;
	w.from = castOf(a, ObjectSource, a.src[c.rank], p.src + skip);
	w.to = oneShot ? p.dst + skip : castOf(a, ObjectTarget, a.dst[c.rank], p.dst + skip);
	w.left = count << a.log;
	w.index = p.index + first;
	cascade(a, w, oneShot);
}

FN bool perform(Call &c, const Args &a, const Part &p, u32 algorithm) {
	switch (algorithm) {
	case Copy: put(a, p.dst, p.src, p.count << a.log); break;
	case OneShot: through(c, a, p, true); break;
	case TwoShot: through(c, a, p, false); break;
	case Exchange: return exchange(c, a, p);
	case Segments: return segments(c, a, p);
	case Lines: return lines(c, a, p);
	}
	return true;
}

// cascade_reduce does all_reduce: its range in one piece or, in the version that
// splits, in two.
ROOMY void cascade_reduce(const __grid_constant__ Args a) {
	Call c;
	if (!enter(c, a)) return;
	bool go = awaitHeaders(c, a);
	if (!inject(c, a, StepAgreed)) return;
	Range r = rangeOf(a, c.block);
	Part p = {a.src[c.rank] + (r.first << a.log), a.dst[c.rank] + (r.first << a.log), r.count, r.first};
	u64 head = headOf(a, r.count, p.src, p.dst);
	u32 pieces = head != 0 && head < r.count ? 2 : 1;
#pragma unroll 1
	for (u32 i = 0; i < pieces && go; i++) {
		Part q = p;
		if (pieces == 2) {
			u64 skip = i ? head : 0;
			q = Part{p.src + (skip << a.log), p.dst + (skip << a.log), i ? p.count - head : head, p.index + skip};
		}
		u32 algorithm = i ? peerToPeer(a, q.count) : selectFor(a, q.count, q.src, q.dst);
		go = perform(c, a, q, algorithm);
	}
	if (!inject(c, a, StepData)) return;
	if (go) meet(c, a);
	if (!inject(c, a, StepLeave)) return;
	finish(c, a);
}
