// Small calls whose arithmetic is that of whole lines, over up to eight ranks:
// pushed, with nothing waited for that is not needed. Units of all lanes are
// numbered through; a unit is dealt with by one thread, which pushes it, awaits
// the peers' and stores what they make. Other calls are pushed by the general
// kernels.
#pragma once
#include "plain.h"
#include "push.h"

enum { HeaderWarp = 224 }; // the first thread of the warp that awaits headers

// Unit is where a thread finds its part of the call.
struct Unit {
	u64 src, dst; // of this unit, in block 0
	u64 bytes;    // of a block
	u64 type, first; // first is the payload's
	u32 size;     // bytes of the unit
};

// unitOf finds unit u. Lanes are few, and few calls have more than one.
template <class Word> FN Unit unitOf(const Call &c, u32 world, u64 u, Word word) {
	Unit y;
	u32 at = 0;
	u64 count;
#pragma unroll 1
	for (;;) {
		count = word(at);
		y.type = word(at + 1);
		y.bytes = count << sizeLog(y.type);
		u64 units = (y.bytes + 15) / 16;
		if (u < units) break;
		u -= units;
		at += 2 + 2 * world;
	}
	y.first = word(at + 2 + c.rank);
	y.src = y.first + 16 * u;
	y.dst = word(at + 2 + world + c.rank) + 16 * u;
	y.size = y.bytes - 16 * u < 16 ? (u32)(y.bytes - 16 * u) : 16;
	return y;
}

// take reads this rank's unit of block number block.
FN Line take(const Unit &y, u64 block, bool tight) {
	u64 first = y.first + block * y.bytes, a = y.src + block * y.bytes;
	if (!RARE((a & 15) || y.size != 16)) return loadLine(a);
	return loadUnit(a, y.size, first, first + y.bytes, tight);
}

// putUnit stores a unit.
FN void putUnit(u64 a, Line l, u32 n) {
	if (!RARE((a & 15) || n != 16)) storeLine(a, l);
	else storeBytes(a, l, n);
}

// lowest is the number of the lowest bit.
FN u32 lowest(u32 mask) {
	u32 k = 0;
#pragma unroll 1
	while (k < 31 && !(mask >> k & 1)) k++;
	return k;
}

// collect polls, all at once, the lines of the ranks in a mask, and in the
// threads that await a header, that of rank await. Before the ranks have agreed, a
// rank may be as late as the arrival allows.
template <u32 W> FN void collect(Call &c, u32 mask, u64 box, u64 slot, Line (&l)[W], bool head, u32 await, bool agreed) {
	Patience w = fresh();
	u64 header = headerAt(c, c.page, await);
	bool late = c.bad != 0;
#pragma unroll 1
	for (;;) {
		u32 missing = 0;
		if (head && peekHeader(header, c.flag, c.other)) {
			head = false;
			if (RARE(c.other != c.hash)) {
				giveUp(c, Differs, StepHeader, await);
				record(c);
			}
		}
#pragma unroll
		for (u32 k = 0; k < W; k++)
			if ((mask >> k & 1) && !peekUnit(box + k * slot * 32, c.flag, l[k])) missing |= 1u << k;
		if (missing == 0 && !head) return;
		if (RARE(late)) {
			giveUp(c, Deadline, head ? StepHeader : StepData, head || W == 1 ? await : lowest(missing));
			return;
		}
		if (RARE(++w.polls >= FreePolls)) {
			w.polls--;
			u64 limit = head ? c.team->arrive : c.team->progress + (agreed ? 0 : c.team->arrive);
			late = impatient(c, w, limit, head ? StepHeader : StepData, head || W == 1 ? await : lowest(missing));
		}
	}
}

