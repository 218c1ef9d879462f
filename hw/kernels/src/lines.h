// The inner loops of large calls: sixteen lines of up to eight ranks in flight in
// every thread, and nothing decided more than once for them.
#pragma once
#include "combine.h"
#include "lanes.h"
#include "plain.h"
#include "push.h"

enum { Flight = 8 };

// trees is the tree over the lines of each unit, rows of wide ranks, wide being
// 2, 4 or 8. Of a row of eight only m may be there. Totals are at the rows'
// starts.
template <class J> FN void trees(Line (&l)[Flight], u32 wide, u32 m) {
	bool all = wide < 8;
	l[0] = J::join(l[0], l[1]);
	if (all || m > 3) l[2] = J::join(l[2], l[3]);
	if (all || m > 5) l[4] = J::join(l[4], l[5]);
	if (all || m > 7) l[6] = J::join(l[6], l[7]);
	if (wide == 2) return;
	l[0] = J::join(l[0], l[2]);
	if (all || m > 6) l[4] = J::join(l[4], l[6]);
	if (all || m <= 4) return;
	l[0] = J::join(l[0], l[4]);
}

FN void treesOf(u32 join, Line (&l)[Flight], u32 wide, u32 m) {
	switch (join) {
#define CASE(J) case Kind##J: trees<J>(l, wide, m); return;
		PLAIN(CASE)
#undef CASE
	}
}

// rows loads a row of Wide lines, of which m are there, for each of Flight/Wide
// units: number i and every threads()-th from there.
template <int Wide, class Src> FN void rows(Line (&l)[Flight], u32 m, u64 i, u64 lines, Src src) {
#pragma unroll
	for (int k = 0; k < Wide; k++) {
		u64 a = (u32)k < m ? src(k) + 16 * i : 0;
#pragma unroll
		for (int u = 0; u < Flight / Wide; u++)
			loadLineIf((u32)k < m && i + u * threads() < lines, a + 16 * u * threads(), l[u * Wide + k]);
	}
}

// slanted is rows of sources that lie apart from the destination, so that a line
// is made of two: of half as many units, or of one.
template <int Wide, class Src> FN void slanted(Line (&l)[Flight], u32 m, u64 i, u64 lines, Src src) {
	enum { Units = Wide == 8 ? 1 : Flight / Wide / 2, Half = 4 };
	auto there = [&](int k, int u) { return (u32)k < m && i + u * threads() < lines; };
	auto at = [&](u64 a, int u) { return (a & ~15ull) + 16 * (i + u * threads()); };
#pragma unroll
	for (int k = 0; k < Wide; k++) {
		u64 a = (u32)k < m ? src(k) : 0;
#pragma unroll
		for (int u = 0; u < Units; u++) loadLineIf(there(k, u), at(a, u), l[u * Wide + k]);
	}
#pragma unroll
	for (int from = 0; from < Wide; from += Half) {
		Line next[Units][Half];
		u32 shift[Half];
#pragma unroll
		for (int k = 0; k < Half && from + k < Wide; k++) {
			u64 a = (u32)(from + k) < m ? src(from + k) : 0;
			shift[k] = (u32)a & 15;
#pragma unroll
			for (int u = 0; u < Units; u++) {
				next[u][k] = zeroLine();
				loadLineIf(there(from + k, u) && shift[k], at(a, u) + 16, next[u][k]);
			}
		}
#pragma unroll
		for (int k = 0; k < Half && from + k < Wide; k++)
#pragma unroll
			for (int u = 0; u < Units; u++) l[u * Wide + from + k] = settleLine(Raw{l[u * Wide + from + k], next[u][k], shift[k]});
	}
}

// reduceRange is, for n bytes and m = world ranks, every element the tree over
// src(0) to src(m-1); dst(rank), or where everywhere is set dst(p) for every p,
// gets it, W being the ranks, or the most. First come the elements at the ends, then
// the lines.
template <u32 W, class Src, class Dst>
FN void reduceRange(const Call &c, u32 join, u32 log, u64 n, bool everywhere, Src src, Dst dst) {
	u64 own = dst(c.rank);
	u32 apart = 0, m = W == 2 ? 2 : c.world;
#pragma unroll 1
	for (u32 p = 0; p < m; p++) apart |= (u32)(src(p) ^ own) & 15;
	Span s = span(own, n, apart);
	u32 wide = W == 2 ? 2 : m == 4 ? 4 : 8, ends = edges(s, log), from = everywhere ? 0 : c.rank, to = everywhere ? m : c.rank + 1;
	u32 units = apart == 0 ? Flight / wide : wide == 8 ? 1 : Flight / wide / 2;
	bool single = true;
#pragma unroll 1
	for (u64 i = thread();;) {
		if (single && i >= ends) {
			single = false;
			i = thread();
		}
		if (!single && i >= s.lines) break;
		Line l[Flight];
#pragma unroll
		for (int k = 0; k < Flight; k++) l[k] = zeroLine();
		u64 x = single ? edge(s, (u32)i, log) : s.head;
		auto at = [&](u32 p) { return src(p) + x; };
		if (single) {
#pragma unroll
			for (int k = 0; k < (int)W; k++)
				if (k < (int)m) l[k] = lineOf(loadPiece(at(k), 1u << log), 0);
		} else if (apart) {
			if constexpr (W == 2) slanted<2>(l, m, i, s.lines, at);
			else if (wide == 4) slanted<4>(l, m, i, s.lines, at);
			else slanted<8>(l, m, i, s.lines, at);
		} else if constexpr (W == 2) rows<2>(l, m, i, s.lines, at);
		else if (wide == 4) rows<4>(l, m, i, s.lines, at);
		else rows<8>(l, m, i, s.lines, at);
		treesOf(join, l, wide, m);
#pragma unroll 1
		for (u32 p = from; p < to; p++) {
			u64 a = dst(p) + x;
			if (single) {
				storePiece(a, low(l[0]), 1u << log);
				continue;
			}
			a += 16 * i;
			storeLine(a, l[0]);
			if (wide == 8) continue;
			storeLineIf(units > 1 && wide == 4 && i + threads() < s.lines, a + 16 * threads(), l[4]);
			if (wide == 4) continue;
#pragma unroll
			for (int u = 1; u < Flight / 2; u++)
				storeLineIf((u32)u < units && i + u * threads() < s.lines, a + 16 * u * threads(), l[2 * u]);
		}
		i += single ? threads() : units * threads();
	}
}

