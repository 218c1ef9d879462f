// Multicast accesses, in the form that the kernels are built in: native, the
// multimem instructions, or EMULATED, loads from and stores to all ranks' memory
// with arithmetic of our own. Only these functions touch a multicast address. An
// emulated one is opaque, and what hardware would not take ends in a trap.
#pragma once
#include "kinds.h"
#include "nvls_layout.h"

// castOf is the multicast address of a byte of the source, or destination, that
// this rank has at an address: those of all ranks lie at the same place behind a
// multiple of ObjectAlign.
FN u64 castOf(const Args &a, u32 object, u64 begin, u64 at) {
	return a.cast[object] + (at - (begin & ~(u64)(ObjectAlign - 1)));
}

// With HALF_AND_SINGLE_SUMS the kernels have no forms but the sums of f16, bf16
// and f32.
#ifdef HALF_AND_SINGLE_SUMS
enum { KnownForms = SumF64 };
#else
enum { KnownForms = Forms };
#endif

#ifdef EMULATED
#include "nvls_sum.h"

FN void refuse() { asm volatile("trap;" : : : "memory"); }

// Cast is an opaque address, resolved.
struct Cast { u32 object; u64 offset; };

FN Cast resolve(const Args &a, u64 at, u32 width) {
	u64 raw = at - ObjectTag;
	Cast c = {(u32)(raw >> ObjectShift), raw & ((1ull << ObjectShift) - 1)};
	if (c.object >= Objects || at % width != 0 || c.offset + width > a.room[c.object]) {
		refuse();
		c = Cast{0, 0};
	}
	return c;
}

// replica is where a rank has the bytes of an address.
FN u64 replica(const Args &a, const Cast &c, u32 rank) {
	u64 begin = c.object == ObjectStage ? a.stage[rank] : c.object == ObjectSource ? a.src[rank] : a.dst[rank];
	return (begin & ~(u64)(ObjectAlign - 1)) + c.offset;
}

template <u32 Bits, u32 Man> FN Line sumLine(const Args &a, const Cast &c, u32 width, u64 index) {
	u64 lo = 0, hi = 0;
#pragma unroll 1
	for (u32 bit = 0; bit < 8 * width; bit += Bits) {
		u64 v = sumElement<Bits, Man>(a, index++, [&](u32 p) { return loadPiece(replica(a, c, p) + bit / 8, Bits / 8); });
		lo |= bit < 64 ? v << bit : 0;
		hi |= bit < 64 ? 0 : v << (bit & 63);
	}
	return lineOf(lo, hi);
}

// reduceCast is, for each of the elements in width bytes, the first of which is
// number index of the call, the reduction over all ranks.
template <u32 Width> FN Line reduceCast(const Args &a, u64 at, u64 index) {
	u32 access = a.form == SumBF16 || a.form == SumF16 || a.form == SumF32 ? Width : a.form == SumF64 || a.form >= SumU64 ? 8 : 4;
	Cast c = resolve(a, at, access);
	if (access > Width || a.form >= KnownForms) refuse(); // there is no such form
	switch (a.form) {
	case SumBF16: return sumLine<16, 7>(a, c, Width, index);
	case SumF16: return sumLine<16, 10>(a, c, Width, index);
	case SumF32: return sumLine<32, 23>(a, c, Width, index);
	}
#ifdef HALF_AND_SINGLE_SUMS
	return zeroLine();
#else
	if (a.form == SumF64) return sumLine<64, 52>(a, c, Width, index);
	Line l = loadBytes(replica(a, c, 0), Width);
#pragma unroll 1
	for (u32 p = 1; p < a.world; p++) l = joinLines(a.join, l, loadBytes(replica(a, c, p), Width));
	return l;
#endif
}

// storeCast writes Width bytes on all ranks.
template <u32 Width> FN void storeCast(const Args &a, u64 at, Line l) {
	Cast c = resolve(a, at, Width);
#pragma unroll 1
	for (u32 p = 0; p < a.world; p++) storeBytes(replica(a, c, p), l, Width);
}

#else

// Pairs of 16-bit elements, four, two or one at a time.
#define PACKEDFORM(NAME, OP, TYPE)                                                                                 \
	template <u32 Width> FN Line NAME(u64 at) {                                                                  \
		Line l = zeroLine();                                                                                       \
		if (Width == 16) {                                                                                         \
			asm volatile("multimem.ld_reduce.relaxed.sys.global." OP ".v4." TYPE " {%0, %1, %2, %3}, [%4];"           \
				: "=r"(l.w[0]), "=r"(l.w[1]), "=r"(l.w[2]), "=r"(l.w[3]) : "l"(at) : "memory");                          \
		} else if (Width == 8) {                                                                                   \
			asm volatile("multimem.ld_reduce.relaxed.sys.global." OP ".v2." TYPE " {%0, %1}, [%2];"                   \
				: "=r"(l.w[0]), "=r"(l.w[1]) : "l"(at) : "memory");                                                      \
		} else {                                                                                                   \
			asm volatile("multimem.ld_reduce.relaxed.sys.global." OP "." TYPE " %0, [%1];" : "=r"(l.w[0]) : "l"(at) : "memory"); \
		}                                                                                                          \
		return l;                                                                                                  \
	}
