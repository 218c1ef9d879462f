// Which arithmetic a lane wants, and the tree over up to eight ranks in it.
#pragma once
#include "arith.h"

// The joins of whole lines, numbered from 0 in this order.
#define JOINS(X)                                                        \
	X(AddBF16) X(MulBF16) X(MinBF16) X(MaxBF16) X(MinNaNBF16) X(MaxNaNBF16) \
	X(AddF16) X(MulF16) X(MinF16) X(MaxF16) X(MinNaNF16) X(MaxNaNF16)   \
	X(AddF32) X(MulF32) X(MinF32) X(MaxF32) X(MinNaNF32) X(MaxNaNF32)   \
	X(AddF64) X(MulF64) X(MinF64) X(MaxF64) X(MinNaNF64) X(MaxNaNF64)   \
	X(AddI8) X(MulI8) X(MinS8) X(MaxS8) X(MinU8) X(MaxU8)               \
	X(AddI16) X(MulI16) X(MinS16) X(MaxS16) X(MinU16) X(MaxU16)         \
	X(AddI32) X(MulI32) X(MinS32) X(MaxS32) X(MinU32) X(MaxU32)         \
	X(AddI64) X(MulI64) X(MinS64) X(MaxS64) X(MinU64) X(MaxU64)         \
	X(AndBits) X(OrBits) X(XorBits)

enum Join : u32 {
#define NAME(J) Kind##J,
	JOINS(NAME)
#undef NAME
};

// A type word: log2 of the element size, then eight bits each of join, scale
// and part.
FN u32 sizeLog(u64 type) { return (u32)type & 0xff; }
FN u32 joinOf(u64 type) { return (u32)(type >> 8) & 0xff; }
FN u32 scaleOf(u64 type) { return (u32)(type >> 16) & 0xff; }
FN u32 partOf(u64 type) { return (u32)(type >> 24) & 0xff; }

// What avg does to inputs, or to the sum.
enum Scale : u32 {
	ScaleNone, PremulBF16, PremulF16, PremulF32, PremulF64, PremulPart,
	DivBF16, DivF16, DivF32, DivF64, DivPart,
	DivS8, DivS16, DivS32, DivS64, DivU8, DivU16, DivU32, DivU64
};

// tree is the balanced tree over m <= 8 lines, split at the largest power of
// two below m.
template <class J> FN Line tree(const Line (&l)[8], u32 m) {
	Line a = l[0];
	if (m > 1) a = J::join(a, l[1]);
	if (m > 2) {
		Line b = l[2];
		if (m > 3) b = J::join(b, l[3]);
		a = J::join(a, b);
	}
	if (m > 4) {
		Line b = l[4];
		if (m > 5) b = J::join(b, l[5]);
		if (m > 6) {
			Line d = l[6];
			if (m > 7) d = J::join(d, l[7]);
			b = J::join(b, d);
		}
		a = J::join(a, b);
	}
	return a;
}

FN Line treeOf(u32 join, const Line (&l)[8], u32 m) {
	switch (join) {
#define CASE(J) case Kind##J: return tree<J>(l, m);
		JOINS(CASE)
#undef CASE
	}
	return l[0];
}

FN Line joinLines(u32 join, Line a, Line b) {
	switch (join) {
#define CASE(J) case Kind##J: return J::join(a, b);
		JOINS(CASE)
#undef CASE
	}
	return a;
}

FN float fromBF16(u32 b) { return asFloat(b << 16); }
FN u32 toBF16(float f) { u16 r; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(f)); return r; }
FN float fromF16(u32 b) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((u16)b)); return r; }
FN u32 toF16(float f) { u16 r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(f)); return r; }

// inverse is 1/n in the type that premul multiplies in, in all elements of a
// half line.
FN u64 inverse(u32 scale, u32 n) {
	float inv = divF32(1.0f, (float)n);
	switch (scale) {
	case PremulBF16: return toBF16(inv) * 0x0001000100010001ull;
	case PremulF16: return toF16(inv) * 0x0001000100010001ull;
	case PremulF32: return asBits(inv) * 0x0000000100000001ull;
	case PremulF64: return asBits64(divF64(1.0, (double)n));
	}
	return 0;
}

// premul multiplies lines of inputs by 1/n in their type.
FN void premul(u32 scale, Line (&l)[8], u64 inv) {
	Line c = lineOf(inv, inv);
#define SCALE(S, J) \
	case S:         \
		_Pragma("unroll") for (int k = 0; k < 8; k++) l[k] = J::join(l[k], c); \
		break;
	switch (scale) {
		SCALE(PremulBF16, MulBF16)
		SCALE(PremulF16, MulF16)
		SCALE(PremulF32, MulF32)
		SCALE(PremulF64, MulF64)
	}
#undef SCALE
}

template <int Bits, bool Signed> FN u64 divLanes(u64 v, u32 n) {
	u64 r = 0;
#pragma unroll 1
	for (int i = 0; i < 64; i += Bits) {
		u32 x = (u32)(v >> i) << (32 - Bits);
		u32 q = Signed ? (u32)(((s32)x >> (32 - Bits)) / (s32)n) : (x >> (32 - Bits)) / n;
		r |= (u64)(q & (~0u >> (32 - Bits))) << i;
	}
	return r;
}

// divide is the last step of avg: every element by n, rounded once, integers
// toward zero. A quotient by n <= 72 lies on no 16-bit midpoint, nor within an
// f32 rounding of one, so the way through f32 rounds right.
FN u64 divideHalf(u32 scale, u64 v, u32 n) {
	float f = (float)n;
	u64 r = 0;
	switch (scale) {
	case DivBF16:
#pragma unroll 1
		for (int i = 0; i < 64; i += 16) r |= (u64)toBF16(divF32(fromBF16((u32)(v >> i) & 0xffff), f)) << i;
		return r;
	case DivF16:
#pragma unroll 1
		for (int i = 0; i < 64; i += 16) r |= (u64)toF16(divF32(fromF16((u32)(v >> i) & 0xffff), f)) << i;
		return r;
	case DivF32: return (u64)asBits(divF32(asFloat((u32)(v >> 32)), f)) << 32 | asBits(divF32(asFloat((u32)v), f));
	case DivF64: return settle64(v, v, divF64(asDouble(v), (double)n));
	case DivS8: return divLanes<8, true>(v, n);
	case DivU8: return divLanes<8, false>(v, n);
	case DivS16: return divLanes<16, true>(v, n);
	case DivU16: return divLanes<16, false>(v, n);
	case DivS32: return divLanes<32, true>(v, n);
	case DivU32: return divLanes<32, false>(v, n);
	case DivS64: return (u64)((s64)v / (s64)n);
	case DivU64: return v / n;
	}
	return v;
}
FN Line divide(u32 scale, Line l, u32 n) {
	u64 a = low(l), b = high(l);
#pragma unroll 1
	for (int i = 0; i < 2 && scale >= DivBF16; i++) {
		u64 q = divideHalf(scale, a, n);
		a = b;
		b = q;
	}
	return lineOf(a, b);
}
