// One node of the tree over 16 bytes of elements: join(a, b) is, for every
// element, a op b rounded once, to nearest even, in the element type.
#pragma once
#include "memory.h"

#define PACKED(NAME, INSTR)                                                             \
	struct NAME {                                                                      \
		FN Line join(Line a, Line b) {                                          \
			Line r;                                                                    \
			for (int i = 0; i < 4; i++) asm(INSTR " %0, %1, %2;" : "=r"(r.w[i]) : "r"(a.w[i]), "r"(b.w[i])); \
			return r;                                                                  \
		}                                                                              \
	};

PACKED(AddBF16, "add.rn.bf16x2")
PACKED(MulBF16, "mul.rn.bf16x2")
PACKED(MinBF16, "min.bf16x2")
PACKED(MaxBF16, "max.bf16x2")
PACKED(MinNaNBF16, "min.NaN.bf16x2")
PACKED(MaxNaNBF16, "max.NaN.bf16x2")
PACKED(AddF16, "add.rn.f16x2")
PACKED(MulF16, "mul.rn.f16x2")
PACKED(MinF16, "min.f16x2")
PACKED(MaxF16, "max.f16x2")
PACKED(MinNaNF16, "min.NaN.f16x2")
PACKED(MaxNaNF16, "max.NaN.f16x2")

#define SINGLE(NAME, INSTR)                                                              \
	FN float NAME##1(float a, float b) { float r; asm(INSTR " %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; } \
	struct NAME {                                                                      \
		FN Line join(Line a, Line b) {                                          \
			Line r;                                                                    \
			for (int i = 0; i < 4; i++) r.w[i] = asBits(NAME##1(asFloat(a.w[i]), asFloat(b.w[i]))); \
			return r;                                                                  \
		}                                                                              \
	};

SINGLE(AddF32, "add.rn.f32")
SINGLE(MulF32, "mul.rn.f32")
SINGLE(MinF32, "min.f32")
SINGLE(MaxF32, "max.f32")
SINGLE(MinNaNF32, "min.NaN.f32")
SINGLE(MaxNaNF32, "max.NaN.f32")

FN float divF32(float a, float b) { float r; asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
FN double divF64(double a, double b) { double r; asm("div.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b)); return r; }

// f64 has a NaN rule of its own: an operand is quieted and passed on, the first
// one if both are NaN, and an invalid operation gives 0xFFF8000000000000.
enum : u64 { Quiet64 = 1ull << 51, Inf64 = 0x7FFull << 52, Sign64 = 1ull << 63 };
FN bool isNaN64(u64 a) { return (a & ~Sign64) > Inf64; }
FN u64 settle64(u64 a, u64 b, double r) {
	u64 bits = asBits64(r);
	if (isNaN64(bits)) bits = Sign64 | Inf64 | Quiet64;
	if (isNaN64(b)) bits = b | Quiet64;
	if (isNaN64(a)) bits = a | Quiet64;
	return bits;
}
FN u64 addF64(u64 a, u64 b) { double r; asm("add.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(asDouble(a)), "d"(asDouble(b))); return settle64(a, b, r); }
FN u64 mulF64(u64 a, u64 b) { double r; asm("mul.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(asDouble(a)), "d"(asDouble(b))); return settle64(a, b, r); }

// order64 maps values to integers in their order, -0 just below +0.
FN s64 order64(u64 a) { return (a & Sign64) ? -1 - (s64)(a & ~Sign64) : (s64)a; }
template <bool Max, bool Propagate> FN u64 pick64(u64 a, u64 b) {
	bool an = isNaN64(a), bn = isNaN64(b), less = order64(a) < order64(b);
	u64 r = less != Max ? a : b;
	if (bn) r = a;
	if (an) r = b;
	if (Propagate ? an || bn : an && bn) r = Inf64 | Quiet64;
	return r;
}

#define WIDE(NAME, EXPR)                                                                 \
	struct NAME {                                                                      \
		FN u64 one(u64 a, u64 b) { return EXPR; }                                \
		FN Line join(Line a, Line b) { return lineOf(one(low(a), low(b)), one(high(a), high(b))); } \
	};

WIDE(AddF64, addF64(a, b))
WIDE(MulF64, mulF64(a, b))
WIDE(MinF64, (pick64<false, false>(a, b)))
WIDE(MaxF64, (pick64<true, false>(a, b)))
WIDE(MinNaNF64, (pick64<false, true>(a, b)))
WIDE(MaxNaNF64, (pick64<true, true>(a, b)))
WIDE(AddI64, a + b)
WIDE(MulI64, a *b)
WIDE(MinS64, (s64)a < (s64)b ? a : b)
WIDE(MaxS64, (s64)a > (s64)b ? a : b)
WIDE(MinU64, a < b ? a : b)
WIDE(MaxU64, a > b ? a : b)
WIDE(AndBits, a &b)
WIDE(OrBits, a | b)
WIDE(XorBits, a ^ b)

#define NARROW(NAME, EXPR)                                                               \
	struct NAME {                                                                      \
		FN u32 one(u32 a, u32 b) { return EXPR; }                                \
		FN Line join(Line a, Line b) {                                          \
			return Line{{one(a.w[0], b.w[0]), one(a.w[1], b.w[1]), one(a.w[2], b.w[2]), one(a.w[3], b.w[3])}}; \
		}                                                                              \
	};

NARROW(AddI32, a + b)
NARROW(MulI32, a *b)
NARROW(MinS32, (s32)a < (s32)b ? a : b)
NARROW(MaxS32, (s32)a > (s32)b ? a : b)
NARROW(MinU32, a < b ? a : b)
NARROW(MaxU32, a > b ? a : b)

// Narrow integers, several in a word. top has the top bit of each set.
FN u32 addLanes(u32 a, u32 b, u32 top) { return ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top); }
template <int Bits> FN u32 mulLanes(u32 a, u32 b) {
	u32 r = 0;
	for (int i = 0; i < 32; i += Bits) r |= (((a >> i) * (b >> i)) & ((1u << Bits) - 1)) << i;
	return r;
}
template <int Bits, bool Signed, bool Max> FN u32 pickLanes(u32 a, u32 b) {
	u32 r = 0;
	for (int i = 0; i < 32; i += Bits) {
		const u32 mask = ((1u << Bits) - 1) << i;
		u32 x = a << (32 - Bits - i), y = b << (32 - Bits - i);
		x &= ~0u << (32 - Bits);
		y &= ~0u << (32 - Bits);
		bool less = Signed ? (s32)x < (s32)y : x < y;
		r |= (less != Max ? a : b) & mask;
	}
	return r;
}

NARROW(AddI16, addLanes(a, b, 0x80008000u))
NARROW(MulI16, mulLanes<16>(a, b))
NARROW(MinS16, (pickLanes<16, true, false>(a, b)))
NARROW(MaxS16, (pickLanes<16, true, true>(a, b)))
NARROW(MinU16, (pickLanes<16, false, false>(a, b)))
NARROW(MaxU16, (pickLanes<16, false, true>(a, b)))
NARROW(AddI8, addLanes(a, b, 0x80808080u))
NARROW(MulI8, mulLanes<8>(a, b))
NARROW(MinS8, (pickLanes<8, true, false>(a, b)))
NARROW(MaxS8, (pickLanes<8, true, true>(a, b)))
NARROW(MinU8, (pickLanes<8, false, false>(a, b)))
NARROW(MaxU8, (pickLanes<8, false, true>(a, b)))
