// The kernels of tandem. A launch does one call for all ranks of one GPU: rank
// number blockIdx / blocks of that GPU, with blocks thread blocks each.
#include "combine.h"
#include "lines.h"
#include "pushed.h"

#define PARAMS                                                                              \
	u64 table, u64 words, u64 generation, u64 hash, u64 faultCycles, u32 collective, u32 path, u32 blocks, \
		u32 lanes, u32 root, u32 flags, u32 faultRank, u32 faultStep, const __grid_constant__ Near near, \
		const __grid_constant__ Words inl, const __grid_constant__ Team team

#define CALL                                                                                \
	Call c;                                                                                 \
	c.near = &near;                                                                         \
	c.team = &team;                                                                         \
	c.table = table;                                                                        \
	c.hash = hash;                                                                          \
	c.blocks = blocks;                                                                      \
	c.faultRank = faultRank;                                                                \
	c.faultStep = faultStep;                                                                \
	c.faultCycles = faultCycles;                                                            \
	c.differs = flags & FlagDiffers;

#define BEGIN                                                                               \
	CALL                                                                                    \
	Job job = {words ? (const u64 *)words : inl.w, collective, path, lanes, root, flags};    \
	auto word = [&](u64 i) -> u64 { return loadParam(job.words + i); };                                 \
	Found found;                                                                            \
	if (!look<0>(c, generation, found) || !open<true, true, 0>(c, generation, found)) return; \
	if (!inject(c, StepHeader)) return;

#define PUSH(W, FAULTS)                                                                     \
	CALL                                                                                    \
	(void)words, (void)path;                                                                \
	auto word = [&](u32 i) -> u64 { return inl.w[i]; };                                     \
	if constexpr (W == 2) if (lanes == 1 && word(0) << sizeLog(word(1)) <= 16ull * threads() * blocks) { \
		pushPair<FAULTS>(c, generation, collective, root, flags, word); \
		return;                                                                             \
	}                                                                                       \
	pushCall<W, FAULTS>(c, generation, lanes, collective, root, flags, word);

// tandem_push2 and tandem_push do small calls of all collectives, over two ranks
// and over up to eight. Those in which a fault is injected have kernels of their
// own: the test for it takes a third of the instructions of the others.
LEAN void tandem_push2(PARAMS) { PUSH(2, false) }
ROOMY void tandem_push(PARAMS) { PUSH(8, false) }
LEAN void tandem_push2_faults(PARAMS) { PUSH(2, true) }
ROOMY void tandem_push_faults(PARAMS) { PUSH(8, true) }

// pushLanes sends what this block has to send of every lane, and stamps.
template <class Word> FN void pushLanes(Call &c, const Job &job, Word word) {
	u64 slot = slotUnits(c), base = 0;
	bool silent = job.path != PathPush || (job.collective == Broadcast && job.root != c.rank);
#pragma unroll 1
	for (u32 i = 0; i < job.lanes && !silent; i++) {
		Lane l = laneOf(c, i, word);
		Payload y;
		y.src = word(l.at + 2 + c.rank);
		y.bytes = l.bytes;
		y.base = base;
		y.lo = share(l.units, c.block, c.blocks);
		y.hi = share(l.units, c.block + 1, c.blocks);
		y.perPeer = job.collective == ReduceScatter || job.collective == AllToAll;
		y.tight = (job.flags & FlagInPlace) != 0;
		send(c, y, slot);
		base += l.units;
	}
	if (stamping(c)) stamp(c, slot, base);
}