PACKEDFORM(castSumBF16, "add.acc::f32", "bf16x2")
PACKEDFORM(castSumF16, "add.acc::f32", "f16x2")
PACKEDFORM(castMinBF16, "min", "bf16x2")
PACKEDFORM(castMaxBF16, "max", "bf16x2")
PACKEDFORM(castMinF16, "min", "f16x2")
PACKEDFORM(castMaxF16, "max", "f16x2")

template <u32 Width> FN Line castSumF32(u64 at) {
	float x = 0, y = 0, z = 0, w = 0;
	if (Width == 16) asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "l"(at) : "memory");
	else if (Width == 8) asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "l"(at) : "memory");
	else asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(x) : "l"(at) : "memory");
	return Line{{asBits(x), asBits(y), asBits(z), asBits(w)}};
}

// Forms without vectors: one access of 8 or 4 bytes after another.
#define WIDEFORM(NAME, OP)                                                                                         \
	template <u32 Width> FN Line NAME(u64 at) {                                                                  \
		u64 lo = 0, hi = 0;                                                                                        \
		asm volatile("multimem.ld_reduce.relaxed.sys.global." OP " %0, [%1];" : "=l"(lo) : "l"(at) : "memory");      \
		if (Width == 16) asm volatile("multimem.ld_reduce.relaxed.sys.global." OP " %0, [%1];" : "=l"(hi) : "l"(at + 8) : "memory"); \
		return lineOf(lo, hi);                                                                                     \
	}
WIDEFORM(castSumU64, "add.u64")
WIDEFORM(castMinS64, "min.s64")
WIDEFORM(castMaxS64, "max.s64")
WIDEFORM(castMinU64, "min.u64")
WIDEFORM(castMaxU64, "max.u64")
WIDEFORM(castAnd, "and.b64")
WIDEFORM(castOr, "or.b64")
WIDEFORM(castXor, "xor.b64")

template <u32 Width> FN Line castSumF64(u64 at) {
	double lo = 0, hi = 0;
	asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f64 %0, [%1];" : "=d"(lo) : "l"(at) : "memory");
	if (Width == 16) asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f64 %0, [%1];" : "=d"(hi) : "l"(at + 8) : "memory");
	return lineOf(asBits64(lo), asBits64(hi));
}

#define NARROWFORM(NAME, OP)                                                                                       \
	template <u32 Width> FN Line NAME(u64 at) {                                                                  \
		Line l = zeroLine();                                                                                       \
		for (u32 i = 0; i < Width / 4; i++)                                                                        \
			asm volatile("multimem.ld_reduce.relaxed.sys.global." OP " %0, [%1];" : "=r"(l.w[i]) : "l"(at + 4 * i) : "memory"); \
		return l;                                                                                                  \
	}
NARROWFORM(castSumU32, "add.u32")
NARROWFORM(castMinS32, "min.s32")
NARROWFORM(castMaxS32, "max.s32")
NARROWFORM(castMinU32, "min.u32")
NARROWFORM(castMaxU32, "max.u32")

#define SUMS(X) X(SumBF16, castSumBF16) X(SumF16, castSumF16) X(SumF32, castSumF32)
#ifdef HALF_AND_SINGLE_SUMS
#define FORMS(X) SUMS(X)
#else
#define FORMS(X)                                                                                                   \
	SUMS(X) X(SumF64, castSumF64) X(MinBF16x2, castMinBF16) X(MaxBF16x2, castMaxBF16) X(MinF16x2, castMinF16)          \
	X(MaxF16x2, castMaxF16) X(SumU32, castSumU32) X(MinS32x1, castMinS32) X(MaxS32x1, castMaxS32) X(MinU32x1, castMinU32)  \
	X(MaxU32x1, castMaxU32) X(SumU64, castSumU64) X(MinS64x1, castMinS64) X(MaxS64x1, castMaxS64) X(MinU64x1, castMinU64)  \
	X(MaxU64x1, castMaxU64) X(AndB64, castAnd) X(OrB64, castOr) X(XorB64, castXor)
#endif

template <u32 Width> FN Line reduceCast(const Args &a, u64 at, u64) {
	switch (a.form) {
#define CASE(F, NAME) case F: return NAME<Width>(at);
		FORMS(CASE)
#undef CASE
	}
	return zeroLine();
}

template <u32 Width> FN void storeCast(const Args &, u64 at, Line l) {
	if (Width == 16)
		asm volatile("multimem.st.relaxed.sys.global.v4.bf16x2 [%0], {%1, %2, %3, %4};" : : "l"(at), "r"(l.w[0]), "r"(l.w[1]), "r"(l.w[2]), "r"(l.w[3]) : "memory");
	else if (Width == 8) asm volatile("multimem.st.relaxed.sys.global.b64 [%0], %1;" : : "l"(at), "l"(low(l)) : "memory");
	else asm volatile("multimem.st.relaxed.sys.global.b32 [%0], %1;" : : "l"(at), "r"(l.w[0]) : "memory");
}
#endif
