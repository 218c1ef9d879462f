// The kernels of tandem-nvls. A launch does one call for all ranks of one GPU, a
// group of blocks each. Data goes through team memory: each rank copies its
// source into its stage, the switch reduces or spreads words there, and each rank
// copies what it wants out, so offsets of the caller's buffers, equal or not,
// matter to those copies only.
#include "combine.h"
#include "nvls_fabric.h"
#include "nvls_protocol.h"

// The first RestBytes of a half of a stage are for what is too short for words of
// every rank; the rest is divided over the blocks.
enum { RestBytes = 2048 };

FN u64 partBytes(const Args &a) { return (a.stageHalf - RestBytes) / a.blocks & ~(u64)15; }

// stageRest puts the elements behind main into the own stage: those of every
// block, each block at a multiple of 16 where there are several.
FN void stageRest(const Call &c, const Args &a, u64 main, u64 bytes, u32 parts) {
	u32 each = (u32)(bytes - main) >> a.log;
#pragma unroll 1
	for (u32 i = thread(); i < each * parts; i += threads()) {
		u32 p = i / each, at = i % each << a.log;
		storePiece(a.stage[c.rank] + 16 * p + at, loadPiece(a.src[c.rank] + p * bytes + main + at, 1u << a.log), 1u << a.log);
	}
}

// reduceRest is what the switch leaves: every rank for itself, in the fixed tree,
// from the peers' stages, with stores of exact width:
// for i := range rest { dst[main+i] = tree(p => stage[p][skip+i]) }
FN void reduceRest(const Call &c, const Args &a, u64 main, u64 bytes, u32 skip) {
	u32 each = (u32)(bytes - main) >> a.log, size = 1u << a.log;
	u64 type = (a.log & 0xff) | (u64)(a.join & 0xff) << 8;
#pragma unroll 1
	for (u32 i = thread(); i < each; i += threads()) {
		u32 at = i << a.log;
		Line r = combine(type, a.world, 0, [&](u32 g, u32 m, Line(&l)[8]) {
#pragma unroll
			for (int k = 0; k < 8; k++) l[k] = k < (int)m ? lineOf(loadPiece(a.stage[8 * g + k] + skip + at, size), 0) : zeroLine();
		});
		storePiece(a.dst[c.rank] + main + at, low(r), size);
	}
}

// nvls_reduce does all_reduce and reduce_scatter. With unit = 16*world bytes for
// all_reduce and 16 for each block of reduce_scatter, and main the multiple of
// unit below the length of a block:
// for i := range main { dst[rank][i] = switch(p => src[p][block*count + i]) }
// for i := main.. { dst[rank][i] = tree(p => src[p][block*count + i]) }
// with block = rank for reduce_scatter and 0 for all_reduce.
ROOMY void nvls_reduce(const __grid_constant__ Args a) {
	Call c;
	if (!enter(c, a)) return;
	bool go = awaitHeaders(c, a), scatter = a.collective == ReduceScatter, first = true;
	if (!inject(c, a, StepAgreed)) return;
	u64 bytes = a.count << a.log, unit = scatter ? 16 : 16 * a.world, main = bytes / unit * unit;
	u64 row = share(main / unit, c.block, a.blocks), end = share(main / unit, c.block + 1, a.blocks);
	u64 part = partBytes(a), most = scatter ? part / 16 / (a.world + 1) : part / unit, half = 0;
	u64 src = a.src[c.rank], dst = a.dst[c.rank];
	bool rest = main < bytes && c.block == a.blocks - 1;
#pragma unroll 1
	while (go && (first || row < end)) {
		u64 rows = end - row < most ? end - row : most, lo = row * unit, length = rows * unit;
		u64 here = half + RestBytes + c.block * part, own = a.stage[c.rank] + here;
		gather(scatter ? a.world : 1, 0, length, a.log,
			[&](u32 p) { return src + p * bytes + lo; }, [&](u32 p) { return own + p * length; }, [&](u32) { return length; });
		if (first && rest) stageRest(c, a, main, bytes, scatter ? a.world : 1);
		if (!(go = meet(c, a))) break;
		if (first && !inject(c, a, StepData)) return;
		if (first && rest) reduceRest(c, a, main, bytes, scatter ? 16 * c.rank : 0);
		u64 mine = 16 * c.rank * rows, out = scatter ? 16 * a.world * rows : 0;
		u64 from = scatter ? c.rank * bytes + lo : lo + mine; // place in the source of the first word
#pragma unroll 1
		for (u64 w = 16 * thread(); w < 16 * rows; w += 16 * threads()) {
			u64 at = a.cast[ObjectStage] + here + mine + w;
			Line l = reduceCast<16>(a, at, (from + w) >> a.log);
			if (scatter) storeLine(own + out + w, l);
			else storeCast<16>(a, at, l);
		}
		if (!(go = meet(c, a))) break;
		if (first && !inject(c, a, StepBarrier)) return;
		gather(1, 0, length, a.log, [&](u32) { return own + out; }, [&](u32) { return dst + lo; }, [&](u32) { return length; });
		half ^= a.stageHalf;
		row += rows;
		first = false;
	}
	if (!inject(c, a, StepLeave)) return;
	finish(c, a);
}

// nvls_gather does all_gather:
// for p, i { dst[rank][p*count+i] = src[p][i] }
// Words that reach beyond the source are filled up with zeros in the stage.
KERNEL void nvls_gather(const __grid_constant__ Args a) {
	Call c;
	if (!enter(c, a)) return;
	bool go = awaitHeaders(c, a), first = true;
	if (!inject(c, a, StepAgreed)) return;
	u64 bytes = a.count << a.log, rows = (bytes + 15) / 16;
	u64 row = share(rows, c.block, a.blocks), end = share(rows, c.block + 1, a.blocks);
	u64 part = partBytes(a), most = part / 16 / a.world, half = 0;
	u64 src = a.src[c.rank], dst = a.dst[c.rank];
	bool tight = (a.flags & FlagInPlace) != 0;
#pragma unroll 1
	while (go && (first || row < end)) {
		u64 lo = 16 * row, length = 16 * (end - row < most ? end - row : most);
		u64 here = half + RestBytes + c.block * part;
#pragma unroll 1
		for (u64 w = 16 * thread(); w < length; w += 16 * threads()) {
			u32 n = bytes - lo - w < 16 ? (u32)(bytes - lo - w) : 16;
			storeCast<16>(a, a.cast[ObjectStage] + here + c.rank * length + w, loadUnit(src + lo + w, n, src, src + bytes, tight));
		}
		if (first && !inject(c, a, StepData)) return;
		if (!(go = meet(c, a))) break;
		if (first && !inject(c, a, StepBarrier)) return;
		u64 size = bytes - lo < length ? bytes - lo : length;
		gather(a.world, c.rank, length, a.log,
			[&](u32 p) { return p == c.rank && dst + p * bytes == src ? src + lo : a.stage[c.rank] + here + p * length; },
			[&](u32 p) { return dst + p * bytes + lo; }, [&](u32) { return size; });
		half ^= a.stageHalf;
		row += length / 16;
		first = false;
	}
	if (!inject(c, a, StepLeave)) return;
	finish(c, a);
}
