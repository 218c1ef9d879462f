// Every access to memory that another rank, or the host, may touch. All of it
// is volatile asm with a memory clobber: the compiler may not move it, merge it
// or turn it into ld.global.nc.
#pragma once
#include "device.h"

// Line is 16 bytes in registers.
struct Line { u32 w[4]; };

// pick is b where which, else a, word by word: a choice between two objects would
// be made by address, and put them into memory.
FN u32 pick(bool which, u32 a, u32 b) { return which ? b : a; }
FN u64 choose(bool which, u64 a, u64 b) { return which ? b : a; }
FN Line pick(bool which, Line a, Line b) {
	return Line{{pick(which, a.w[0], b.w[0]), pick(which, a.w[1], b.w[1]), pick(which, a.w[2], b.w[2]), pick(which, a.w[3], b.w[3])}};
}

FN Line zeroLine() { return Line{{0, 0, 0, 0}}; }

// later keeps what is done with a value from being done before: it may not have
// come yet.
FN void later(u64 &v) { asm volatile("" : "+l"(v)); }
FN void later(u32 &v) { asm volatile("" : "+r"(v)); }

// Words whose order against data matters, at system scope.
FN u32 loadWord(u64 a) { u32 v; asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); return v; }
FN u64 loadWord64(u64 a) { u64 v; asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(v) : "l"(a) : "memory"); return v; }
FN void storeWord(u64 a, u32 v) { asm volatile("st.relaxed.sys.global.b32 [%0], %1;" : : "l"(a), "r"(v) : "memory"); }
FN void storeWord64(u64 a, u64 v) { asm volatile("st.relaxed.sys.global.b64 [%0], %1;" : : "l"(a), "l"(v) : "memory"); }
FN u32 swapWord(u64 a, u32 v) { u32 old; asm volatile("atom.relaxed.sys.global.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(a), "r"(v) : "memory"); return old; }
// countWord adds one, and goes from most back to 0. It orders nothing.
FN u32 countWord(u64 a, u32 most) { u32 old; asm volatile("atom.relaxed.sys.global.inc.u32 %0, [%1], %2;" : "=r"(old) : "l"(a), "r"(most) : "memory"); return old; }
// loadPair reads two words of 64 bits at once.
FN void loadPair(u64 a, u64 &x, u64 &y) { asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "l"(a) : "memory"); }
FN void fenceSystem() { asm volatile("fence.acq_rel.sys;" : : : "memory"); }

// A flagged line: two halves, each 32 bits of data and the flag in one 64-bit
// access.
FN void storeFlagged(u64 a, u32 lo, u32 hi, u32 flag) {
	u64 x = (u64)flag << 32 | lo, y = (u64)flag << 32 | hi;
	asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" : : "l"(a), "l"(x), "l"(y) : "memory");
}
// loadFlagged reports whether both halves carry the flag.
FN bool loadFlagged(u64 a, u32 flag, u32 &lo, u32 &hi) {
	u64 x, y;
	asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "l"(a) : "memory");
	lo = (u32)x;
	hi = (u32)y;
	return (u32)(x >> 32) == flag && (u32)(y >> 32) == flag;
}

// Flags that order other memory: the sender fences before, the receiver after.
// The marks are for the check of the PTX, which follows every path from one to
// the other.
FN void releaseWord(u64 a, u32 v) { asm volatile("st.relaxed.sys.global.b32 [%0], %1; //@release" : : "l"(a), "r"(v) : "memory"); }
FN void releaseFlag(u64 a, u64 v) { asm volatile("st.relaxed.sys.global.b64 [%0], %1; //@release" : : "l"(a), "l"(v) : "memory"); }
FN u64 acquireFlag(u64 a) { u64 v; asm volatile("ld.relaxed.sys.global.b64 %0, [%1]; //@acquire" : "=l"(v) : "l"(a) : "memory"); return v; }
FN void releaseHeader(u64 a, u64 hash, u32 flag) {
	u64 x = (u64)flag << 32 | (u32)hash, y = (u64)flag << 32 | hash >> 32;
	asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2}; //@release" : : "l"(a), "l"(x), "l"(y) : "memory");
}
FN bool acquireHeader(u64 a, u32 flag, u64 &hash) {
	u64 x, y;
	asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2]; //@acquire" : "=l"(x), "=l"(y) : "l"(a) : "memory");
	hash = y << 32 | (u32)x;
	return (u32)(x >> 32) == flag && (u32)(y >> 32) == flag;
}
// The same line where it orders no memory: all data of the call carries flags of
// its own.
FN void sendHeader(u64 a, u64 hash, u32 flag) { storeFlagged(a, (u32)hash, (u32)(hash >> 32), flag); }
FN bool peekHeader(u64 a, u32 flag, u64 &hash) {
	u32 lo, hi;
	bool came = loadFlagged(a, flag, lo, hi);
	hash = (u64)hi << 32 | lo;
	return came;
}

