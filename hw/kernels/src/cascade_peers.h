// NVSHMEM's all-reduces without the switch: puts into a peer's scratch memory, a
// barrier, and a fold of what came, in the orders of the library.
#pragma once
#include "access.h"
#include "kinds.h"
#include "nvls_protocol.h"

// Part is a range as this rank sees it.
struct Part { u64 src, dst, count, index; };

// ordered is (x < y) ? x : y, or with > for the maximum: y where the comparison
// is false, of NaNs and of equal values.
FN u64 ordered(u64 x, u64 y, u32 bits, u64 infinity, bool max) {
	u64 sign = 1ull << (bits - 1), mx = x & (sign - 1), my = y & (sign - 1);
	if (mx > infinity || my > infinity) return y;
	s64 kx = x & sign ? -(s64)mx : (s64)mx, ky = y & sign ? -(s64)my : (s64)my;
	return (max ? kx > ky : kx < ky) ? x : y;
}

// foldLines is x op y for every element of a line.
FN Line foldLines(const Args &a, Line x, Line y) {
	if (!(a.flags & FlagTernary)) return joinLines(a.join, x, y);
	u32 bits = 8u << a.log;
	u64 infinity = a.join < KindAddF16 ? 0x7F80 : a.join < KindAddF32 ? 0x7C00 : a.join < KindAddF64 ? 0x7F800000 : Inf64;
	bool max = a.join % 6 == KindMaxBF16;
	u64 ones = ~0ull >> (64 - bits), lo = 0, hi = 0;
#pragma unroll 1
	for (u32 at = 0; at < 64; at += bits) {
		lo |= ordered(low(x) >> at & ones, low(y) >> at & ones, bits, infinity, max) << at;
		hi |= ordered(high(x) >> at & ones, high(y) >> at & ones, bits, infinity, max) << at;
	}
	return lineOf(lo, hi);
}

// fold: for i := range bytes of elements { dst[i] = x[i] op y[i] }
// Every thread has the same elements in all folds of one destination.
FN void fold(const Args &a, u64 dst, u64 x, u64 y, u64 bytes) {
#pragma unroll 1
	for (u64 at = 16 * thread(); at < bytes; at += 16 * threads()) {
		u32 n = bytes - at < 16 ? (u32)(bytes - at) : 16;
		storeBytes(dst + at, foldLines(a, loadBytes(x + at, n), loadBytes(y + at, n)), n);
	}
}

FN void put(const Args &a, u64 dst, u64 src, u64 bytes) {
	gather<2>(1, 0, bytes, a.log, [&](u32) { return src; }, [&](u32) { return dst; }, [&](u32) { return bytes; });
}

FN u64 partBytes(const Args &a) { return a.stageHalf / a.blocks & ~(u64)15; }
FN u64 scratchOf(const Call &c, const Args &a, u32 rank) { return a.stage[rank] + c.block * partBytes(a); }

// exchange is recursive exchange of radix 2: in each phase ranks that differ in
// one bit swap what they have. dst = own op received.
FN bool exchange(Call &c, const Args &a, const Part &p) {
	u64 bytes = p.count << a.log, slot = (bytes + 15) & ~(u64)15, own = p.src, at = 0;
#pragma unroll 1
	for (u32 bit = 1; bit < a.world; bit <<= 1, at += slot) {
		put(a, scratchOf(c, a, c.rank ^ bit) + at, own, bytes);
		if (!meet(c, a)) return false;
		fold(a, p.dst, own, scratchOf(c, a, c.rank) + at, bytes);
		if (syncOr(c.bad)) return false;
		own = p.dst;
	}
	return true;
}

// segments is the algorithm for everything else: dst begins as the own source;
// each segment of the source goes to one peer after another, and what is shorter
// than a segment to as many at once as fit:
// acc = a[me]; for i := 1; i < world; i++ { acc = acc op a[me-i] }
// The source is read when its turn comes, so that in place later puts send what
// earlier rounds have changed.
FN bool segments(Call &c, const Args &a, const Part &p) {
	u64 bytes = p.count << a.log, scratch = scratchOf(c, a, c.rank), length;
	put(a, p.dst, p.src, bytes);
	if (syncOr(c.bad)) return false;
#pragma unroll 1
	for (u64 at = 0; at < bytes; at += length) {
		length = bytes - at < SegmentBytes ? bytes - at : SegmentBytes;
		u32 fit = SegmentBytes / (u32)length, slot = ((u32)length + 15) & ~15u;
#pragma unroll 1
		for (u32 done = 0, n; done + 1 < a.world; done += n) {
			n = a.world - 1 - done < fit ? a.world - 1 - done : fit;
#pragma unroll 1
			for (u32 k = 0; k < n; k++) {
				u32 peer = c.rank + done + 1 + k;
				put(a, scratchOf(c, a, peer < a.world ? peer : peer - a.world) + k * slot, p.src + at, length);
			}
			if (!meet(c, a)) return false;
#pragma unroll 1
			for (u32 k = 0; k < n; k++) fold(a, p.dst + at, p.dst + at, scratch + k * slot, length);
			if (!meet(c, a)) return false;
		}
	}
	return true;
}

// lines is what the library does with flagged lines: everybody gets everything.
// t = a[0] op a[1]; for i := 2; i < world; i++ { t = a[i] op t }
FN bool lines(Call &c, const Args &a, const Part &p) {
	u64 bytes = p.count << a.log, slot = (bytes + 15) & ~(u64)15, scratch = scratchOf(c, a, c.rank);
	gather<2>(a.world, c.rank, bytes, a.log, [&](u32) { return p.src; }, [&](u32 q) { return scratchOf(c, a, q) + c.rank * slot; }, [&](u32) { return bytes; });
	if (!meet(c, a)) return false;
#pragma unroll 1
	for (u32 i = 1; i < a.world; i++) fold(a, p.dst, scratch + (i == 1 ? 0 : i * slot), i == 1 ? scratch + slot : p.dst, bytes);
	return true;
}
