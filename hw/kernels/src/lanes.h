// How the lanes of a call are divided among the blocks of a rank, in units of 16
// bytes.
#pragma once
#include "protocol.h"

// Lane is what a lane's words say.
struct Lane {
	u64 count, type, at, bytes, units;
	u32 log;
};

template <class Word> FN Lane laneOf(const Call &c, u32 i, Word word) {
	Lane l;
	l.at = i * (2 + 2 * (u64)c.world);
	l.count = word(l.at);
	l.type = word(l.at + 1);
	l.log = sizeLog(l.type);
	l.bytes = l.count << l.log;
	l.units = (l.bytes + 15) / 16;
	return l;
}

// share is the part of [0, n) that falls to block i of parts.
FN u64 share(u64 n, u32 i, u32 parts) { return n * i / parts; }

template <class Word> FN u64 totalUnits(const Call &c, u32 lanes, Word word) {
	u64 total = 0;
#pragma unroll 1
	for (u32 i = 0; i < lanes; i++) total += laneOf(c, i, word).units;
	return total;
}

// Range is bytes [lo, hi) of a block of a lane.
struct Range { u64 lo, hi; };

FN Range bytesOf(const Lane &l, u64 lo, u64 hi) {
	Range r = {16 * lo, 16 * hi};
	if (r.hi > l.bytes) r.hi = l.bytes;
	return r;
}

// part is what falls to this block of a lane whose first unit is number base of
// all: one after the other, the units of all lanes are dealt out evenly.
FN Range part(const Call &c, const Lane &l, u64 base, u64 all) {
	u64 lo = share(all, c.block, c.blocks), hi = share(all, c.block + 1, c.blocks);
	lo = lo > base ? lo - base : 0;
	hi = hi > base ? hi - base : 0;
	return bytesOf(l, lo < l.units ? lo : l.units, hi < l.units ? hi : l.units);
}

// slice is this block's part of the slice of a rank.
FN Range slice(const Call &c, const Lane &l, u32 rank) {
	u64 lo = share(l.units, rank, c.world), n = share(l.units, rank + 1, c.world) - lo;
	return bytesOf(l, lo + share(n, c.block, c.blocks), lo + share(n, c.block + 1, c.blocks));
}