// pushUnits sends all units of this thread, and gives the first as it stays here.
template <u32 W, class Word> FN Line pushUnits(const Call &c, Unit y, u32 world, u64 total, u64 stride, bool each, bool tight, Word word) {
	u64 slot = slotUnits(c), start = (u64)c.block * threads() + thread();
	Line own = zeroLine();
#pragma unroll 1
	for (u64 u = start; u < total; u += stride) {
		if (u != start) y = unitOf(c, world, u, word);
		if constexpr (W == 2) {
			Line l = take(y, each ? 1 - c.rank : 0, tight);
			sendUnit(lineAt(c, c.nextBox, slot, c.rank, u), l, c.flag);
			if (u == start) own = l;
		} else {
			Line l = zeroLine();
			if (!each) l = take(y, 0, tight);
			if (u == start) own = l;
#pragma unroll 1
			for (u32 i = 1; i < world; i++) {
				u32 p = c.rank + i < world ? c.rank + i : c.rank + i - world;
				if (each) l = take(y, p, tight);
				sendUnit(lineAt(c, boxOf(c, p), slot, c.rank, u), l, c.flag);
			}
		}
	}
	return own;
}

// pushPair is pushCall for the commonest calls: two ranks, one lane, and no more
// than a unit for each thread. It goes straight through, and sends before the block
// meets: of a poisoned team peers get lines that nobody reads.
template <bool Faults, class Word>
FN void pushPair(Call &c, u64 generation, u32 collective, u32 root, u32 flags, Word word) {
	auto at = [&](u32 step) { return !Faults || inject(c, step); };
	Unit y;
	y.type = word(1);
	y.bytes = word(0) << sizeLog(y.type);
	Found found;
	bool tight = flags & FlagInPlace;
	if (!lookOver<2>(c, generation, flags, found)) return;
	bool reduces = collective <= ReduceScatter, each = collective == ReduceScatter || collective == AllToAll, cast = collective == Broadcast;
	bool sends = !cast || root == c.rank, other = c.rank == 0;
	u64 at16 = 16 * ((u64)c.block * threads() + thread()), mine = each ? c.rank : 0, slot = slotUnits(c);
	bool busy = at16 < y.bytes, gets = busy && (!cast || root != c.rank);
	y.first = choose(other, word(3), word(2));
	y.src = y.first + at16;
	y.dst = choose(other, word(5), word(4)) + at16;
	y.size = y.bytes - at16 < 16 ? (u32)(y.bytes - at16) : 16;
	u64 unit = at16 / 16, to = lineAt(c, c.nextBox, slot, c.rank, unit), from = lineAt(c, c.box, slot, 1 - c.rank, unit);
	Line own = zeroLine(), there[1] = {zeroLine()};
	later(found.generation);
	if (!announce<false, Faults, 2>(c, generation, found)) return;
	if (Faults) claim(c, found); // a call held up here is one that runs
	if (!at(StepHeader)) return;
	if (busy && sends && !found.gone) {
		own = take(y, each ? 1 - c.rank : 0, tight);
		sendUnit(to, own, c.flag);
	}
	if (!enter(found)) return;
	if (!Faults) claim(c, found);
	if (busy && sends && each) own = take(y, mine, tight);
	if (stamping(c)) stamp(c, slot, sends ? (y.bytes + 15) / 16 : 0);
	if (!at(StepPushed)) return;
	collect<1>(c, gets, from, slot, there, thread() == HeaderWarp, 1 - c.rank, false);
	settleClaim(c);
	c.dead = syncOr(c.bad);
	if (RARE(c.dead)) {
		finish(c);
		return;
	}
	if (!at(StepAgreed)) return;
	if (busy && reduces) putUnit(y.dst, plainPair(joinOf(y.type), pick(other, there[0], own), pick(other, own, there[0])), y.size);
	if (busy && !reduces) {
		u64 keep = y.dst + (cast ? 0 : c.rank * y.bytes);
		if (gets) putUnit(y.dst + (cast ? 0 : (1 - c.rank) * y.bytes), there[0], y.size);
		if (sends && keep != y.src + mine * y.bytes) putUnit(keep, own, y.size);
	}
	if (!at(StepData) || !at(StepBarrier) || !at(StepLeave)) return;
	if (thread() == 0) leave(c);
}

