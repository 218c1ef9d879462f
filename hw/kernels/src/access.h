// How a range of bytes is cut: head and tail element by element, between them
// lines at aligned destinations. No access, load or store, leaves the range.
#pragma once
#include "memory.h"

struct Span {
	u64 n;     // bytes
	u64 lines; // of 16 bytes, from head on
	u64 tail;  // where they end
	u32 head;  // bytes before the first line
};

// span cuts n bytes at dst; apart are the low bits in which any source address
// differs from dst. Where it is not 0, lines are made of two aligned loads of up
// to 15 bytes around them, so the ends are larger.
FN Span span(u64 dst, u64 n, u32 apart) {
	Span s;
	u64 head = (0 - dst) & 15;
	if (apart != 0 && head < 15) head += 16;
	if (head > n) head = n;
	u64 rest = n - head;
	s.n = n;
	s.head = (u32)head;
	s.lines = apart == 0 ? rest / 16 : rest >= 31 ? (rest - 31) / 16 + 1 : 0;
	s.tail = head + 16 * s.lines;
	return s;
}

// edges is the number of elements outside the lines, edge the byte where one of
// them starts.
FN u32 edges(const Span &s, u32 log) { return (u32)(s.head + (s.n - s.tail)) >> log; }
FN u64 edge(const Span &s, u32 i, u32 log) {
	u32 at = i << log;
	return at < s.head ? at : s.tail + (at - s.head);
}

// Raw is a line as loaded: one or two aligned lines and how they overlap. Many
// are loaded before the first is used.
struct Raw { Line x, y; u32 shift; };

FN Raw fetchLine(u64 a) {
	Raw r;
	r.shift = (u32)a & 15;
	r.x = loadLine(a - r.shift);
	r.y = r.x;
	if (r.shift) r.y = loadLine(a - r.shift + 16);
	return r;
}
FN Line settleLine(const Raw &r) {
	if (r.shift == 0) return r.x;
	u32 q = r.shift >> 2, b = (r.shift & 3) * 8;
	u32 v0 = r.x.w[0], v1 = r.x.w[1], v2 = r.x.w[2], v3 = r.x.w[3], v4 = r.y.w[0], v5 = r.y.w[1], v6 = r.y.w[2], v7 = r.y.w[3];
	if (q & 1) { v0 = v1; v1 = v2; v2 = v3; v3 = v4; v4 = v5; v5 = v6; v6 = v7; }
	if (q & 2) { v0 = v2; v1 = v3; v2 = v4; v3 = v5; v4 = v6; }
	return Line{{funnel(v0, v1, b), funnel(v1, v2, b), funnel(v2, v3, b), funnel(v3, v4, b)}};
}

// loadUnit reads n <= 16 bytes at a, out of a payload [first, end) of which all
// may be read, or tight, only these bytes.
FN Line loadUnit(u64 a, u32 n, u64 first, u64 end, bool tight) {
	u64 line = a & ~15ull;
	if (tight || n != 16 || line < first || line + 32 > end) return loadBytes(a, n);
	return settleLine(fetchLine(a));
}

// gather copies, for every p of parts, len(p) <= most bytes from src(p) to
// dst(p), elements of 1<<log bytes:
// for p := range parts { copy(mem[dst(p):], mem[src(p):][:len(p)]) }
// The parts are taken from turn on, so that ranks do not all read from one. Depth
// loads are in flight.
template <int Depth = 4, class Src, class Dst, class Len>
FN void gather(u32 parts, u32 turn, u64 most, u32 log, Src src, Dst dst, Len len) {
	enum { EdgeSlots = 80 };
	u64 lines = most / 16;
	bool flat = lines < 2 * threads(); // all parts at once
	u64 total = flat ? lines * parts : lines;
#pragma unroll 1
	for (u32 outer = 0; outer < (flat ? 1 : parts); outer++) {
#pragma unroll 1
		for (u64 base = thread(); base < total; base += Depth * (u64)threads()) {
			Raw raw[Depth];
			u64 to[Depth];
#pragma unroll
			for (int k = 0; k < Depth; k++) {
				u64 i = base + k * (u64)threads();
				to[k] = 0;
				if (i >= total) continue;
				u32 p = flat ? (u32)i / (u32)lines : outer;
				if (flat) i = (u32)i % (u32)lines;
				p += turn;
				if (p >= parts) p -= parts;
				u64 a = src(p), d = dst(p);
				Span s = span(d, len(p), (u32)(a ^ d) & 15);
				if (a == d || i >= s.lines) continue;
				to[k] = d + s.head + 16 * i;
				raw[k] = fetchLine(a + s.head + 16 * i);
			}
#pragma unroll
			for (int k = 0; k < Depth; k++)
				if (to[k]) storeLine(to[k], settleLine(raw[k]));
		}
	}
	u32 slots = EdgeSlots >> log;
#pragma unroll 1
	for (u32 i = thread(); i < parts * slots; i += threads()) {
		u32 p = i / slots, e = i % slots;
		u64 a = src(p), d = dst(p);
		Span s = span(d, len(p), (u32)(a ^ d) & 15);
		if (a == d || e >= edges(s, log)) continue;
		u64 at = edge(s, e, log);
		storePiece(d + at, loadPiece(a + at, 1u << log), 1u << log);
	}
}
