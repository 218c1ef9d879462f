// Where things lie in memory that host and kernels share. Package hw has the
// same numbers in layout.go, and a test that reads this file.
#pragma once
#include "device.h"

enum { MaxRanks = 72, MaxBlocks = 128, Peers = 128 };

// The control page of a rank, in device memory, which is never freed.
enum {
	PageGeneration = 0, // u64, read in one access with the next
	PageEpoch = 8,      // u64
	PageOwner = 16,     // u32, 1 while a call runs
	PageLeave = 20,     // u32, blocks of the running call that have left; wraps to 0
	PageAbort = 24,     // u32, a Reason: the team is poisoned
	PageClaim = 28,     // u32, 1 once a block has filled in the report
	PageHeaders = 256,  // [2][Peers] lines
	PageFlags = PageHeaders + 2 * Peers * 16,          // [MaxBlocks][Peers] u64
	PageTable = PageFlags + MaxBlocks * Peers * 8,     // the team table
	PageBytes = PageTable + 4096
};

// The team table, one copy a GPU, in the page of the GPU's first rank.
enum {
	TableWorld = 0,     // u32
	TableSlot = 8,      // u64, bytes of payload of a sender in a box
	TableArrive = 16,   // u64, cycles
	TableProgress = 24, // u64, cycles
	TableStage = 32,    // u64, bytes of one of the two stages of a rank
	TablePages = 64,    // [MaxRanks] u64
	TableBoxes = TablePages + MaxRanks * 8,
	TableStages = TableBoxes + MaxRanks * 8,
	TableReports = TableStages + MaxRanks * 8,
	TableLocal = TableReports + MaxRanks * 8 // [MaxRanks] u32, the ranks on this GPU
};

// The report of a rank, in pinned host memory, which is never freed.
enum {
	ReportStop = 0,   // u32, written by the host: a Reason
	ReportFault = 8,  // u32, a Reason, written last
	ReportStep = 12,  // u32, a Step, and above 8 bits the number of the barrier
	ReportEpoch = 16, // u64
	ReportPeer = 24,  // u32, the rank waited for
	ReportBlock = 28, // u32
	ReportHash = 32,  // u64, the peer's, after a mismatch
	ReportBytes = 64
};

enum Reason { Fine = 0, Deadline = 1, Aborted = 2, Differs = 3, Claimed = 4, Stopped = 5, Killed = 6 };

// The steps of a call, for reports and for injected delays.
enum Step { StepEntry = 0, StepHeader = 1, StepAgreed = 2, StepPushed = 3, StepData = 4, StepBarrier = 5, StepLeave = 6 };

// What a call does. The first word of a lane is its count, then comes its
// Type, then a source and a destination for every rank.
enum Collective { AllReduce = 0, ReduceScatter = 1, AllGather = 2, Broadcast = 3, AllToAll = 4 };
enum Path { PathPush = 0, PathDirect = 1, PathTwoShot = 2, PathStaged = 3 };
enum { InlineWords = 148 };
struct Words { u64 w[InlineWords]; };

// Near and Team are what a launch says of the team, so that no kernel waits for a
// load to know it. Near lies among the first parameters, which are fetched
// together: the first rank on this GPU, its memory and that of the rank after it.
struct Near {
	u32 world, rank;
	u64 page, box, report, nextPage, nextBox;
	u64 slot; // as in the table
};

// The lists of ranks are there for up to InlineRanks of them; the table has them
// for all.
enum { InlineRanks = 8 };
struct Team {
	u64 pages[InlineRanks], boxes[InlineRanks], stages[InlineRanks], reports[InlineRanks];
	u64 arrive, progress, stage; // as in the table
	u32 local[InlineRanks]; // the ranks on this GPU
};

// Type is log2 of the size of an element | Kind << 8; Kind is for reductions.
enum { TypeKind = 8 };

// With FlagDiffers the rank that a fault is injected into makes another call. With
// FlagOverlap the next call may begin while this one runs.
enum { FlagInPlace = 1, FlagDiffers = 2, FlagOverlap = 4 };
