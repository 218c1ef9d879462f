// The tree over the ranks, rounded to nearest even at every node in the element
// type: the lower half of the ranks and the upper, each a tree.
#pragma once
#include "rlkernel_turn.h"

// A type's add takes two elements of 16 bits in a word, or one alone in the low
// half.
struct SumBF16 {
	enum { Size = 2 };
	FN u32 add(u32 x, u32 y) { u32 r; asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); return r; }
};
struct SumF16 {
	enum { Size = 2 };
	FN u32 add(u32 x, u32 y) { u32 r; asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y)); return r; }
};
struct SumF32 {
	enum { Size = 4 };
	FN u32 add(u32 x, u32 y) { float r; asm("add.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(asFloat(x)), "f"(asFloat(y))); return asBits(r); }
};

// node stores at dst the tree of the words of Width bytes at an offset into every
// payload. All are loaded before the first is used.
template <class Sum, u32 Width, u32 World> FN void node(const Args &a, u64 dst, u64 offset) {
	u32 v[World];
#pragma unroll
	for (u32 p = 0; p < World; p++) v[p] = (u32)loadPiece(payloadOf(a, p) + offset, Width);
#pragma unroll
	for (u32 half = 1; half < World; half *= 2)
#pragma unroll
		for (u32 p = 0; p < World; p += 2 * half) v[p] = Sum::add(v[p], v[p + half]);
	storePiece(dst, v[0], Width);
}

// reduceAs is: for i := range count { dst[i] = tree(p => payload[p][skip+i]) }
// an element a thread and trip, or, in pairs, two and a last one.
template <class Sum, u32 World> FN void reduceAs(const Turn &t, const Args &a) {
	enum { Size = Sum::Size };
	u64 dst = a.dst[t.rank], from = (a.skip + (a.each ? t.rank * a.count : 0)) * Size;
	u64 first = threadOfRank(t), stride = threadsOfRank(a), done = 0;
	if (Size == 2 && (a.flags & FlagPairs)) {
		done = a.count & ~1ull;
#pragma unroll 1
		for (u64 i = first; i < a.count / 2; i += stride) node<Sum, 4, World>(a, dst + 4 * i, from + 4 * i);
	}
#pragma unroll 1
	for (u64 i = done + first; i < a.count; i += stride) node<Sum, Size, World>(a, dst + Size * i, from + Size * i);
}

template <class Sum> FN void reduceIn(const Turn &t, const Args &a) {
	switch (a.world) {
	case 1: reduceAs<Sum, 1>(t, a); return;
	case 2: reduceAs<Sum, 2>(t, a); return;
	case 4: reduceAs<Sum, 4>(t, a); return;
	}
	reduceAs<Sum, 8>(t, a);
}

FN void reduce(const Turn &t, const Args &a) {
	switch (a.type) {
	case TypeBF16: reduceIn<SumBF16>(t, a); return;
	case TypeF16: reduceIn<SumF16>(t, a); return;
	}
	reduceIn<SumF32>(t, a);
}
