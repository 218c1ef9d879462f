// An all-reduce of floats that anybody could write: wait until all sources are
// there, add them in the order of a balanced tree, wait until nobody reads any
// more. Compiled without CUDA:
//
//	clang-22 -x cuda --cuda-device-only -nocudainc -nocudalib -O2 -ffp-contract=off -gline-tables-only -fdebug-compilation-dir=. \
//	    --cuda-gpu-arch=sm_90 --cuda-feature=+ptx84 -S -o allreduce.ptx allreduce.cu
//
// With -DRACE the flags are stored without release.
#ifdef __clang__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#endif

static __device__ unsigned special(int which) {
	unsigned v;
	if (which == 0) asm volatile("mov.u32 %0, %%tid.x;" : "=r"(v));
	else if (which == 1) asm volatile("mov.u32 %0, %%ntid.x;" : "=r"(v));
	else if (which == 2) asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(v));
	else asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(v));
	return v;
}
static __device__ void sync() { asm volatile("bar.sync 0;" ::: "memory"); }

static __device__ void tell(unsigned *flag, unsigned value) {
#ifdef RACE
	asm volatile("st.relaxed.sys.global.b32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
#else
	asm volatile("st.release.sys.global.b32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
#endif
}
static __device__ void await(unsigned *flag, unsigned value) {
	unsigned v;
	do asm volatile("ld.acquire.sys.global.b32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	while (v < value);
}

// meet lets block b of every rank wait for block b of all others.
static __device__ void meet(unsigned **flags, unsigned rank, unsigned ranks, unsigned value) {
	sync();
	if (unsigned t = special(0); t < ranks) {
		tell(flags[t] + special(2) * ranks + rank, value);
		await(flags[rank] + special(2) * ranks + t, value);
	}
	sync();
}

extern "C" __global__ void allreduce(float *const *src, float *dst, unsigned **flags, long count, unsigned rank, unsigned ranks) {
	meet(flags, rank, ranks, 1);
	for (long i = special(2) * special(1) + special(0); i < count; i += special(3) * special(1)) {
		float v[8];
#pragma unroll
		for (int r = 0; r < 8; r++)
			v[r] = r < ranks ? *(volatile float *)(src[r] + i) : 0;
#pragma unroll
		for (int s = 1; s < 8; s *= 2)
#pragma unroll
			for (int r = 0; r < 8; r += 2 * s)
				if (r + s < ranks) v[r] += v[r + s];
		dst[i] = v[0];
	}
	meet(flags, rank, ranks, 2);
}
