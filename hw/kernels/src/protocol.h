// Epochs, headers, barriers, deadlines, abort: what every call does around its
// data.
#pragma once
#include "layout.h"
#include "memory.h"

// State of one thread in a call. All of it up to dead is the same in all
// threads of a block.
struct Call {
	const Near *near;
	const Team *team;
	u64 table; // team table of this GPU
	u64 page;  // control page of the own rank
	u64 box;
	u64 nextPage, nextBox; // of the other rank, in kernels for two
	u64 report;
	u64 epoch;
	u64 hash;
	u32 flag; // of lines: the low 32 bits of epoch
	u32 half; // of boxes and headers: its parity
	u32 rank, world;
	u32 block, blocks;
	u32 barrier; // barriers of this call so far
	u32 claim;   // not 0 where another call was found to run
	u32 dead;    // a thread of this block has given up
	u32 bad;     // the Reason why this thread has given up
	u32 step, peer; // where, and on whom
	u64 other;      // the hash of another call
	u32 faultRank, faultStep, differs;
	u64 faultCycles;
};

FN bool inlined(const Call &c) { return c.world <= InlineRanks; }
FN u64 pageOf(const Call &c, u32 peer) { return inlined(c) ? c.team->pages[peer] : loadConst64(c.table + TablePages + 8 * peer); }
FN u64 boxOf(const Call &c, u32 peer) { return inlined(c) ? c.team->boxes[peer] : loadConst64(c.table + TableBoxes + 8 * peer); }
FN u64 stageOf(const Call &c, u32 peer) { return inlined(c) ? c.team->stages[peer] : loadConst64(c.table + TableStages + 8 * peer); }
FN u64 reportOf(const Call &c, u32 peer) { return inlined(c) ? c.team->reports[peer] : loadConst64(c.table + TableReports + 8 * peer); }

// record fills in the report of this rank, if no other thread has, and poisons
// the own page.
FN void record(const Call &c) {
	if (swapWord(c.page + PageClaim, 1) == 0) {
		storeWord(c.report + ReportStep, c.step);
		storeWord64(c.report + ReportEpoch, c.epoch);
		storeWord(c.report + ReportPeer, c.peer);
		storeWord(c.report + ReportBlock, c.block);
		storeWord64(c.report + ReportHash, c.other);
		fenceSystem();
		releaseWord(c.report + ReportFault, c.bad);
	}
	if (c.bad != Killed) storeWord(c.page + PageAbort, c.bad);
}

// give up, for a reason. The other threads of the rank see it at their next
// look; the peers are told by finish.
FN void giveUp(Call &c, u32 reason, u32 step, u32 peer) {
	if (c.bad) return;
	c.bad = reason;
	c.step = step;
	c.peer = peer;
	if (reason != Aborted && reason != Killed) storeWord(c.page + PageAbort, reason);
}

enum { FreePolls = 1024, ClockPolls = 256, MaxJump = 1 << 22 };

// Patience is how long a thread has been waiting for one thing.
struct Patience { u64 last, spent; u32 polls; };

FN Patience fresh() { return Patience{0, 0, 0}; }

// impatient is asked after each poll without success, and says whether to stop.
// The clock is not read in the first polls, and then rarely; a jump of it, as
// when a block was set aside, counts as a moment. On expiry the caller polls
// once more, and then gives up.
FN bool impatient(Call &c, Patience &w, u64 limit, u32 step, u32 peer) {
	if (!RARE(++w.polls >= FreePolls && w.polls % ClockPolls == 0)) return false;
	u64 now = clockNow();
	if (w.polls > FreePolls) {
		u64 d = now - w.last;
		w.spent += d < MaxJump ? d : MaxJump;
	}
	w.last = now;
	if (loadWord(c.page + PageAbort) != Fine) giveUp(c, Aborted, step, peer);
	if (loadWord(c.report + ReportStop) != Fine) giveUp(c, Stopped, step, peer);
	return c.bad || w.spent >= limit;
}

// inject delays a rank at a step, or stops it dead there (no cycles), for
// tests. It tells whether to go on.
FN bool inject(Call &c, u32 step) {
	if (!RARE(c.faultRank == c.rank && c.faultStep == step)) return true;
	if (c.faultCycles == 0) {
		giveUp(c, Killed, step, c.rank);
		if (thread() == 0) record(c);
		return false;
	}
	u64 start = clockNow(), spent = 0;
	while (spent < c.faultCycles) {
		u64 now = clockNow(), d = now - start;
		spent += d < MaxJump ? d : MaxJump;
		start = now;
	}
	return true;
}

