// The arithmetic of the emulated switch: one element of a sum over all ranks,
// added exactly, in what of the terms the switch's window keeps, and rounded
// once.
#pragma once
#include "nvls_layout.h"

// Digits is a number that comes 32 bits at a time, lowest first: its five highest
// digits from the leading one down, and whether any bit is set below.
struct Digits {
	u32 x0, x1, x2, x3, x4, rest; // the last five that came
	u32 y0, y1, y2, y3, y4, below; // the same when y0, the last that is not 0, came
	s32 top; // its place; -1 while all were 0
};

FN void feed(Digits &d, u32 digit, s32 place) {
	d.rest |= d.x4;
	d.x4 = d.x3;
	d.x3 = d.x2;
	d.x2 = d.x1;
	d.x1 = d.x0;
	d.x0 = digit;
	if (digit == 0) return;
	d.y0 = d.x0;
	d.y1 = d.x1;
	d.y2 = d.x2;
	d.y3 = d.x3;
	d.y4 = d.x4;
	d.below = d.rest;
	d.top = place;
}

// draw is the direction of an element, a number drawn from seed and index.
FN u64 draw(u64 seed, u64 index) {
	u64 z = seed * 0x9E3779B97F4A7C15ull + index + 0x632BE59BD9B4E019ull;
#pragma unroll 1
	for (int i = 0; i < 2; i++) {
		z ^= z >> 30;
		z *= 0xBF58476D1CE4E5B9ull;
		z ^= z >> 27;
		z *= 0x94D049BB133111EBull;
		z ^= z >> 31;
	}
	return z;
}

FN u32 leadingZeros(u32 x) { u32 n; asm("clz.b32 %0, %1;" : "=r"(n) : "r"(x)); return n; }
// shifted is the upper word of hi:lo << n, n < 32.
FN u32 shifted(u32 hi, u32 lo, u32 n) { return (u32)(((u64)hi << 32 | lo) << n >> 32); }

// goesUp says whether a magnitude of that last bit goes up, frac being the first
// 64 bits of what was cut off, and sticky whether more was.
FN bool goesUp(const Args &a, u64 index, bool odd, u64 frac, bool sticky) {
	const u64 half = 1ull << 63;
	switch (a.dir) {
	case TowardZero: return false;
	case Away: return frac != 0 || sticky;
	case Seeded: {
		u64 d = draw(a.seed, index);
		return d < frac || (d == frac && sticky);
	}
	}
	return frac > half || (frac == half && (sticky || odd));
}

// A Term of a format of Bits bits with Man bits of mantissa is
// ±mant * 2^(field - 1) in units of the least subnormal.
template <u32 Bits, u32 Man> struct Term {
	static constexpr u64 Sign = 1ull << (Bits - 1), Hidden = 1ull << Man;
	static constexpr s32 Fields = (1 << (Bits - 1 - Man)) - 1, Bias = Fields >> 1;
	static constexpr u64 Infinity = (u64)Fields << Man;
};

// digitOf is the digit at a place of the magnitude of a pattern, in units of the
// last place of numbers of field base, toward zero.
template <u32 Bits, u32 Man> FN u32 digitOf(u64 v, s32 base, s32 place) {
	typedef Term<Bits, Man> T;
	u64 mag = v & (T::Sign - 1), mant = mag & (T::Hidden - 1);
	s32 field = (s32)(mag >> Man);
	if (field) mant |= T::Hidden;
	else field = 1;
	s32 down = base - field; // bits that are cut off
	if (down > 0) mant = down < 64 ? mant >> down : 0;
	s32 from = 32 * place + (down < 0 ? down : 0);
	if (from >= 64 || from <= -32) return 0;
	return from >= 0 ? (u32)(mant >> from) : (u32)mant << -from;
}

// sumElement is the sum of get(p) over the ranks:
//   Infinities and NaNs as IEEE has them, the NaN canonical; no -0
//   e = exponent of the largest term; anchor = 16*ceil(e/16)
//   S = sum of the terms, each cut toward zero to a multiple of 2^(anchor-termBits)
//   |S| < 2^(anchor-resultBits) reads +0; else S is rounded once
// where termBits or resultBits of 0 stand for no limit.
template <u32 Bits, u32 Man, class Get> FN u64 sumElement(const Args &a, u64 index, Get get) {
	typedef Term<Bits, Man> T;
	s32 top = 0, bottom = T::Fields;
	bool nan = false, plus = false, minus = false;
#pragma unroll 1
	for (u32 p = 0; p < a.world; p++) {
		u64 v = get(p), mag = v & (T::Sign - 1);
		if (mag >= T::Infinity) {
			nan |= mag > T::Infinity;
			if (v & T::Sign) minus = true;
			else plus = true;
		} else if (mag) {
			s32 field = (s32)(mag >> Man);
			if (field == 0) field = 1;
			if (field > top) top = field;
			if (field < bottom) bottom = field;
		}
	}
	if (nan || (plus && minus)) return Bits == 64 ? 0x7FF8000000000000ull : T::Sign - 1;
	if (plus) return T::Infinity;
	if (minus) return T::Infinity | T::Sign;
	if (top == 0) return 0;
	s32 anchor = (top - T::Bias + 15) >> 4 << 4, base = bottom;
	if (a.termBits) {
		s32 least = anchor - (s32)a.termBits + T::Bias + (s32)Man;
		if (base < least) base = least;
	}
	// The terms are below 2^(top+1); carries and a sign come on top.
	s32 places = (top - base + (s32)Man + 1 + 8 + 31) >> 5;
	Digits s = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1}, n = s; // the sum and its negative
	s64 acc = 0;
	u32 carry = 1;
#pragma unroll 1
	for (s32 k = 0; k < places; k++) {
#pragma unroll 1
		for (u32 p = 0; p < a.world; p++) {
			u64 v = get(p);
			s64 digit = (s64)(u64)digitOf<Bits, Man>(v, base, k);
			acc += v & T::Sign ? -digit : digit;
		}
		u32 digit = (u32)acc;
		acc >>= 32;
		feed(s, digit, k);
		u64 flipped = (u64)~digit + carry;
		feed(n, (u32)flipped, k);
		carry = (u32)(flipped >> 32);
	}
	bool negative = acc < 0;
	if (negative) s = n;
	if (s.top < 0) return 0;
	u32 up = leadingZeros(s.y0);
	s32 lead = 32 * s.top + 31 - (s32)up, field = base + lead - (s32)Man;
	if (a.resultBits && field - T::Bias < anchor - (s32)a.resultBits) return 0;
	u64 sign = negative ? T::Sign : 0;
	if (field >= T::Fields) return (a.dir == TowardZero ? T::Infinity - 1 : T::Infinity) | sign;
	u64 hi = (u64)shifted(s.y0, s.y1, up) << 32 | shifted(s.y1, s.y2, up);
	u64 lo = (u64)shifted(s.y2, s.y3, up) << 32 | shifted(s.y3, s.y4, up);
	// A subnormal sum is exact: no term has bits below the least subnormal.
	if (field < 1) return hi >> (63 - Man + 1 - field) | sign;
	u64 mag = ((u64)(field - 1) << Man) + (hi >> (63 - Man));
	u64 frac = hi << (Man + 1) | lo >> (63 - Man);
	bool sticky = lo << (Man + 1) != 0 || s.y4 << up != 0 || s.below != 0;
	if (goesUp(a, index, mag & 1, frac, sticky)) mag++;
	return mag | sign;
}
