// The push path: payloads as flagged lines in the peers' boxes. A unit is 16
// bytes of payload, two lines.
#pragma once
#include "access.h"
#include "protocol.h"

// Job is what the launch says of the call.
struct Job {
	const u64 *words; // of the lanes, in device memory or in the parameters
	u32 collective, path, lanes, root, flags;
};

FN u64 slotUnits(const Call &c) { return c.near->slot / 16; }

// lineAt is where a unit of a sender lies in a box. The first lines of 32 units
// come before their second ones: what a warp stores at once is in one piece.
enum { Second = 512 };
FN u64 lineAt(const Call &c, u64 box, u64 slot, u32 sender, u64 unit) {
	return box + (((u64)c.half * c.world + sender) * slot + (unit & ~31ull)) * 32 + (unit & 31) * 16;
}

FN void sendUnit(u64 a, Line l, u32 flag) {
	storeFlagged(a, l.w[0], l.w[1], flag);
	storeFlagged(a + Second, l.w[2], l.w[3], flag);
}

// Payload is one block of a lane as this rank sends it.
struct Payload {
	u64 src;   // of block 0
	u64 bytes; // of a block
	u64 base;  // first unit in the slot
	u64 lo, hi; // the units of this thread block
	bool perPeer; // peer p gets block p, not all of them block 0
	bool tight;
};

FN Line payloadUnit(const Payload &y, u32 peer, u64 unit) {
	u64 first = y.src + (y.perPeer ? peer * y.bytes : 0), at = 16 * unit;
	u32 n = y.bytes - at < 16 ? (u32)(y.bytes - at) : 16;
	return loadUnit(first + at, n, first, first + y.bytes, y.tight);
}

// send: for p, u { box[p][half][rank][base+u] = src[p or 0][16u:16u+16], flagged }
FN void send(const Call &c, const Payload &y, u64 slot) {
	u64 count = y.hi - y.lo;
	if (!y.perPeer) {
#pragma unroll 1
		for (u64 u = y.lo + thread(); u < y.hi; u += threads()) {
			Line l = payloadUnit(y, 0, u);
#pragma unroll 1
			for (u32 i = 1; i < c.world; i++) {
				u32 p = c.rank + i < c.world ? c.rank + i : c.rank + i - c.world;
				sendUnit(lineAt(c, boxOf(c, p), slot, c.rank, y.base + u), l, c.flag);
			}
		}
		return;
	}
#pragma unroll 1
	for (u64 i = thread(); i < count * c.world; i += threads()) {
		u32 p = (u32)(i / count);
		if (p == c.rank) continue;
		u64 u = y.lo + i % count;
		sendUnit(lineAt(c, boxOf(c, p), slot, c.rank, y.base + u), payloadUnit(y, p, u), c.flag);
	}
}

// stamp writes this epoch's flag into all lines of this half of the peers'
// boxes that the call leaves alone: units from used on.
FN void stamp(const Call &c, u64 slot, u64 used) {
#pragma unroll 1
	for (u64 u = used + (u64)c.block * threads() + thread(); u < slot; u += (u64)c.blocks * threads())
#pragma unroll 1
		for (u32 p = 0; p < c.world; p++)
			if (p != c.rank) sendUnit(lineAt(c, boxOf(c, p), slot, c.rank, u), zeroLine(), c.flag);
}

// peekUnit polls a unit in the own box once.
FN bool peekUnit(u64 a, u32 flag, Line &l) {
	bool x = loadFlagged(a, flag, l.w[0], l.w[1]);
	bool y = loadFlagged(a + Second, flag, l.w[2], l.w[3]);
	return x && y;
}

// awaitUnit polls until a unit is there.
FN void awaitUnit(Call &c, u64 a, u32 sender, Line &l) {
	u64 limit = c.team->progress;
	Patience w = fresh();
	bool came, late = c.bad != 0;
	while (!(came = peekUnit(a, c.flag, l)) && !late) late = impatient(c, w, limit, StepData, sender);
	if (!came) giveUp(c, Deadline, StepData, sender);
}
