// Kernels that measure: a barrier of GPUs, an empty node, one flag each way, a
// stretch of busy time, and plain copies. They move no results.
#include "device.h"

// Offsets in the page of a GPU; package meter has the same.
enum {
	MeterEpoch = 0,  // barriers so far
	MeterRank = 8,   // u32, and
	MeterWorld = 12, // u32
	MeterLimit = 16, // cycles that a wait may take
	MeterFault = 24, // address of a word in pinned memory
	MeterPeers = 64, // addresses of the pages of all GPUs, own one included
	MeterSlots = 64 + 64 * 8, // what the peers have signalled
	MeterFlags = 64 + 128 * 8, // u32, two of every peer, for meter_flag
};

enum { LimitPolls = 256 };

FN u64 load64(u64 a) { u64 v; asm volatile("ld.global.b64 %0, [%1];" : "=l"(v) : "l"(a) : "memory"); return v; }
FN u32 load32(u64 a) { u32 v; asm volatile("ld.global.b32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); return v; }
FN void store64(u64 a, u64 v) { asm volatile("st.global.b64 [%0], %1;" : : "l"(a), "l"(v) : "memory"); }
FN void storeSystem(u64 a, u32 v) { asm volatile("st.relaxed.sys.global.b32 [%0], %1;" : : "l"(a), "r"(v) : "memory"); }
FN u32 loadSystem(u64 a) { u32 v; asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(v) : "l"(a) : "memory"); return v; }
FN void fenceSystem() { asm volatile("fence.acq_rel.sys;" : : : "memory"); }
FN void signal(u64 a, u64 v) { asm volatile("st.relaxed.sys.global.b64 [%0], %1; //@release" : : "l"(a), "l"(v) : "memory"); }
FN u64 poll(u64 a) { u64 v; asm volatile("ld.relaxed.sys.global.b64 %0, [%1]; //@acquire" : "=l"(v) : "l"(a) : "memory"); return v; }

// meter_barrier, on one block with a thread for each GPU:
//
//	epoch++
//	for p := range world { peers[p].slots[rank] = epoch }
//	for p := range world { for slots[p] < epoch {} }
//
// A wait beyond the limit ends, and says so in the fault word.
KERNEL void meter_barrier(u64 page) {
	u32 t = thread(), rank = load32(page + MeterRank), world = load32(page + MeterWorld);
	u64 epoch = load64(page + MeterEpoch) + 1;
	u32 late = 0;
	if (t < world && t != rank) {
		u64 peer = load64(page + MeterPeers + 8 * t);
		fenceSystem();
		signal(peer + MeterSlots + 8 * rank, epoch);
		u64 limit = load64(page + MeterLimit), start = clockNow();
		u32 polls = 0;
		while ((s64)(poll(page + MeterSlots + 8 * t) - epoch) < 0) {
			if (++polls % LimitPolls == 0 && clockNow() - start > limit) {
				late = 1;
				break;
			}
		}
		fenceSystem();
	}
	late = syncOr(late);
	if (t == 0) {
		store64(page + MeterEpoch, epoch);
		if (late) storeSystem(load64(page + MeterFault), 1);
	}
}

enum { FlagPeers = 8 };
struct Slots { u64 own[FlagPeers], peer[FlagPeers]; };

// meter_flag, on one thread, is one flag from each to each and no more: no order
// of other memory, nothing read but the flag. A flag that was seen is taken back,
// which the next kernel of the stream comes after; nodes take two slots by turns,
// since a peer may be a node ahead.
//
//	for p := range peers { *peer[p] = 1 }
//	for p := range peers { for *own[p] == 0 {}; *own[p] = 0 }
KERNEL void meter_flag(__grid_constant__ const Slots slots, u64 limit, u64 fault, u32 peers) {
#pragma unroll
	for (u32 p = 0; p < FlagPeers; p++)
		if (p < peers) storeSystem(slots.peer[p], 1);
	u64 start = 0;
	u32 polls = 0;
#pragma unroll
	for (u32 p = 0; p < FlagPeers; p++) {
		if (p >= peers) continue;
		while (loadSystem(slots.own[p]) == 0) {
			if (++polls % LimitPolls != 0) continue;
			u64 now = clockNow();
			if (start == 0) start = now;
			if (now - start > limit) {
				storeSystem(fault, 1);
				return;
			}
		}
		storeSystem(slots.own[p], 0);
	}
}

// meter_empty does nothing.
KERNEL void meter_empty(u64) {}

// meter_spin keeps its threads busy for a number of cycles.
KERNEL void meter_spin(u64 cycles) {
	u64 start = clockNow();
	while (clockNow() - start < cycles) {}
}

struct Line { u32 w[4]; };
enum { Flight = 8 };

FN Line loadLine(u64 a) {
	Line l;
	asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(l.w[0]), "=r"(l.w[1]), "=r"(l.w[2]), "=r"(l.w[3]) : "l"(a) : "memory");
	return l;
}
FN void storeLine(u64 a, Line l) {
	asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" : : "l"(a), "r"(l.w[0]), "r"(l.w[1]), "r"(l.w[2]), "r"(l.w[3]) : "memory");
}

// meter_copy copies lines of 16 bytes, eight in flight in a thread:
//
//	for i := range lines { dst[i] = src[i] }
KERNEL void meter_copy(u64 dst, u64 src, u64 lines, u32 grid) {
	u64 stride = (u64)grid * threads(), i = (u64)blockOfGrid() * threads() + thread();
#pragma unroll 1
	for (; i + (Flight - 1) * stride < lines; i += Flight * stride) {
		Line l[Flight];
#pragma unroll
		for (u32 k = 0; k < Flight; k++) l[k] = loadLine(src + 16 * (i + k * stride));
#pragma unroll
		for (u32 k = 0; k < Flight; k++) storeLine(dst + 16 * (i + k * stride), l[k]);
	}
#pragma unroll 1
	for (; i < lines; i += stride) storeLine(dst + 16 * i, loadLine(src + 16 * i));
}
