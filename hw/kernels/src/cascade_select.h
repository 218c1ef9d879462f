// Which algorithm NVSHMEM takes for a range of an all-reduce, and how it divides
// a call over thread blocks: before PR #131, after it, and after each of the two
// follow-ups that its author names.
#pragma once
#include "nvls_layout.h"

enum Algorithm { Nothing, Copy, OneShot, TwoShot, Exchange, Segments, Lines };

// Range is elements of the call: count from first on.
struct Range { u64 first, count; };

// rangeOf is the part of a block: per elements each and the remainder in the
// last, where the pull request rounds per down to words, and the first follow-up
// to words for every rank.
FN Range rangeOf(const Args &a, u32 block) {
	u64 per = a.count / a.blocks, unit = 16 >> a.log;
	if (a.version == AfterTeam) unit *= a.world;
	if (a.version != Before) per -= per % unit;
	return Range{per * block, block + 1 == a.blocks ? a.count - per * block : per};
}

// peerToPeer is the algorithm where the switch is not used.
FN u32 peerToPeer(const Args &a, u64 n) {
	u64 bytes = n << a.log, phases = 0;
	while (2u << phases <= a.world) phases++;
	bool world = (a.flags & FlagWorld) != 0;
	if (a.world == 1) return Copy;
	if (world && a.log >= 2 && n % 2 == 0 && a.world * bytes <= LineTotal && bytes <= LineLimit) return Lines;
	if (world && 1u << phases == a.world && n * (1 + 3 * phases) <= ExchangeLimit) return Exchange;
	return Segments;
}

// evenly reports whether n elements divide into slices for two shots.
FN bool evenly(const Args &a, u64 n) {
	if (!(a.flags & FlagHalf)) return true;
	if (n <= a.world || n % a.world != 0) return false;
	return a.version == Before || n / a.world % 2 == 0;
}

// reachable reports whether the switch may be used for n elements at these
// addresses. Nobody looked at the addresses before the pull request.
FN bool reachable(const Args &a, u64 src, u64 dst) {
	return (a.flags & FlagSwitch) && (a.version == Before || (src | dst) % 4 == 0);
}

FN u32 selectFor(const Args &a, u64 n, u64 src, u64 dst) {
	bool may = reachable(a, src, dst) && (n << a.log) % 4 == 0, one = may && src != dst, two = may && evenly(a, n);
	if (n == 0) return Nothing;
	if (a.algo <= 2) {
		if (n <= a.threshold && one) return OneShot;
		if (two) return TwoShot;
	}
	if (a.algo == 3 && two) return TwoShot;
	if (a.algo == 4 && one) return OneShot;
	return peerToPeer(a, n);
}

// headOf is how many of n elements go through the switch where the second
// follow-up splits a range that its count alone keeps off it; 0 where it does not.
FN u64 headOf(const Args &a, u64 n, u64 src, u64 dst) {
	if (a.version != AfterTail || !(a.flags & FlagHalf) || a.algo > 4 || !reachable(a, src, dst)) return 0;
	u64 head = n - n % ((16 >> a.log) * a.world);
	u32 whole = selectFor(a, n, src, dst), part = selectFor(a, head, src, dst);
	bool off = whole != OneShot && whole != TwoShot;
	return off && (part == OneShot || part == TwoShot) ? head : 0;
}
