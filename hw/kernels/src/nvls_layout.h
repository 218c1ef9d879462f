// Where things lie in memory that host and kernels of nvls and cascade share.
// Package hw/inswitch has the same numbers in layout.go, and a test that reads
// this file.
#pragma once
#include "device.h"

enum { RankLimit = 72, BlockLimit = 64, PeerSlots = 128 };

// The control page of a rank, in device memory, which is never freed.
enum {
	PageGeneration = 0, // u64
	PageEpoch = 8,      // u64
	PageOwner = 16,     // u32, 1 while a call runs
	PageLeave = 20,     // u32, blocks of the running call that have left
	PageAbort = 24,     // u32, a Reason: the team is poisoned
	PageClaim = 28,     // u32, 1 once a block has filled in the report
	PageHeaders = 256,  // [2][PeerSlots] lines
	PageFlags = PageHeaders + 2 * PeerSlots * 16, // [BlockLimit][PeerSlots] u64
	PageBytes = PageFlags + BlockLimit * PeerSlots * 8
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
enum Step { StepEntry = 0, StepHeader = 1, StepAgreed = 2, StepData = 3, StepBarrier = 4, StepLeave = 5 };

// Objects that have a multicast address. An object begins at a multiple of
// ObjectAlign; in the emulated form its address is ObjectTag + object<<ObjectShift.
enum { ObjectStage = 0, ObjectSource = 1, ObjectTarget = 2, Objects = 3, ObjectAlign = 256, ObjectShift = 44 };
enum : u64 { ObjectTag = 0x4D43000000000000ull };

enum Collective { AllReduce = 0, ReduceScatter = 1, AllGather = 2 };

// The load-reduces. Sums of 16-bit floats carry .acc::f32.
enum Form {
	SumBF16, SumF16, SumF32, SumF64, MinBF16x2, MaxBF16x2, MinF16x2, MaxF16x2, SumU32, MinS32x1, MaxS32x1, MinU32x1, MaxU32x1,
	SumU64, MinS64x1, MaxS64x1, MinU64x1, MaxU64x1, AndB64, OrB64, XorB64, Forms
};

// Last roundings of a 16-bit sum, of the emulated form.
enum Direction { Nearest = 0, TowardZero = 1, Away = 2, Seeded = 3 };

// The versions of the cascade, and what its select is told.
enum Version { Before = 0, After = 1, AfterTeam = 2, AfterTail = 3 };
enum { SegmentBytes = 32768, ExchangeLimit = 32768, LineLimit = 2048, LineTotal = 262144 };

enum {
	FlagInPlace = 1,
	FlagDiffers = 2,  // the rank that a fault is injected into makes another call
	FlagSwitch = 4,   // cascade: the call may go through the switch
	FlagWorld = 8,    // cascade: the team is the world's
	FlagTernary = 16, // min and max are (x < y) ? x : y
	FlagHalf = 32     // the elements are 16-bit floats
};

// Args are what a launch says, all by value. Arrays are indexed by rank.
struct Args {
	u64 page[RankLimit];
	u64 report[RankLimit];
	u64 stage[RankLimit];
	u64 src[RankLimit];
	u64 dst[RankLimit];
	u64 cast[Objects]; // multicast addresses
	u64 room[Objects]; // bytes behind them
	u64 generation, hash, arrive, progress, faultCycles;
	u64 count;     // elements: of a block where there are several
	u64 stageHalf; // bytes of each of the two halves of a stage
	u64 seed;      // of Seeded
	u64 threshold; // cascade: one shot up to so many elements
	u32 first;     // rank of the first group of blocks
	u32 world, blocks, collective, form, join, log, dir, resultBits, termBits, flags, version, algo, faultRank, faultStep;
};
