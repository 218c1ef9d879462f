// How bytes move: staging, the gathers of both versions, and what stands for a
// device-to-device copy.
#pragma once
#include "rlkernel_turn.h"

FN void moveByte(u64 dst, u64 src) { storePiece(dst, loadPiece(src, 1), 1); }

// moveBytes is, over the threads of a rank: copy(mem[dst:dst+n], mem[src:]), a
// byte a thread and trip.
FN void moveBytes(const Turn &t, const Args &a, u64 dst, u64 src, u64 n) {
#pragma unroll 1
	for (u64 i = threadOfRank(t); i < n; i += threadsOfRank(a)) moveByte(dst + i, src + i);
}

// moveLines is the same for n lines of 16 bytes at aligned addresses.
FN void moveLines(const Turn &t, const Args &a, u64 dst, u64 src, u64 n) {
#pragma unroll 1
	for (u64 i = threadOfRank(t); i < n; i += threadsOfRank(a)) storeLine(dst + 16 * i, loadLine(src + 16 * i));
}

// stage copies the input into the own payload: in lines if input, payload and
// length are all multiples of 16, else all of it byte by byte.
FN void stage(const Turn &t, const Args &a) {
	u64 src = a.src[t.rank], to = payloadOf(a, t.rank);
	if (((src | to | a.bytes) & 15) == 0) moveLines(t, a, to, src, a.bytes / 16);
	else moveBytes(t, a, to, src, a.bytes);
}

// gatherBytes is the gather of before:
// for i := range world*bytes { dst[i] = payload[i/bytes][i%bytes] }
FN void gatherBytes(const Turn &t, const Args &a) {
	u64 dst = a.dst[t.rank], total = a.world * a.bytes;
#pragma unroll 1
	for (u64 i = threadOfRank(t); i < total; i += threadsOfRank(a)) {
		u64 p = i / a.bytes;
		moveByte(dst + i, payloadOf(a, (u32)p) + (i - p * a.bytes));
	}
}

// gatherLines is the same in lines, with everything aligned.
FN void gatherLines(const Turn &t, const Args &a) {
	u64 dst = a.dst[t.rank], each = a.bytes / 16, total = a.world * each;
#pragma unroll 1
	for (u64 i = threadOfRank(t); i < total; i += threadsOfRank(a)) {
		u64 p = i / each;
		storeLine(dst + 16 * i, loadLine(payloadOf(a, (u32)p) + 16 * (i - p * each)));
	}
}

// gatherRanks goes from rank to rank: in lines and a tail of bytes where the
// rank's piece is aligned on both sides, else in bytes.
FN void gatherRanks(const Turn &t, const Args &a) {
#pragma unroll 1
	for (u32 p = 0; p < a.world; p++) {
		u64 dst = a.dst[t.rank] + p * a.bytes, src = payloadOf(a, p), lines = 0;
		if (((dst | src) & 15) == 0) {
			lines = a.bytes / 16;
			moveLines(t, a, dst, src, lines);
		}
		moveBytes(t, a, dst + 16 * lines, src + 16 * lines, a.bytes - 16 * lines);
	}
}

// gather is: for p := range world { copy(dst[p*bytes:], payload[p][:bytes]) }
FN void gather(const Turn &t, const Args &a) {
	if (!(a.flags & FlagVectors)) {
		gatherBytes(t, a);
		return;
	}
	u64 all = a.dst[t.rank] | a.bytes;
#pragma unroll 1
	for (u32 p = 0; p < a.world; p++) all |= payloadOf(a, p);
	if ((all & 15) == 0 && !(a.flags & FlagPeerwise)) gatherLines(t, a);
	else gatherRanks(t, a);
}

// moveUnits is moveLines for units of W < 16 bytes.
template <u32 W> FN void moveUnits(const Turn &t, const Args &a, u64 dst, u64 src, u64 n) {
#pragma unroll 1
	for (u64 i = threadOfRank(t); i < n; i += threadsOfRank(a)) storePiece(dst + W * i, loadPiece(src + W * i, W), W);
}

// block copies n bytes in the widest units that both addresses can be aligned to,
// ends byte by byte, as a copy of the driver's is fast at any alignment.
FN void block(const Turn &t, const Args &a, u64 dst, u64 src, u64 n) {
	u32 apart = (u32)(dst ^ src), log = 4;
	for (u32 k = 0; k < 4; k++)
		if (apart >> k & 1 && log == 4) log = k;
	u64 head = (0 - dst) & ((1u << log) - 1);
	if (head > n) head = n;
	u64 units = (n - head) >> log, tail = head + (units << log);
	moveBytes(t, a, dst, src, head);
	switch (log) {
	case 4: moveLines(t, a, dst + head, src + head, units); break;
	case 3: moveUnits<8>(t, a, dst + head, src + head, units); break;
	case 2: moveUnits<4>(t, a, dst + head, src + head, units); break;
	case 1: moveUnits<2>(t, a, dst + head, src + head, units); break;
	default: moveUnits<1>(t, a, dst + head, src + head, units);
	}
	moveBytes(t, a, dst + tail, src + tail, n - tail);
}
