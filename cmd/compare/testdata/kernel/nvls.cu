// NVSHMEM's collectives of block scope, as its headers have them, with the
// multicast branch that its bitcode lacks; for tests that find the vendor's wheel.
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#include "non_abi/device/coll/fcollect.cuh"
#include "non_abi/device/coll/reduce.cuh"
#include "non_abi/device/coll/reducescatter.cuh"

#define SCOPE NVSHMEMI_THREADGROUP_BLOCK
#define KERNELS(name, type) \
	extern "C" __global__ void reduce_##name(nvshmem_team_t team, type *dst, const type *src, size_t n) { \
		nvshmemi_reduce_threadgroup<type, RDXN_OPS_SUM, SCOPE>(team, dst, src, n); \
	} \
	extern "C" __global__ void reducescatter_##name(nvshmem_team_t team, type *dst, const type *src, size_t n) { \
		nvshmemi_reducescatter_threadgroup<type, RDXN_OPS_SUM, SCOPE>(team, dst, src, nvshmemi_team_my_pe(team) * n, n); \
	} \
	extern "C" __global__ void fcollect_##name(nvshmem_team_t team, type *dst, const type *src, size_t n) { \
		nvshmemi_fcollect_threadgroup<type, SCOPE>(team, dst, src, nvshmemi_team_my_pe(team) * n, n); \
	}

KERNELS(bf16, __nv_bfloat16)
KERNELS(f16, half)