// spread is, for every rank p, copy(mem[dst(p):], mem[src:][:n]), where all lie
// alike in their lines of 16 bytes. Lines are read once.
template <class Dst> FN void spread(const Call &c, u64 src, u64 n, u32 log, Dst dst) {
	enum { Depth = 8 };
	Span s = span(src, n, 0);
#pragma unroll 1
	for (u64 i = thread(); i < s.lines; i += Depth * threads()) {
		Line l[Depth];
#pragma unroll
		for (int k = 0; k < Depth; k++) {
			l[k] = zeroLine();
			loadLineIf(i + k * threads() < s.lines, src + s.head + 16 * (i + k * threads()), l[k]);
		}
#pragma unroll 1
		for (u32 j = 1; j <= c.world; j++) {
			u32 p = c.rank + j < c.world ? c.rank + j : c.rank + j - c.world;
			u64 to = dst(p);
			if (to == src) continue;
#pragma unroll
			for (int k = 0; k < Depth; k++) storeLineIf(i + k * threads() < s.lines, to + s.head + 16 * (i + k * threads()), l[k]);
		}
	}
#pragma unroll 1
	for (u32 i = thread(); i < edges(s, log) * c.world; i += threads()) {
		u64 at = edge(s, i / c.world, log), to = dst(i % c.world);
		if (to != src) storePiece(to + at, loadPiece(src + at, 1u << log), 1u << log);
	}
}

// fetchSlices is the second shot of lane l: the slices of the others, from the ranks
// that made them; a root has them all.
template <int Depth, class Word> FN void fetchSlices(const Call &c, const Lane &l, Word word, bool cast, u32 root) {
	u64 own = word(l.at + 2 + c.world + c.rank), mine = word(l.at + 2 + c.rank);
	gather<Depth>(c.world, c.rank, 16 * (l.units / c.world / c.blocks + 2), l.log,
		[&](u32 p) { return (p == c.rank ? own : cast && c.rank == root ? mine : word(l.at + 2 + c.world + p)) + slice(c, l, p).lo; },
		[&](u32 p) { return own + slice(c, l, p).lo; }, [&](u32 p) { Range r = slice(c, l, p); return r.hi - r.lo; });
}

// pullCall is what follows the entry of a call that reads its peers.
template <u32 W, class Word> FN void pullCall(Call &c, bool shots, bool scatter, u32 lanes, Word word) {
	if (stamping(c)) stamp(c, slotUnits(c), 0);
	if (!inject(c, StepPushed)) return;
	bool go = awaitHeaders(c), alike = shots;
	if (!inject(c, StepAgreed)) return;
	u64 base = 0, all = go ? totalUnits(c, lanes, word) : 0;
	if (shots && go)
#pragma unroll 1
		for (u32 p = 0; p < 2 * c.world; p++) alike = alike && ((word(2 + p) ^ word(2)) & 15) == 0;
#pragma unroll 1
	for (u32 i = 0; i < lanes && go; i++) {
		Lane l = laneOf(c, i, word);
		Range r = shots ? slice(c, l, c.rank) : part(c, l, base, all);
		base += l.units;
		if (r.lo >= r.hi) continue;
		u64 skip = r.lo + (scatter ? c.rank * l.bytes : 0);
		reduceRange<W>(c, joinOf(l.type), l.log, r.hi - r.lo, alike,
			[&](u32 p) { return word(l.at + 2 + p) + skip; }, [&](u32 p) { return word(l.at + 2 + c.world + p) + r.lo; });
	}
	if (!inject(c, StepData)) return;
	if (shots && !alike && go) go = meet(c);
	if (!inject(c, StepBarrier)) return;
	if (shots && !alike && go) fetchSlices<4>(c, laneOf(c, 0, word), word, false, 0);
	if (go) meet(c);
	if (!inject(c, StepLeave)) return;
	finish(c);
}