// headerAt is where a peer's page has the header of a sender.
FN u64 headerAt(const Call &c, u64 page, u32 sender) { return page + PageHeaders + (c.half * Peers + sender) * 16; }

// who finds out who this block is. W is the size of the team, or the largest that a
// kernel is for, or 0. It is false where the table is another team's.
template <u32 W> FN bool who(Call &c, u64 generation) {
	c.world = W == 2 ? 2 : c.near->world;
	u32 group = 0;
	c.block = blockOfGrid();
	c.rank = c.near->rank;
	c.page = c.near->page;
	c.box = c.near->box;
	c.report = c.near->report;
	c.nextPage = c.near->nextPage;
	c.nextBox = c.near->nextBox;
	if (RARE(c.block >= c.blocks)) {
		group = c.block / c.blocks;
		c.block %= c.blocks;
	}
	if (RARE(!W && !inlined(c))) {
		if (loadWord64(c.table - PageTable + PageGeneration) != generation) return false;
		c.rank = loadConst32(c.table + TableLocal + 4 * group);
		c.page = pageOf(c, c.rank);
		c.box = boxOf(c, c.rank);
		c.report = reportOf(c, c.rank);
	} else if (RARE(group)) {
		c.rank = c.team->local[group];
		c.page = c.team->pages[c.rank];
		c.box = c.team->boxes[c.rank];
		c.report = c.team->reports[c.rank];
		if (W == 2) {
			c.nextPage = c.team->pages[1 - c.rank];
			c.nextBox = c.team->boxes[1 - c.rank];
		}
	}
	return true;
}

// Found is what the page says of the team; ask asks for it, and for the epoch.
struct Found { u64 generation; u32 gone; };
FN void ask(Call &c, Found &found) {
	loadPair(c.page + PageGeneration, found.generation, c.epoch);
	found.gone = loadWord(c.page + PageAbort);
	c.flag = (u32)c.epoch;
	c.half = c.flag & 1;
	c.bad = 0;
	c.dead = 0;
	c.step = StepEntry;
	c.peer = c.rank;
	c.other = 0;
	c.barrier = 0;
}

// look begins the entry of a call.
template <u32 W> FN bool look(Call &c, u64 generation, Found &found) {
	if (!who<W>(c, generation)) return false;
	ask(c, found);
	return true;
}

// lookOver is look in kernels that are launched with Overlap.
template <u32 W> FN bool lookOver(Call &c, u64 generation, u32 flags, Found &found) {
	if (!who<W>(c, generation)) return false;
	awaitLast();
	if (flags & FlagOverlap) letNext();
	ask(c, found);
	return true;
}

// opens is what comes before headers, apart in the threads that send them so that
// on every way to these there is a fence.
template <bool Faults> FN bool opens(Call &c, bool ours) {
	if (RARE(!ours) || (Faults && !inject(c, StepEntry))) return false;
	if (Faults && c.differs && c.rank == c.faultRank) c.hash++;
	return true;
}

// announce sends every peer, itself included unless they are two, what this call is:
// for p := range world { headers[p][half][rank] = hash, flagged }
// It is false where the page is of another generation. Where the call orders memory
// by its headers, the fence before them waits together with the loads.
template <bool Order, bool Faults, u32 W> FN bool announce(Call &c, u64 generation, const Found &found) {
	if (c.block == 0 && thread() < (W == 2 ? 1 : c.world)) {
		if (Order) fenceSystem();
		if (!opens<Faults>(c, found.generation == generation)) return false;
		u64 a = headerAt(c, W == 2 ? c.nextPage : pageOf(c, thread()), c.rank);
		if (Order && !found.gone) releaseHeader(a, c.hash, c.flag);
		if (!Order && !found.gone) sendHeader(a, c.hash, c.flag);
	} else if (!opens<Faults>(c, found.generation == generation)) return false;
	return true;
}

