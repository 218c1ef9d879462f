// One turn of the handshake: reserve, stage, publish, wait, compute, retire. The
// counters only grow, and the kernels themselves advance them. Where the library
// polls for ever these waits have a deadline and an abort word.
#pragma once
#include "memory.h"
#include "rlkernel_layout.h"

// Turn is a thread's view of the call. Only thread 0 of a block waits, so only
// it can give up.
struct Turn {
	u64 page, frame, report;
	u64 sequence; // of the calls before this one
	u32 rank, block;
	u32 bad;
};

FN u64 threadsOfRank(const Args &a) { return (u64)a.blocks * threads(); }
FN u64 threadOfRank(const Turn &t) { return (u64)t.block * threads() + thread(); }
FN u64 payloadOf(const Args &a, u32 rank) { return a.frame[rank] + FramePayload; }

// enter finds the rank of this block. It is false where it has no business: the
// team is poisoned or of another generation.
FN bool enter(Turn &t, const Args &a) {
	u32 group = blockOfGrid() / a.blocks;
	t.block = blockOfGrid() - group * a.blocks;
	t.rank = (u32)(a.ranks >> (8 * group)) & 0xff;
	t.page = a.page[t.rank];
	t.frame = a.frame[t.rank];
	t.report = a.report[t.rank];
	t.sequence = 0;
	t.bad = 0;
	u64 generation = loadWord64(t.page + ControlGeneration); // both loads, and then a look
	u32 aborted = loadWord(t.page + ControlAbort);
	return generation == a.generation && aborted == Fine;
}

// giveUp reports, keeps the launches that follow from doing anything, and tells
// the peers. Who was stopped dead tells nobody.
FN void giveUp(Turn &t, const Args &a, u32 reason, u32 step, u32 peer) {
	if (t.bad) return;
	t.bad = reason;
	storeWord(t.page + ControlAbort, reason);
	if (swapWord(t.page + ControlClaim, 1) == 0) {
		storeWord(t.report + ReportStep, step);
		storeWord(t.report + ReportPeer, peer);
		storeWord64(t.report + ReportSequence, t.sequence);
		fenceSystem();
		releaseWord(t.report + ReportReason, reason);
	}
	if (reason == Killed || reason == Aborted) return;
#pragma unroll 1
	for (u32 p = 0; p < a.world; p++)
		if (p != t.rank) storeWord(a.page[p] + ControlAbort, Aborted);
}

enum { FreePolls = 1024, ClockPolls = 256, MaxJump = 1 << 22 };

FN void nap() { asm volatile("nanosleep.u32 %0;" : : "r"(64) : "memory"); }

// await polls a counter of the first ranks, in rank order, until it has reached a
// value:
// for p := range ranks { for mem[frame[p]+word] < want {} }
// The clock is read rarely; a jump of it, as when a block was set aside, counts
// as a moment. On expiry the counter is polled once more.
FN void await(Turn &t, const Args &a, u32 ranks, u32 word, u64 want, u64 limit, u32 step) {
#pragma unroll 1
	for (u32 p = 0; p < ranks && !t.bad; p++) {
		u64 at = a.frame[p] + word, last = 0, spent = 0;
		u32 polls = 0;
		bool late = false;
#pragma unroll 1
		while (acquireFlag(at) < want) {
			if (late) {
				giveUp(t, a, Deadline, step, p);
				break;
			}
			nap();
			if (++polls < FreePolls || polls % ClockPolls != 0) continue;
			u64 now = clockNow(), d = now - last;
			if (polls > FreePolls) spent += d < MaxJump ? d : MaxJump;
			last = now;
			if (loadWord(t.page + ControlAbort) != Fine) giveUp(t, a, Aborted, step, p);
			else if (loadWord(t.report + ReportStop) != Fine) giveUp(t, a, Stopped, step, p);
			if (t.bad) break;
			late = spent >= limit;
		}
	}
	fenceSystem();
}

// inject delays a rank at a step, or stops it dead there (no cycles), for tests.
FN void inject(Turn &t, const Args &a, u32 step) {
	if (t.bad || a.faultRank != t.rank || a.faultStep != step) return;
	if (a.faultCycles == 0) giveUp(t, a, Killed, step, t.rank);
	u64 start = clockNow(), spent = 0;
	while (spent < a.faultCycles) {
		u64 now = clockNow(), d = now - start;
		spent += d < MaxJump ? d : MaxJump;
		start = now;
	}
}

// The steps below are for thread 0 of a rank's only block.

// reserve waits until everybody has done with the payload of the call before.
FN void reserve(Turn &t, const Args &a) {
	t.sequence = loadWord64(t.frame + FrameStage);
	if ((a.flags & FlagFirst) && swapWord(t.page + ControlOwner, 1) != 0) giveUp(t, a, Claimed, StepEntry, t.rank);
	inject(t, a, StepEntry);
	await(t, a, a.world, FrameDone, t.sequence, a.progress, StepReserve);
	inject(t, a, StepReserve);
}

// publish lets everybody read the payload.
FN void publish(Turn &t, const Args &a) {
	inject(t, a, StepPublish);
	if (t.bad) return;
	fenceSystem();
	releaseFlag(t.frame + FrameStage, t.sequence + 1);
}

// wait waits until everybody has published.
FN void wait(Turn &t, const Args &a) {
	inject(t, a, StepWait);
	await(t, a, a.world, FrameStage, t.sequence + 1, a.arrive, StepWait);
	inject(t, a, StepCompute);
}

// waitOwned waits until rank 0, which has stored into the payload, has retired.
FN void waitOwned(Turn &t, const Args &a) {
	inject(t, a, StepOwned);
	await(t, a, 1, FrameDone, t.sequence + 1, a.arrive, StepOwned);
	inject(t, a, StepCompute);
}

// published is for a launch after the one that published: the counter has been
// advanced already.
FN void published(Turn &t) { t.sequence = loadWord64(t.frame + FrameStage) - 1; }

// retire gives the payloads back.
FN void retire(Turn &t, const Args &a) {
	inject(t, a, StepRetire);
	if (t.bad) return;
	storeWord(t.page + ControlOwner, 0);
	fenceSystem();
	releaseFlag(t.frame + FrameDone, t.sequence + 1);
}