// pushCall is a whole call over W ranks, or up to W where W is 8:
// for u { for p { box[p][half][rank][u] = unit of src for p, flagged } }
// for u { store what the lines of all ranks make }
// No output is stored before all headers agree, and no call ends before.
template <u32 W, bool Faults, class Word>
FN void pushCall(Call &c, u64 generation, u32 lanes, u32 collective, u32 root, u32 flags, Word word) {
	auto at = [&](u32 step) { return !Faults || inject(c, step); };
	const u32 world = W == 2 ? 2 : c.near->world;
	u64 total = 0;
#pragma unroll 1
	for (u32 i = 0; i < lanes; i++) total += ((word(i * (2 + 2 * world)) << sizeLog(word(i * (2 + 2 * world) + 1))) + 15) / 16;
	Found found;
	bool tight = flags & FlagInPlace;
	if (!lookOver<W>(c, generation, flags, found)) return;
	bool reduces = collective <= ReduceScatter, each = collective == ReduceScatter || collective == AllToAll, cast = collective == Broadcast;
	u64 slot = slotUnits(c), stride = (u64)c.blocks * threads();
	u64 start = (u64)c.block * threads() + thread(), mine = each ? c.rank : 0; // the own block that stays here
	u32 from = ((1u << world) - 1) & ~(1u << c.rank);
	if (cast) from &= 1u << root;
	bool sends = !cast || root == c.rank;
	Unit y = start < total ? unitOf(c, world, start, word) : Unit{};
	later(found.generation);
	if (!open<false, Faults, W>(c, generation, found) || !at(StepHeader)) return;
	Line own = pushUnits<W>(c, y, world, sends ? total : 0, stride, each, tight, word);
	if (stamping(c)) stamp(c, slot, sends ? total : 0);
	if (!at(StepPushed)) return;
	bool once = total <= stride, agreed = false;
	u32 await = W == 2 ? 1 - c.rank : thread() - HeaderWarp;
	bool head = W == 2 ? thread() == HeaderWarp : await < world;
#pragma unroll 1
	for (u64 u = start; u < total || !agreed; u += stride) {
		Line l[8];
		bool busy = u < total;
		if (busy) {
			if (u != start) y = unitOf(c, world, u, word);
			if (sends && (each || u != start)) own = take(y, mine, tight);
		}
		if constexpr (W == 2) {
			Line there[1] = {zeroLine()};
			u32 peer = 1 - c.rank;
			collect<1>(c, busy && from ? 1 : 0, lineAt(c, c.box, slot, peer, u), slot, there, head && !agreed, await, agreed);
			l[0] = pick(c.rank == 0, there[0], own);
			l[1] = pick(c.rank == 0, own, there[0]);
		} else {
#pragma unroll
			for (u32 k = 0; k < 8; k++) l[k] = zeroLine();
			collect<8>(c, busy ? from : 0, lineAt(c, c.box, slot, 0, u), slot, l, head && !agreed, await, agreed);
#pragma unroll
			for (u32 k = 0; k < 8; k++) l[k] = pick(k == c.rank, l[k], own);
		}
		if (!agreed) {
			agreed = true;
			settleClaim(c);
			c.dead = syncOr(c.bad);
			if (RARE(c.dead)) break;
			if (!at(StepAgreed)) return;
			if (once && thread() == 0) leave(c);
		}
		if (RARE(c.bad)) break;
		if (!busy) continue;
		if (reduces) {
			if constexpr (W == 2) putUnit(y.dst, plainPair(joinOf(y.type), l[0], l[1]), y.size);
			else putUnit(y.dst, plainTree(joinOf(y.type), l, world), y.size);
			continue;
		}
#pragma unroll
		for (u32 k = 0; k < W; k++) {
			u64 to = y.dst + (cast ? 0 : k * y.bytes);
			if (k < world && (!cast || k == root) && !(k == c.rank && to == y.src + mine * y.bytes)) putUnit(to, l[k], y.size);
		}
	}
	if (!at(StepData) || !at(StepBarrier) || !at(StepLeave)) return;
	if (RARE(c.dead) || !once) finish(c);
}
