#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
__device__ __attribute__((noinline)) unsigned mix(unsigned a, unsigned b) { return a * 31u + (b ^ (a >> 3)); }
__device__ __attribute__((noinline)) unsigned many(unsigned *p, int n) { unsigned s = 0; for (int i = 0; i < n; i++) s = mix(s, p[i]); return s; }
extern "C" __global__ void k(unsigned *p, unsigned *out, int n) { *out = many(p, n) + mix(n, 1); }
