// Arithmetic one element at a time in f32: mode f32 of the 16-bit types, and
// the 8-bit floats, which the hardware cannot add.
#pragma once
#include "kinds.h"

// A part word: format, whether every node is rounded into it, and the node.
enum PartFormat : u32 { PartNone, PartBF16, PartF16, PartE4M3, PartE5M2 };
enum { PartRounds = 8 };
enum PartJoin : u32 { PartAdd, PartMul, PartMin, PartMax, PartMinNaN, PartMaxNaN };
FN u32 formatOf(u32 part) { return part & 7; }
FN u32 nodeOf(u32 part) { return part >> 4; }

// from8 is the value of an 8-bit float with M bits of mantissa.
template <int M> FN float from8(u32 b) {
	const u32 bias = M == 3 ? 7 : 15;
	u32 sign = (b & 0x80) << 24, field = (b & 0x7f) >> M, man = b & ((1 << M) - 1);
	u32 bits = (field + 127 - bias) << 23 | man << (23 - M);
	if (field == 0) bits = asBits((float)man * asFloat((127 + 1 - bias - M) << 23));
	if (M == 2 && field == 31) bits = 0x7F800000 | man << 21;
	if (M == 3 && (b & 0x7f) == 0x7f) bits = 0x7FFFFFFF;
	return asFloat(sign | bits);
}

// to8 rounds to nearest even. What is too large is infinity, which e4m3 has not:
// there it is NaN.
template <int M> FN u32 to8(float f) {
	const s32 least = M == 3 ? 1 - 7 : 1 - 15;
	const u32 greatest = M == 3 ? 0x7E : 0x7B;
	u32 bits = asBits(f), sign = bits >> 24 & 0x80, abs = bits & 0x7FFFFFFF;
	if (abs > 0x7F800000) return 0x7F;
	s32 e = (s32)(abs >> 23) - 127;
	u32 mant = (abs & 0x7FFFFF) | 0x800000;
	u32 shift = 23 - M + (e < least ? (u32)(least - e) : 0);
	if (shift > 25) shift = 25;
	u32 kept = mant >> shift, rest = mant & ((1u << shift) - 1), half = 1u << (shift - 1);
	if (rest > half || (rest == half && (kept & 1))) kept++;
	u32 code = kept + ((u32)((e < least ? least : e) - least) << M);
	if (code > greatest) return M == 3 ? 0x7F : 0x7C | sign;
	return code | sign;
}

FN float decode(u32 format, u32 b) {
	switch (format) {
	case PartBF16: return fromBF16(b);
	case PartF16: return fromF16(b);
	case PartE4M3: return from8<3>(b);
	}
	return from8<2>(b);
}
FN u32 encode(u32 format, float f) {
	switch (format) {
	case PartBF16: return toBF16(f);
	case PartF16: return toF16(f);
	case PartE4M3: return to8<3>(f);
	}
	return to8<2>(f);
}

FN float joinPart(u32 part, float a, float b) {
	float r;
	switch (nodeOf(part)) {
	case PartAdd: r = AddF321(a, b); break;
	case PartMul: r = MulF321(a, b); break;
	case PartMin: r = MinF321(a, b); break;
	case PartMax: r = MaxF321(a, b); break;
	case PartMinNaN: r = MinNaNF321(a, b); break;
	default: r = MaxNaNF321(a, b);
	}
	if (part & PartRounds) r = decode(formatOf(part), encode(formatOf(part), r));
	return r;
}

FN u32 element(Line l, u32 bit, u32 bits) {
	return (u32)((bit < 64 ? low(l) : high(l)) >> (bit & 63)) & (~0u >> (32 - bits));
}
