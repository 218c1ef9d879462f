// One unit of a reduction: the line, or element, that the ranks' lines become.
#pragma once
#include "access.h"
#include "parts.h"

FN bool scalesLines(u32 scale) { return scale >= PremulBF16 && scale <= PremulF64; }

// leaf is an element of a line as the tree takes it.
FN float leaf(u32 part, u32 scale, Line l, u32 bit, u32 bits, u32 world) {
	u32 format = formatOf(part);
	float x = decode(format, element(l, bit, bits));
	if (scale == PremulPart) {
		float c = decode(format, encode(format, divF32(1.0f, (float)world)));
		x = decode(format, encode(format, MulF321(x, c)));
	}
	return x;
}

// finishPart is the total as an element.
FN u32 finishPart(u32 part, u32 scale, float x, u32 world) {
	if (scale == DivPart) x = divF32(x, (float)world);
	return encode(formatOf(part), x);
}

FN void put(u64 &lo, u64 &hi, u32 bit, u32 v) {
	u64 x = (u64)v << (bit & 63);
	lo |= bit < 64 ? x : 0;
	hi |= bit < 64 ? 0 : x;
}

// treePart is tree for one element of m <= 8 lines. Nodes are taken in the order
// of the last leaf below them, as a binary counter does, so that there is one
// join: for i := range m { x = leaf(i); for k := 0; i>>k&1 == 1; k++ { x = join(level[k], x) }; level[k] = x }
// and then the levels left are joined from low to high.
FN float treePart(u32 part, u32 scale, const Line (&l)[8], u32 m, u32 bit, u32 bits, u32 world) {
	float l0 = 0, l1 = 0, l2 = 0, x = 0;
#pragma unroll 1
	for (u32 i = 0; i < m; i++) {
		bool b0 = i & 1, b1 = i & 2, b2 = i & 4;
		Line v = pick(b2, pick(b1, pick(b0, l[0], l[1]), pick(b0, l[2], l[3])), pick(b1, pick(b0, l[4], l[5]), pick(b0, l[6], l[7])));
		x = leaf(part, scale, v, bit, bits, world);
		bool last = i + 1 == m, going = true;
#pragma unroll 1
		for (u32 k = 0; k < 3 && going; k++) {
			if (i >> k & 1) x = joinPart(part, k == 0 ? l0 : k == 1 ? l1 : l2, x);
			else if (!last) {
				if (k == 0) l0 = x;
				if (k == 1) l1 = x;
				if (k == 2) l2 = x;
				going = false;
			}
		}
	}
	return x;
}

// combine is, for every element of a line,
// tree(0, world), where tree(lo, hi) is the input of rank lo if it is alone, else
// join(tree(lo, lo+p), tree(lo+p, hi)) with p the largest power of two below hi-lo.
// Eight lines are in flight at a time. Groups of eight are full subtrees, and the
// fold over them is a binary counter. fetch(g, m, l) loads the lines of ranks
// 8g to 8g+m. Where elements are taken one by one and there is more than one
// group, they are fetched anew for each.
template <class Fetch> FN Line combine(u64 type, u32 world, u64 inv, Fetch fetch) {
	u32 join = joinOf(type), scale = scaleOf(type), part = partOf(type), bits = 8u << sizeLog(type), bit = 0;
	bool anew = part && world > 8;
	u64 lo = 0, hi = 0;
	Line acc = zeroLine(), l0 = acc, l1 = acc, l2 = acc, l3 = acc;
#pragma unroll 1
	do {
#pragma unroll 1
		for (u32 g = 0; 8 * g < world; g++) {
			u32 m = world - 8 * g < 8 ? world - 8 * g : 8;
			Line l[8];
			fetch(g, m, l);
			if (scalesLines(scale)) premul(scale, l, inv);
			if (part) {
				u32 end = anew ? bit + bits : 128;
#pragma unroll 1
				for (u32 b = bit; b < end; b += bits) {
					float x = treePart(part, scale, l, m, b, bits, world);
					acc.w[0] = asBits(x);
					if (!anew) put(lo, hi, b, finishPart(part, scale, x, world));
				}
			} else {
				acc = treeOf(join, l, m);
			}
			bool last = 8 * (g + 1) >= world, going = g != 0 || !last;
#pragma unroll 1
			for (u32 k = 0; k < 4 && going; k++) {
				Line of = pick(k > 1, pick(k > 0, l0, l1), pick(k > 2, l2, l3));
				if (g >> k & 1) {
					if (part) acc.w[0] = asBits(joinPart(part, asFloat(of.w[0]), asFloat(acc.w[0])));
					else acc = joinLines(join, of, acc);
				} else if (!last) {
					l0 = pick(k == 0, l0, acc);
					l1 = pick(k == 1, l1, acc);
					l2 = pick(k == 2, l2, acc);
					l3 = pick(k == 3, l3, acc);
					going = false;
				}
			}
		}
		if (anew) put(lo, hi, bit, finishPart(part, scale, asFloat(acc.w[0]), world));
		bit += bits;
	} while (anew && bit < 128);
	if (part) return lineOf(lo, hi);
	return divide(scale, acc, world);
}