// tandem_reduce does all_reduce and reduce_scatter:
// for i := range count { dst[rank][i] = tree(p => src[p][block*count + i]) }
// with block = rank for reduce_scatter and 0 for all_reduce.
ROOMY void tandem_reduce(PARAMS) {
	BEGIN
	pushLanes(c, job, word);
	if (!inject(c, StepPushed)) return;
	bool go = awaitHeaders(c);
	if (!inject(c, StepAgreed)) return;
	bool push = path == PathPush, staged = path == PathStaged, shots = path == PathTwoShot;
	u64 slot = slotUnits(c), base = 0, room = c.team->stage;
	u32 scatter = collective == ReduceScatter, half = 0;
	bool tight = (flags & FlagInPlace) != 0;
#pragma unroll 1
	for (u32 i = 0; i < lanes && go; i++) {
		Lane l = laneOf(c, i, word);
		u64 mine = word(l.at + 2 + c.rank), inv = inverse(scaleOf(l.type), c.world);
		// The units of this block, in chunks that fit its part of the stage.
		u64 first = 0, all = l.units;
		if (shots) {
			first = share(l.units, c.rank, c.world);
			all = share(l.units, c.rank + 1, c.world) - first;
		}
		u64 end = first + share(all, c.block + 1, c.blocks);
		first += share(all, c.block, c.blocks);
		u64 part = room / c.blocks / 16, chunk = staged ? part / (scatter ? c.world : 1) : end - first;
#pragma unroll 1
		for (; first < end && go; first += chunk) {
			u64 units = end - first < chunk ? end - first : chunk;
			u64 lo = 16 * first, hi = 16 * (first + units);
			if (hi > l.bytes) hi = l.bytes;
			u64 dst = word(l.at + 2 + c.world + c.rank) + lo, skip = lo + (scatter ? c.rank * l.bytes : 0);
			if (staged) {
				u64 here = half * room + c.block * part * 16, to = stageOf(c, c.rank) + here;
				gather<1>(scatter ? c.world : 1, 0, hi - lo, l.log,
					[&](u32 p) { return mine + lo + p * l.bytes; }, [&](u32 p) { return to + p * chunk * 16; }, [&](u32) { return hi - lo; });
				if (!(go = meet(c))) break;
				skip = here + (scatter ? c.rank * chunk * 16 : 0);
				half ^= 1;
			}
			auto source = [&](u32 p) { return (staged ? stageOf(c, p) : word(l.at + 2 + p)) + skip; };
			u32 apart = 0;
#pragma unroll 1
			for (u32 p = 0; p < c.world && !push; p++) apart |= (u32)(source(p) ^ dst) & 15;
			Span s = span(dst, hi - lo, apart);
			u32 ends = push ? 0 : edges(s, l.log);
			u64 work = push ? units : ends + s.lines;
#pragma unroll 1
			for (u64 u = thread(); u < work; u += threads()) {
				bool single = u < ends;
				u64 x = push ? 16 * u : single ? edge(s, (u32)u, l.log) : s.head + 16 * (u - ends);
				u32 size = single ? 1u << l.log : hi - lo - x < 16 ? (u32)(hi - lo - x) : 16;
				Line own = zeroLine();
				u64 payload = mine + (scatter ? c.rank * l.bytes : 0);
				if (push) own = loadUnit(source(c.rank) + x, size, payload, payload + l.bytes, tight);
				Line r = combine(l.type, c.world, inv, [&](u32 g, u32 m, Line(&at)[8]) {
					if (push) {
						u64 box = lineAt(c, c.box, slot, 8 * g, base + first + u), next = 32 * slot;
#pragma unroll 1
						for (u32 k = 0; k < m; k++) {
							Line one = own;
							if (8 * g + k != c.rank) awaitUnit(c, box + k * next, 8 * g + k, one);
#pragma unroll
							for (u32 j = 0; j < 8; j++) at[j] = pick(j == k, at[j], one);
						}
						return;
					}
#pragma unroll
					for (int k = 0; k < 8; k++) {
						at[k] = zeroLine();
						if (k >= (int)m) continue;
						u64 a = source(8 * g + k) + x;
						if (single) at[k] = lineOf(loadPiece(a, size), 0);
						else at[k] = settleLine(fetchLine(a));
					}
				});
				if (c.bad) break;
				if (single) storePiece(dst + x, low(r), size);
				else if (push) storeBytes(dst + x, r, size);
				else storeLine(dst + x, r);
			}
		}
		base += l.units;
	}
	if (!inject(c, StepData)) return;
	if (shots && go) go = meet(c);
	if (!inject(c, StepBarrier)) return;
	if (shots && go) fetchSlices<1>(c, laneOf(c, 0, word), word, false, 0);
	if (!push && go) meet(c);
	if (!inject(c, StepLeave)) return;
	finish(c);
}

