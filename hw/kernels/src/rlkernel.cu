// The kernels of rlkernel: what RL-Kernel's DeterministicCollective launches. A
// launch does its part of a call for some ranks of one GPU, blocks thread blocks
// each. Which launches make a call is the host's to say.
#include "rlkernel_copy.h"
#include "rlkernel_tree.h"

// BLOCKS are of 256 threads, as the library's.
#define BLOCKS extern "C" __global__ __launch_bounds__(256)

#define BEGIN \
	Turn t;   \
	bool here = enter(t, a);

// together is a barrier of the block, and false once its thread 0 has given up.
FN bool together(const Turn &t, bool here) { return !syncOr(!here || t.bad); }

// whole is a call in one block: reserve, stage, publish, wait, compute, retire.
template <bool Reduces> FN void whole(const Args &a) {
	BEGIN
	if (!together(t, here)) return;
	if (thread() == 0) reserve(t, a);
	if (!together(t, here)) return;
	stage(t, a);
	if (!together(t, here)) return;
	if (thread() == 0) {
		publish(t, a);
		wait(t, a);
	}
	if (!together(t, here)) return;
	if (Reduces) reduce(t, a);
	else gather(t, a);
	if (!together(t, here)) return;
	if (thread() == 0) retire(t, a);
}

// rl_fused_gather is all_gather in one block.
BLOCKS void rl_fused_gather(const __grid_constant__ Args a) {
	whole<false>(a);
}

// rl_fused_reduce is all_reduce in one block.
BLOCKS void rl_fused_reduce(const __grid_constant__ Args a) {
	whole<true>(a);
}

// rl_stage is reserve, stage and publish in one block.
BLOCKS void rl_stage(const __grid_constant__ Args a) {
	BEGIN
	if (!together(t, here)) return;
	if (thread() == 0) reserve(t, a);
	if (!together(t, here)) return;
	stage(t, a);
	if (!together(t, here)) return;
	if (thread() == 0) publish(t, a);
}

// rl_finish is wait, reduce and retire in one block.
BLOCKS void rl_finish(const __grid_constant__ Args a) {
	BEGIN
	if (!together(t, here)) return;
	if (thread() == 0) {
		published(t);
		wait(t, a);
	}
	if (!together(t, here)) return;
	reduce(t, a);
	if (!together(t, here)) return;
	if (thread() == 0) retire(t, a);
}

// rl_signal is one step of the handshake in a launch of its own, of one thread.
BLOCKS void rl_signal(const __grid_constant__ Args a) {
	BEGIN
	if (!here) return;
	switch (a.what) {
	case DoReserve: reserve(t, a); return;
	case DoPublish:
		t.sequence = loadWord64(t.frame + FrameStage);
		publish(t, a);
		return;
	}
	published(t);
	switch (a.what) {
	case DoWait: wait(t, a); return;
	case DoOwned: waitOwned(t, a); return;
	case DoRetire: retire(t, a); return;
	}
}

// rl_copy stands for a device-to-device copy of every rank: from its src to its
// dst.
BLOCKS void rl_copy(const __grid_constant__ Args a) {
	BEGIN
	if (here) block(t, a, a.dst[t.rank], a.src[t.rank], a.bytes);
}

// rl_gather is the gather on a grid.
BLOCKS void rl_gather(const __grid_constant__ Args a) {
	BEGIN
	if (here) gather(t, a);
}

// rl_reduce is the reduction on a grid.
BLOCKS void rl_reduce(const __grid_constant__ Args a) {
	BEGIN
	if (here) reduce(t, a);
}
