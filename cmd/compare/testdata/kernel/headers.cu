// An all-reduce of bf16 as one would write it with CUDA's own headers: flags are
// cuda::atomic_ref, pairs of elements are __nv_bfloat162, added with __hadd2 in the
// order of a balanced tree, and each warp counts with votes and shuffles what it
// has done, which the block adds up in shared memory. With the headers of cuda-crt,
// cuda-runtime and cccl:
//
//	nvcc -ptx -arch=sm_90 -std=c++17 -I cccl -o headers.ptx headers.cu
#include <cassert>
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda_bf16.h>

namespace cg = cooperative_groups;

constexpr int kRanks = 8;
struct Peers { __nv_bfloat16 *src[kRanks]; };
struct Flags { unsigned *flag[kRanks]; };

// meet lets block b of every rank wait for block b of all others.
static __device__ void meet(const Flags &f, unsigned rank, unsigned ranks, unsigned value) {
	using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;
	__syncthreads();
	if (threadIdx.x < ranks) {
		Flag(f.flag[threadIdx.x][blockIdx.x * ranks + rank]).store(value, cuda::std::memory_order_release);
		Flag mine(f.flag[rank][blockIdx.x * ranks + threadIdx.x]);
		while (mine.load(cuda::std::memory_order_acquire) < value) __nanosleep(40);
	}
	__syncthreads();
}

extern "C" __global__ void allreduce(Peers p, __nv_bfloat162 *dst, Flags f, long long count, unsigned rank, unsigned ranks) {
	__shared__ unsigned done;
	if (threadIdx.x == 0) done = 0;
	meet(f, rank, ranks, 1);
	auto warp = cg::tiled_partition<32>(cg::this_thread_block());
	unsigned pairs = 0, ballots = 0;
	for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i - threadIdx.x % 32 < count / 2; i += gridDim.x * blockDim.x) {
		bool mine = i < count / 2;
		ballots += __popc(__ballot_sync(0xFFFFFFFF, mine));
		if (!mine) continue;
		__nv_bfloat162 v[kRanks];
		for (int r = 0; r < ranks; r++) v[r] = reinterpret_cast<const __nv_bfloat162 *>(p.src[r])[i];
		for (int s = 1; s < kRanks; s *= 2)
			for (int r = 0; r < kRanks; r += 2 * s)
				if (r + s < ranks) v[r] = __hadd2(v[r], v[r + s]);
		dst[i] = v[0];
		pairs++;
	}
	for (int o = warp.size() / 2; o; o /= 2) pairs += warp.shfl_down(pairs, o);
	if (warp.thread_rank() == 0) {
		assert(pairs == ballots);
		atomicAdd(&done, pairs);
	}
	__syncthreads();
	assert(__reduce_max_sync(0xFFFFFFFF, done) == __shfl_sync(0xFFFFFFFF, done, 0));
	meet(f, rank, ranks, 2);
}