// tandem_copy does all_gather, broadcast and all_to_all, and everything in a
// team of one:
// for p, i { dst[rank][p*count+i] = src[p][block*count + i] }
// with block = rank for all_to_all and 0 otherwise; broadcast has only p = root,
// which goes to block 0.
ROOMY void tandem_copy(PARAMS) {
	BEGIN
	pushLanes(c, job, word);
	if (!inject(c, StepPushed)) return;
	bool go = awaitHeaders(c);
	if (!inject(c, StepAgreed)) return;
	bool push = path == PathPush, staged = path == PathStaged, shots = path == PathTwoShot;
	u64 slot = slotUnits(c), base = 0, room = c.team->stage;
	bool cast = collective == Broadcast, all = collective == AllToAll, tight = (flags & FlagInPlace) != 0;
	u32 half = 0;
#pragma unroll 1
	for (u32 i = 0; i < lanes && go; i++) {
		Lane l = laneOf(c, i, word);
		u64 own = word(l.at + 2 + c.world + c.rank), mine = word(l.at + 2 + c.rank);
		u64 first = 0, part = l.units;
		if (shots) {
			first = share(l.units, c.rank, c.world);
			part = share(l.units, c.rank + 1, c.world) - first;
		}
		u64 end = first + share(part, c.block + 1, c.blocks);
		first += share(part, c.block, c.blocks);
		part = room / c.blocks / 16;
		u64 chunk = staged ? part / (all ? c.world : 1) : end - first;
#pragma unroll 1
		for (; first < end && go && !push; first += chunk) {
			u64 lo = 16 * first, hi = 16 * (end - first < chunk ? end : first + chunk);
			if (hi > l.bytes) hi = l.bytes;
			u64 here = half * room + c.block * part * 16;
			if (staged) {
				u64 to = stageOf(c, c.rank) + here;
				gather<2>(cast && c.rank != root ? 0 : all ? c.world : 1, 0, hi - lo, l.log,
					[&](u32 p) { return mine + lo + p * l.bytes; }, [&](u32 p) { return to + p * chunk * 16; }, [&](u32) { return hi - lo; });
				if (!(go = meet(c))) break;
				half ^= 1;
			}
			gather<2>(cast ? 1 : c.world, cast ? 0 : c.rank, hi - lo, l.log,
				[&](u32 p) {
					u32 q = cast ? root : p;
					if (staged) return stageOf(c, q) + here + (all ? c.rank * chunk * 16 : 0);
					return word(l.at + 2 + q) + lo + (all ? c.rank * l.bytes : 0);
				},
				[&](u32 p) { return own + lo + p * l.bytes; }, [&](u32) { return hi - lo; });
		}
		if (push) {
			u64 first = share(l.units, c.block, c.blocks), count = share(l.units, c.block + 1, c.blocks) - first;
#pragma unroll 1
			for (u64 k = thread(); k < count * (cast ? 1 : c.world); k += threads()) {
				u32 p = (u32)(k / count), q = cast ? root : p;
				u64 u = first + k % count, x = 16 * u;
				u32 size = l.bytes - x < 16 ? (u32)(l.bytes - x) : 16;
				u64 to = own + p * l.bytes + x;
				Line r;
				if (q == c.rank) {
					u64 payload = mine + (all ? c.rank * l.bytes : 0);
					if (payload + x == to) continue;
					r = loadUnit(payload + x, size, payload, payload + l.bytes, tight);
				} else {
					awaitUnit(c, lineAt(c, c.box, slot, q, base + u), q, r);
				}
				if (c.bad) break;
				storeBytes(to, r, size);
			}
		}
		base += l.units;
	}
	if (!inject(c, StepData)) return;
	if (shots && go) go = meet(c);
	if (!inject(c, StepBarrier)) return;
	if (shots && go) fetchSlices<2>(c, laneOf(c, 0, word), word, true, root);
	if (!push && go) meet(c);
	if (!inject(c, StepLeave)) return;
	finish(c);
}

// tandem_pull2 and tandem_pull do direct calls of all_reduce and reduce_scatter
// whose arithmetic is that of whole lines, over two ranks and over up to eight, and
// all_reduce in two shots. Lines are read from all ranks and stored here or, in two
// shots where all buffers lie alike, at all ranks: then nothing is left to fetch.
LEAN void tandem_pull2(PARAMS) {
	BEGIN
	pullCall<2>(c, path == PathTwoShot, collective == ReduceScatter, lanes, word);
}
ROOMY void tandem_pull(PARAMS) {
	BEGIN
	(void)root;
	pullCall<8>(c, path == PathTwoShot, collective == ReduceScatter, lanes, word);
}

// tandem_spread does direct calls of all_gather, broadcast and all_to_all: every
// rank stores what it has at its peers.
LEAN void tandem_spread(PARAMS) {
	BEGIN
	(void)path;
	if (stamping(c)) stamp(c, slotUnits(c), 0);
	if (!inject(c, StepPushed)) return;
	bool go = awaitHeaders(c);
	if (!inject(c, StepAgreed)) return;
	bool cast = collective == Broadcast, each = collective == AllToAll;
	u64 base = 0, all = go ? totalUnits(c, lanes, word) : 0;
#pragma unroll 1
	for (u32 i = 0; i < lanes && go && (!cast || c.rank == root); i++) {
		Lane l = laneOf(c, i, word);
		Range r = part(c, l, base, all);
		base += l.units;
		if (r.lo >= r.hi) continue;
		u64 mine = word(l.at + 2 + c.rank) + r.lo, to = r.lo + (cast ? 0 : c.rank * l.bytes);
		auto dst = [&](u32 p) { return word(l.at + 2 + c.world + p) + to; };
		u32 apart = each ? 1 : 0;
#pragma unroll 1
		for (u32 p = 0; p < c.world; p++) apart |= (u32)(dst(p) ^ mine) & 15;
		if (apart == 0) spread(c, mine, r.hi - r.lo, l.log, dst);
		else gather<3>(c.world, c.rank, r.hi - r.lo, l.log, [&](u32 p) { return mine + (each ? p * l.bytes : 0); }, dst, [&](u32) { return r.hi - r.lo; });
	}
	if (!inject(c, StepData) || !inject(c, StepBarrier)) return;
	if (go) meet(c);
	if (!inject(c, StepLeave)) return;
	finish(c);
}