// claim claims the rank, for settleClaim. A poisoned team stays as it is.
FN void claim(Call &c, const Found &found) {
	c.claim = 0;
	if (c.block == 0 && thread() == threads() - 1 && !found.gone) c.claim = swapWord(c.page + PageOwner, 1);
}

// enter ends the entry. It is false in a block that has no business here: the team
// is poisoned.
FN bool enter(const Found &found) { return !RARE(syncOr(found.gone)); }

// open is all three, where nothing else is sent before the block is known to enter.
template <bool Order, bool Faults, u32 W> FN bool open(Call &c, u64 generation, const Found &found) {
	if (!announce<Order, Faults, W>(c, generation, found) || !enter(found)) return false;
	claim(c, found);
	return true;
}

// settleClaim gives up where another call of this rank was found to run. One
// thread of block 0 claimed the rank at entry, and does not wait for the answer
// before it is needed.
FN void settleClaim(Call &c) {
	later(c.claim);
	if (!RARE(c.claim)) return;
	giveUp(c, Claimed, StepEntry, c.rank);
	record(c);
}

// agree is a barrier of the block, and false once any of its threads has given up.
// Those that awaited flags have fenced.
FN bool agree(Call &c) {
	c.dead = syncOr(c.bad);
	return c.dead == 0;
}

// awaitHeaders waits until every peer has come to the same call. Nothing of a
// peer's is touched before, but for its boxes.
FN bool awaitHeaders(Call &c) {
	settleClaim(c);
	u32 p = thread();
	if (p < c.world) {
		u64 a = headerAt(c, c.page, p);
		Patience w = fresh();
		bool came, late = false;
		while (!(came = acquireHeader(a, c.flag, c.other)) && !late) late = impatient(c, w, c.team->arrive, StepHeader, p);
		fenceSystem();
		if (!came) giveUp(c, Deadline, StepHeader, p);
		else if (c.other != c.hash) {
			giveUp(c, Differs, StepHeader, p);
			record(c);
		}
	}
	return agree(c);
}

// meet is a barrier between this block and the same block of every other rank:
// what any of them wrote before, all may read after. Flags hold the epoch above
// the number of the barrier and compare as signed differences.
FN bool meet(Call &c) {
	c.barrier++;
	c.dead = syncOr(c.bad);
	if (c.dead) return false;
	u64 target = (u64)c.flag << 32 | c.barrier;
	u32 p = thread();
	if (p < c.world) {
		fenceSystem();
		releaseFlag(pageOf(c, p) + PageFlags + ((u64)c.block * Peers + c.rank) * 8, target);
		u64 a = c.page + PageFlags + ((u64)c.block * Peers + p) * 8;
		Patience w = fresh();
		bool came, late = false;
		while (!(came = (s64)(acquireFlag(a) - target) >= 0) && !late) late = impatient(c, w, c.team->progress, StepBarrier | c.barrier << 8, p);
		fenceSystem();
		if (!came) giveUp(c, Deadline, StepBarrier | c.barrier << 8, p);
	}
	return agree(c);
}

// leave is for one thread of each block that needs its boxes no more: the last
// of them advances the epoch. Nothing is ordered by it; the end of the kernel
// does that.
FN void leave(const Call &c) {
	if (c.blocks > 1 && countWord(c.page + PageLeave, c.blocks - 1) != c.blocks - 1) return;
	u64 next = c.epoch + 1;
	if ((u32)next == 0) next += 2;
	storeWord64(c.page + PageEpoch, next);
	storeWord(c.page + PageOwner, 0);
}

// finish ends a call. Whoever gave up reports and poisons the peers; otherwise
// the last block of the rank advances the epoch. Epochs whose low half is 0 are
// not used, nor the one after, so that parities alternate. A poisoned team keeps
// its epoch.
FN void finish(Call &c) {
	if (c.bad) {
		record(c);
		if (c.bad != Aborted) {
#pragma unroll 1
			for (u32 p = 0; p < c.world; p++)
				if (p != c.rank) storeWord(pageOf(c, p) + PageAbort, Aborted);
		}
	}
	if (syncOr(c.bad) || thread() != 0) return;
	leave(c);
}

// stamping tells whether this is one of the calls, every 2^30, whose senders
// write every line of a box, so that no line is older than 2^31 calls.
FN bool stamping(const Call &c) { return RARE((c.flag & ((1u << 30) - 1)) < 4); }
