// The kernels of rlkernel: what RL-Kernel's DeterministicCollective launches. A
// launch does its part of a call for some ranks of one GPU, blocks thread blocks
// each. Which launches make a call is the host's to say.
#include "rlkernel_copy.h"
#include "rlkernel_tree.h"

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
		wait(t, a, t.sequence + 1);
	}
	if (!together(t, here)) return;
	if (Reduces) reduce(t, a);
	else gather(t, a);
	if (!together(t, here)) return;
	if (thread() == 0) retire(t, a, t.sequence + 1);
}

// rl_fused_gather is all_gather in one block.
KERNEL void rl_fused_gather(const __grid_constant__ Args a) {
	whole<false>(a);
}

// rl_fused_reduce is all_reduce in one block.
KERNEL void rl_fused_reduce(const __grid_constant__ Args a) {
	whole<true>(a);
}

// rl_stage is reserve, stage and publish in one block.
KERNEL void rl_stage(const __grid_constant__ Args a) {
	BEGIN
	if (!together(t, here)) return;
	if (thread() == 0) reserve(t, a);
	if (!together(t, here)) return;
	stage(t, a);
	if (!together(t, here)) return;
	if (thread() == 0) publish(t, a);
}

// rl_finish is wait, reduce and retire in one block.
KERNEL void rl_finish(const __grid_constant__ Args a) {
	BEGIN
	if (!together(t, here)) return;
	if (thread() == 0) {
		t.sequence = loadWord64(t.frame + FrameStage);
		wait(t, a, t.sequence);
	}
	if (!together(t, here)) return;
	reduce(t, a);
	if (!together(t, here)) return;
	if (thread() == 0) retire(t, a, t.sequence);
}

// rl_signal is one thread's part of the handshake in a launch of its own: the
// steps of what.
KERNEL void rl_signal(const __grid_constant__ Args a) {
	BEGIN
	if (!here) return;
	if (a.what & DoReserve) reserve(t, a);
	t.sequence = loadWord64(t.frame + FrameStage);
	if (a.what & DoPublish) publish(t, a);
	if (a.what & DoWait) wait(t, a, t.sequence);
	// The followers' wait for rank 0, which has stored into their payloads.
	if (a.what & DoOwned) {
		inject(t, a, StepWait);
		await(t, a, 0, 1, FrameDone, t.sequence, a.arrive, StepWait);
		inject(t, a, StepCompute);
	}
	if (a.what & DoRetire) retire(t, a, t.sequence);
}

// rl_copy stands for a device-to-device copy of every rank: from its src to its
// dst.
KERNEL void rl_copy(const __grid_constant__ Args a) {
	BEGIN
	if (here) block(t, a, a.dst[t.rank], a.src[t.rank], a.bytes);
}

// rl_gather is the gather on a grid.
KERNEL void rl_gather(const __grid_constant__ Args a) {
	BEGIN
	if (here) gather(t, a);
}

// rl_reduce is the reduction on a grid.
KERNEL void rl_reduce(const __grid_constant__ Args a) {
	BEGIN
	if (here) reduce(t, a);
}
