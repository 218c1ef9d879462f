// The words of CUDA C++ that the kernels use, for a clang without CUDA's own
// headers. Under nvcc and NVRTC, which know them, it vanishes.
#pragma once

#ifndef __CUDACC_RTC__
#ifdef __clang__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__ __attribute__((grid_constant))
#endif
#endif

#define KERNEL extern "C" __global__ __launch_bounds__(256)
// One block of a ROOMY kernel has a multiprocessor to itself, with all registers.
#define ROOMY extern "C" __global__ __launch_bounds__(256, 1)
// Two blocks of a LEAN kernel fit a multiprocessor, so that two teams' calls fit
// side by side.
#define LEAN extern "C" __global__ __launch_bounds__(256, 2)
#define INLINE __device__ inline __attribute__((always_inline))
#define FN static INLINE

#define RARE(x) __builtin_expect((x) ? 1 : 0, 0)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

// Special registers, barriers and clocks as asm, so that every compiler makes
// the same PTX of them.
FN u32 thread() { u32 v; asm volatile("mov.u32 %0, %%tid.x;" : "=r"(v)); return v; }
FN u32 threads() { u32 v; asm volatile("mov.u32 %0, %%ntid.x;" : "=r"(v)); return v; }
FN u32 blockOfGrid() { u32 v; asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(v)); return v; }
FN u64 clockNow() { u64 v; asm volatile("mov.u64 %0, %%clock64;" : "=l"(v) : : "memory"); return v; }

// A launch with Overlap begins while the one before it on the stream still runs,
// from where all blocks of that one have come to letNext; it ends, and all it has
// written is there, where awaitLast returns. Elsewhere neither does anything.
FN void awaitLast() { asm volatile("griddepcontrol.wait;" : : : "memory"); }
FN void letNext() { asm volatile("griddepcontrol.launch_dependents;" : : : "memory"); }

// syncOr is a barrier of the block; it tells all threads whether any came with
// bad set. Warps come to it whole, as compute-sanitizer wants it.
FN u32 syncOr(u32 bad) {
	u32 any;
	asm volatile(
		"{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %1, 0;\n\tbar.warp.sync 0xffffffff;\n\tbarrier.cta.red.or.pred.aligned q, 0, p;\n\tselp.u32 %0, 1, 0, q;\n\t}"
		: "=r"(any) : "r"(bad) : "memory");
	return any;
}

FN float asFloat(u32 b) { return __builtin_bit_cast(float, b); }
FN u32 asBits(float f) { return __builtin_bit_cast(u32, f); }
FN double asDouble(u64 b) { return __builtin_bit_cast(double, b); }
FN u64 asBits64(double f) { return __builtin_bit_cast(u64, f); }