// Data, ordered by the flags around it.
FN Line loadLine(u64 a) {
	Line l;
	asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(l.w[0]), "=r"(l.w[1]), "=r"(l.w[2]), "=r"(l.w[3]) : "l"(a) : "memory");
	return l;
}
FN void storeLine(u64 a, Line l) {
	asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" : : "l"(a), "r"(l.w[0]), "r"(l.w[1]), "r"(l.w[2]), "r"(l.w[3]) : "memory");
}
// loadLineIf leaves the line as it is where p is false: many loads in a row, with
// no branch between them.
FN void loadLineIf(bool p, u64 a, Line &l) {
	asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %5, 0;\n\t@p ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\n\t}" : "+r"(l.w[0]), "+r"(l.w[1]), "+r"(l.w[2]), "+r"(l.w[3]) : "l"(a), "r"((u32)p) : "memory");
}
FN void storeLineIf(bool p, u64 a, Line l) {
	asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %5, 0;\n\t@p st.global.v4.b32 [%4], {%0, %1, %2, %3};\n\t}" : : "r"(l.w[0]), "r"(l.w[1]), "r"(l.w[2]), "r"(l.w[3]), "l"(a), "r"((u32)p) : "memory");
}
// loadParam is a word of the parameters, or of what stands for them. The compiler
// would keep all words in registers if it could.
FN u64 loadParam(const u64 *a) { u64 v; asm volatile("ld.b64 %0, [%1];" : "=l"(v) : "l"(a) : "memory"); return v; }
FN u64 loadConst64(u64 a) { u64 v; asm volatile("ld.global.b64 %0, [%1];" : "=l"(v) : "l"(a) : "memory"); return v; }
FN u32 loadConst32(u64 a) { u32 v; asm volatile("ld.global.b32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); return v; }

// loadPiece reads width bytes, 1, 2, 4 or 8, at an address that is a multiple
// of width.
FN u64 loadPiece(u64 a, u32 width) {
	u32 v = 0;
	u64 v64;
	switch (width) {
	case 1: asm volatile("ld.global.u8 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); return v;
	case 2: asm volatile("ld.global.u16 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); return v;
	case 4: asm volatile("ld.global.b32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); return v;
	}
	asm volatile("ld.global.b64 %0, [%1];" : "=l"(v64) : "l"(a) : "memory");
	return v64;
}
FN void storePiece(u64 a, u64 v, u32 width) {
	switch (width) {
	case 1: asm volatile("st.global.b8 [%0], %1;" : : "l"(a), "r"((u32)v) : "memory"); return;
	case 2: asm volatile("st.global.b16 [%0], %1;" : : "l"(a), "h"((u16)v) : "memory"); return;
	case 4: asm volatile("st.global.b32 [%0], %1;" : : "l"(a), "r"((u32)v) : "memory"); return;
	}
	asm volatile("st.global.b64 [%0], %1;" : : "l"(a), "l"(v) : "memory");
}

FN u64 low(Line l) { return (u64)l.w[1] << 32 | l.w[0]; }
FN u64 high(Line l) { return (u64)l.w[3] << 32 | l.w[2]; }
FN Line lineOf(u64 lo, u64 hi) { return Line{{(u32)lo, (u32)(lo >> 32), (u32)hi, (u32)(hi >> 32)}}; }

// pieceWidth is the widest access that fits both an address and a length.
FN u32 pieceWidth(u64 a, u64 n) {
	u32 v = (u32)a | (u32)n | 8;
	return v & (0u - v);
}

// loadBytes reads n <= 16 bytes at any address, and no byte more:
// for i := range n { line[i] = mem[a+i] }
FN Line loadBytes(u64 a, u32 n) {
	if (n == 16 && (a & 15) == 0) return loadLine(a);
	u32 width = pieceWidth(a, n);
	u64 lo = 0, hi = 0;
#pragma unroll 1
	for (u32 i = 0; i < n; i += width) {
		u64 v = loadPiece(a + i, width) << (8 * (i & 7));
		lo |= i < 8 ? v : 0;
		hi |= i < 8 ? 0 : v;
	}
	return lineOf(lo, hi);
}

// storeBytes writes n <= 16 bytes at any address, and no byte more:
// for i := range n { mem[a+i] = line[i] }
FN void storeBytes(u64 a, Line l, u32 n) {
	if (n == 16 && (a & 15) == 0) {
		storeLine(a, l);
		return;
	}
	u32 width = pieceWidth(a, n);
#pragma unroll 1
	for (u32 i = 0; i < n; i += width)
		storePiece(a + i, (i < 8 ? low(l) : high(l)) >> (8 * (i & 7)), width);
}

FN u32 funnel(u32 lo, u32 hi, u32 shift) {
	u32 v;
	asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(lo), "r"(hi), "r"(shift));
	return v;
}
