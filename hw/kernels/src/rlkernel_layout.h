// Where things lie in memory that host and kernels of rlkernel share. Package
// hw/rlkernel has the same numbers in layout.go, and a test that reads this file.
#pragma once
#include "device.h"

enum { RankLimit = 8 };

// The frame of a rank in device memory: two counters, and behind a header of 32
// bytes the payload, so that it begins at a multiple of 16.
enum { FrameStage = 0, FrameDone = 8, FramePayload = 32 };

// The control page of a rank, in device memory, which is never freed.
enum {
	ControlGeneration = 0, // u64
	ControlAbort = 8,      // u32, a Reason: the team is poisoned
	ControlOwner = 12,     // u32, 1 while a call runs
	ControlClaim = 16,     // u32, 1 once the report is being filled in
	ControlBytes = 256
};

// The report of a rank, in pinned host memory, which is never freed.
enum {
	ReportStop = 0,      // u32, written by the host: a Reason
	ReportReason = 4,    // u32, a Reason, written last
	ReportStep = 8,      // u32, a Step
	ReportPeer = 12,     // u32, the rank waited for
	ReportSequence = 16, // u64, of the call
	ReportBytes = 128
};

enum Reason { Fine = 0, Deadline = 1, Aborted = 2, Claimed = 3, Stopped = 4, Killed = 5 };

// The steps of a call, for reports and for injected delays. StepReserve, StepWait
// and StepOwned, which waits for rank 0 to reduce for all, wait for peers.
enum Step { StepEntry = 0, StepReserve = 1, StepPublish = 2, StepWait = 3, StepOwned = 4, StepCompute = 5, StepRetire = 6 };

// What a launch of rl_signal does.
enum { DoReserve = 1, DoPublish = 2, DoWait = 3, DoOwned = 4, DoRetire = 5 };

// Flags of a launch. FlagFirst is on the first of a call.
enum { FlagFirst = 1, FlagVectors = 2, FlagPeerwise = 4, FlagPairs = 8 };

enum Type { TypeBF16 = 0, TypeF16 = 1, TypeF32 = 2 };

// Args are what a launch says, all by value. Arrays are indexed by rank.
struct Args {
	u64 page[RankLimit];
	u64 frame[RankLimit];
	u64 report[RankLimit];
	u64 src[RankLimit];
	u64 dst[RankLimit];
	u64 generation;
	u64 arrive, progress; // cycles
	u64 faultCycles;
	u64 ranks; // byte g is the rank whose blocks are the group g
	u64 bytes; // a gather: of a rank's input; a copy or stage: to be moved
	u64 count; // a reduction: elements of the output
	u64 skip;  // a reduction: elements of the payload before rank 0's
	u32 each;  // 1 if rank r's output begins r times count elements further on
	u32 world, blocks, type, flags, what, faultRank, faultStep;
};
