// Epochs, headers, barriers, deadlines, abort: what every call of nvls and
// cascade does around its data. Where tandem's kernels fence once, these fence
// for the addresses too: memory is written through one and read through another.
#pragma once
#include "memory.h"
#include "nvls_layout.h"

// State of one thread in a call.
struct Call {
	u64 page, report; // of the own rank
	u64 epoch, hash;
	u64 other; // the hash of another call
	u32 flag;  // of headers: the low 32 bits of epoch
	u32 half;  // of headers: its parity
	u32 rank, block;
	u32 barrier;    // barriers of this call so far
	u32 bad;        // the Reason why this thread has given up
	u32 step, peer; // where, and on whom
};

FN void fenceAlias() { asm volatile("fence.proxy.alias;" : : : "memory"); }
// before stands between data and the flag that is raised for it, after between a
// flag that was awaited and the data.
FN void before() {
	fenceAlias();
	fenceSystem();
}
FN void after() {
	fenceSystem();
	fenceAlias();
}
FN u32 leaveWord(u64 a) { u32 old; asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(a) : "memory"); return old; }

// record fills in the report of this rank, if no other thread has, and poisons
// the own page.
FN void record(const Call &c) {
	if (swapWord(c.page + PageClaim, 1) == 0) {
		storeWord(c.report + ReportStep, c.step);
		storeWord64(c.report + ReportEpoch, c.epoch);
		storeWord(c.report + ReportPeer, c.peer);
		storeWord(c.report + ReportBlock, c.block);
		storeWord64(c.report + ReportHash, c.other);
		before();
		releaseWord(c.report + ReportFault, c.bad);
	}
	if (c.bad != Killed) storeWord(c.page + PageAbort, c.bad);
}

// giveUp, for a reason. The other threads of the rank see it at their next look;
// the peers are told by finish.
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

// impatient is asked after each poll without success, and says whether to stop.
// The clock is not read in the first polls, and then rarely; a jump of it counts
// as a moment. On expiry the caller polls once more, and then gives up.
FN bool impatient(Call &c, Patience &w, u64 limit, u32 step, u32 peer) {
	if (++w.polls < FreePolls || w.polls % ClockPolls != 0) return false;
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

// inject delays a rank at a step, or stops it dead there (no cycles), for tests.
// It tells whether to go on.
FN bool inject(Call &c, const Args &a, u32 step) {
	if (a.faultRank != c.rank || a.faultStep != step) return true;
	if (a.faultCycles == 0) {
		giveUp(c, Killed, step, c.rank);
		if (thread() == 0) record(c);
		return false;
	}
	u64 start = clockNow(), spent = 0;
	while (spent < a.faultCycles) {
		u64 now = clockNow(), d = now - start;
		spent += d < MaxJump ? d : MaxJump;
		start = now;
	}
	return true;
}

// enter begins a call and tells every peer, the own rank included, what it is:
// for p := range world { headers[p][half][rank] = hash, flagged }
// It is false in a block that has no business here: the team is poisoned or of
// another generation.
FN bool enter(Call &c, const Args &a) {
	c.block = blockOfGrid() % a.blocks;
	c.rank = a.first + blockOfGrid() / a.blocks;
	c.page = a.page[c.rank];
	c.report = a.report[c.rank];
	c.hash = a.hash;
	c.other = 0;
	c.barrier = c.bad = 0;
	c.step = StepEntry;
	c.peer = c.rank;
	if (loadWord64(c.page + PageGeneration) != a.generation) return false;
	c.epoch = loadWord64(c.page + PageEpoch);
	c.flag = (u32)c.epoch;
	c.half = c.flag & 1;
	u32 gone = 0;
	if (thread() == 0) gone = loadWord(c.page + PageAbort);
	if (syncOr(gone)) return false;
	if (c.block == 0 && thread() == 0 && swapWord(c.page + PageOwner, 1) != 0) {
		giveUp(c, Claimed, StepEntry, c.rank);
		record(c);
	}
	if (!inject(c, a, StepEntry)) return false;
	if ((a.flags & FlagDiffers) && c.rank == a.faultRank) c.hash++;
	if (c.block == 0) {
#pragma unroll 1
		for (u32 p = thread(); p < a.world; p += threads()) {
			before();
			releaseHeader(a.page[p] + PageHeaders + (c.half * PeerSlots + c.rank) * 16, c.hash, c.flag);
		}
	}
	return inject(c, a, StepHeader);
}

// agree is a barrier of the block, and false once any of its threads has given up.
FN bool agree(Call &c) {
	after();
	return syncOr(c.bad) == 0;
}

// awaitHeaders waits until every peer has come to the same call. Nothing of a
// peer's is touched before.
FN bool awaitHeaders(Call &c, const Args &a) {
#pragma unroll 1
	for (u32 p = thread(); p < a.world && !c.bad; p += threads()) {
		u64 at = c.page + PageHeaders + (c.half * PeerSlots + p) * 16;
		Patience w = {0, 0, 0};
		bool came, late = false;
		while (!(came = acquireHeader(at, c.flag, c.other)) && !late) late = impatient(c, w, a.arrive, StepHeader, p);
		if (!came) giveUp(c, Deadline, StepHeader, p);
		else if (c.other != c.hash) {
			giveUp(c, Differs, StepHeader, p);
			record(c);
		}
	}
	return agree(c);
}

// meet is a barrier between this block and the same block of every other rank:
// what any of them wrote before, through whatever address, all may read after.
// Flags hold the epoch above the number of the barrier and compare as signed
// differences.
FN bool meet(Call &c, const Args &a) {
	c.barrier++;
	if (syncOr(c.bad)) return false;
	u64 target = (u64)c.flag << 32 | c.barrier;
#pragma unroll 1
	for (u32 p = thread(); p < a.world; p += threads()) {
		before();
		releaseFlag(a.page[p] + PageFlags + ((u64)c.block * PeerSlots + c.rank) * 8, target);
	}
#pragma unroll 1
	for (u32 p = thread(); p < a.world && !c.bad; p += threads()) {
		u64 at = c.page + PageFlags + ((u64)c.block * PeerSlots + p) * 8;
		Patience w = {0, 0, 0};
		bool came, late = false;
		while (!(came = (s64)(acquireFlag(at) - target) >= 0) && !late) late = impatient(c, w, a.progress, StepBarrier | c.barrier << 8, p);
		if (!came) giveUp(c, Deadline, StepBarrier | c.barrier << 8, p);
	}
	return agree(c);
}

// finish ends a call. Whoever gave up reports and poisons the peers; otherwise
// the last block of the rank advances the epoch. Epochs whose low half is 0 are
// not used, nor the one after, so that parities alternate. A poisoned team keeps
// its epoch.
FN void finish(Call &c, const Args &a) {
	if (c.bad) {
		record(c);
		if (c.bad != Aborted) {
#pragma unroll 1
			for (u32 p = 0; p < a.world; p++)
				if (p != c.rank) storeWord(a.page[p] + PageAbort, Aborted);
		}
	}
	if (syncOr(c.bad) || thread() != 0) return;
	if (leaveWord(c.page + PageLeave) + 1 != a.blocks) return;
	u64 next = c.epoch + 1;
	if ((u32)next == 0) next += 2;
	storeWord(c.page + PageLeave, 0);
	storeWord64(c.page + PageEpoch, next);
	storeWord(c.page + PageOwner, 0);
}

// share is the part of [0, n) that falls to block i of parts.
FN u64 share(u64 n, u32 i, u32 parts) { return n * i / parts; }
