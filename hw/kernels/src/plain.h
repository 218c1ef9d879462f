// The joins that the kernels of plain calls have, and their trees.
#pragma once
#include "kinds.h"

// The joins that the kernels of plain calls do; the others are long.
#define PLAIN(X)                                                        \
	X(AddBF16) X(MulBF16) X(MinBF16) X(MaxBF16) X(MinNaNBF16) X(MaxNaNBF16) \
	X(AddF16) X(MulF16) X(MinF16) X(MaxF16) X(MinNaNF16) X(MaxNaNF16)   \
	X(AddF32) X(MulF32) X(MinF32) X(MaxF32) X(MinNaNF32) X(MaxNaNF32)   \
	X(AddF64) X(AddI8) X(AddI16) X(AddI32) X(MulI32) X(MinS32) X(MaxS32) X(MinU32) X(MaxU32) \
	X(AddI64) X(MinS64) X(MaxS64) X(MinU64) X(MaxU64) X(AndBits) X(OrBits) X(XorBits)

FN Line plainTree(u32 join, const Line (&l)[8], u32 m) {
	switch (join) {
#define CASE(J) case Kind##J: return tree<J>(l, m);
		PLAIN(CASE)
#undef CASE
	}
	return l[0];
}

// plainPair is plainTree of two. The commonest come first: a table of jumps is
// memory that has to be fetched.
FN Line plainPair(u32 join, Line a, Line b) {
	if (join == KindAddBF16) return AddBF16::join(a, b);
	if (join == KindAddF16) return AddF16::join(a, b);
	if (join == KindAddF32) return AddF32::join(a, b);
	switch (join) {
#define CASE(J) case Kind##J: return J::join(a, b);
		PLAIN(CASE)
#undef CASE
	}
	return a;
}
