// The part of CUDA's driver API that this package calls, declared by hand so
// that nothing of the toolkit is needed to build. Functions go by their ABI
// names: the toolkit's header hides the _v2 suffixes behind #defines, dlsym
// does not.

#ifndef TANDEM_CUDA_ABI_H
#define TANDEM_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemHandle; // CUmemGenericAllocationHandle

// Handles are pointers in CUDA's header. Here they are integers of that size,
// so that Go never takes one for a pointer of its own.
typedef uintptr_t CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUgraph, CUgraphExec;

typedef struct {
	int type; // CU_MEM_LOCATION_TYPE_DEVICE is 1
	int id;
} CUmemLocation;

typedef struct {
	int type;        // CU_MEM_ALLOCATION_TYPE_PINNED is 1
	int handleTypes; // 1 descriptor, 8 fabric
	CUmemLocation location;
	void *win32;
	unsigned char flags[8];
} CUmemAllocationProp;

typedef struct {
	CUmemLocation location;
	int flags; // CU_MEM_ACCESS_FLAGS_PROT_READWRITE is 3
} CUmemAccessDesc;

typedef struct {
	unsigned int devices;
	size_t size;
	unsigned long long handleTypes;
	unsigned long long flags;
} CUmulticastObjectProp;

typedef struct {
	int id; // 2 cooperative, 6 programmatic stream serialization
	char pad[4];
	union {
		int on;
		char room[64];
	} value;
} CUlaunchAttribute;

typedef struct {
	unsigned int grid[3], block[3], shared;
	CUstream stream;
	CUlaunchAttribute *attributes;
	unsigned int n;
} CUlaunchConfig;

_Static_assert(sizeof(CUlaunchAttribute) == 72, "as in cuda.h");
_Static_assert(sizeof(CUlaunchConfig) == 56, "as in cuda.h");
_Static_assert(sizeof(CUmemAllocationProp) == 32, "as in cuda.h");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "as in cuda.h");
_Static_assert(sizeof(CUmulticastObjectProp) == 32, "as in cuda.h");

// Functions that need no current context.
#define CUDA_FREE_FUNCTIONS(X) \
	X(cuInit, (unsigned int flags), (flags)) \
	X(cuDriverGetVersion, (int *version), (version)) \
	X(cuGetErrorName, (CUresult code, const char **name), (code, name)) \
	X(cuGetErrorString, (CUresult code, const char **text), (code, text)) \
	X(cuDeviceGetCount, (int *n), (n)) \
	X(cuDeviceGet, (CUdevice *dev, int ordinal), (dev, ordinal)) \
	X(cuDeviceGetName, (char *name, int len, CUdevice dev), (name, len, dev)) \
	X(cuDeviceGetUuid_v2, (unsigned char *uuid, CUdevice dev), (uuid, dev)) \
	X(cuDeviceGetPCIBusId, (char *id, int len, CUdevice dev), (id, len, dev)) \
	X(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice dev), (bytes, dev)) \
	X(cuDeviceGetAttribute, (int *v, int attribute, CUdevice dev), (v, attribute, dev)) \
	X(cuDeviceCanAccessPeer, (int *can, CUdevice dev, CUdevice peer), (can, dev, peer)) \
	X(cuDeviceGetP2PAttribute, (int *v, int attribute, CUdevice src, CUdevice dst), (v, attribute, src, dst)) \
	X(cuDevicePrimaryCtxRetain, (CUcontext *ctx, CUdevice dev), (ctx, dev)) \
	X(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), (dev)) \
	X(cuCtxSetCurrent, (CUcontext ctx), (ctx)) \
	X(cuCtxGetDevResource, (CUcontext ctx, void *resource, int type), (ctx, resource, type))

// Multicast: absent from drivers before CUDA 12.1 and where the vendor leaves
// it out; a missing one answers CUDA_ERROR_NOT_SUPPORTED when called.
#define CUDA_OPTIONAL_FUNCTIONS(X) \
	X(cuLaunchKernelEx, (const CUlaunchConfig *c, CUfunction f, void **params, void **extra), (c, f, params, extra)) \
	X(cuMulticastGetGranularity, (size_t *bytes, const CUmulticastObjectProp *prop, int option), (bytes, prop, option)) \
	X(cuMulticastCreate, (CUmemHandle *mc, const CUmulticastObjectProp *prop), (mc, prop)) \
	X(cuMulticastAddDevice, (CUmemHandle mc, CUdevice dev), (mc, dev)) \
	X(cuMulticastBindMem, (CUmemHandle mc, size_t offset, CUmemHandle mem, size_t from, size_t bytes, unsigned long long flags), (mc, offset, mem, from, bytes, flags)) \
	X(cuMulticastUnbind, (CUmemHandle mc, CUdevice dev, size_t offset, size_t bytes), (mc, dev, offset, bytes))

// Functions that act in the current context. Each shim sets it itself: a
// goroutine moves between threads, and what an earlier call set may be
// another thread's.
#define CUDA_BOUND_FUNCTIONS(X) \
	X(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags), (peer, flags)) \
	X(cuMemAlloc_v2, (CUdeviceptr *p, size_t bytes), (p, bytes)) \
	X(cuMemFree_v2, (CUdeviceptr p), (p)) \
	X(cuMemHostAlloc, (void **p, size_t bytes, unsigned int flags), (p, bytes, flags)) \
	X(cuMemFreeHost, (void *p), (p)) \
	X(cuMemHostGetDevicePointer_v2, (CUdeviceptr *dev, void *p, unsigned int flags), (dev, p, flags)) \
	X(cuMemGetInfo_v2, (size_t *free, size_t *total), (free, total)) \
	X(cuPointerGetAttribute, (void *v, int attribute, CUdeviceptr p), (v, attribute, p)) \
	X(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s), (dst, src, bytes, s)) \
	X(cuMemsetD8Async, (CUdeviceptr dst, unsigned char v, size_t n, CUstream s), (dst, v, n, s)) \
	X(cuMemsetD32Async, (CUdeviceptr dst, unsigned int v, size_t n, CUstream s), (dst, v, n, s)) \
	X(cuStreamCreateWithPriority, (CUstream *s, unsigned int flags, int priority), (s, flags, priority)) \
	X(cuStreamDestroy_v2, (CUstream s), (s)) \
	X(cuStreamQuery, (CUstream s), (s)) \
	X(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned int flags), (s, e, flags)) \
	X(cuStreamBeginCapture_v2, (CUstream s, int mode), (s, mode)) \
	X(cuStreamEndCapture, (CUstream s, CUgraph *g), (s, g)) \
	X(cuStreamIsCapturing, (CUstream s, int *status), (s, status)) \
	X(cuEventCreate, (CUevent *e, unsigned int flags), (e, flags)) \
	X(cuEventDestroy_v2, (CUevent e), (e)) \
	X(cuEventRecord, (CUevent e, CUstream s), (e, s)) \
	X(cuEventRecordWithFlags, (CUevent e, CUstream s, unsigned int flags), (e, s, flags)) \
	X(cuEventQuery, (CUevent e), (e)) \
	X(cuEventElapsedTime, (float *ms, CUevent start, CUevent end), (ms, start, end)) \
	X(cuModuleLoadDataEx, (CUmodule *m, const void *image, unsigned int n, int *options, void **values), (m, image, n, options, values)) \
	X(cuModuleUnload, (CUmodule m), (m)) \
	X(cuModuleGetFunction, (CUfunction *f, CUmodule m, const char *name), (f, m, name)) \
	X(cuModuleGetGlobal_v2, (CUdeviceptr *p, size_t *bytes, CUmodule m, const char *name), (p, bytes, m, name)) \
	X(cuFuncLoad, (CUfunction f), (f)) \
	X(cuFuncIsLoaded, (int *state, CUfunction f), (state, f)) \
	X(cuFuncGetAttribute, (int *v, int attribute, CUfunction f), (v, attribute, f)) \
	X(cuFuncSetAttribute, (CUfunction f, int attribute, int v), (f, attribute, v)) \
	X(cuFuncGetParamInfo, (CUfunction f, size_t i, size_t *offset, size_t *size), (f, i, offset, size)) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *n, CUfunction f, int threads, size_t shared), (n, f, threads, shared)) \
	X(cuLaunchKernel, (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **params, void **extra), (f, gx, gy, gz, bx, by, bz, shared, s, params, extra)) \
	X(cuLaunchCooperativeKernel, (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **params), (f, gx, gy, gz, bx, by, bz, shared, s, params)) \
	X(cuGraphInstantiateWithFlags, (CUgraphExec *x, CUgraph g, unsigned long long flags), (x, g, flags)) \
	X(cuGraphUpload, (CUgraphExec x, CUstream s), (x, s)) \
	X(cuGraphLaunch, (CUgraphExec x, CUstream s), (x, s)) \
	X(cuGraphExecDestroy, (CUgraphExec x), (x)) \
	X(cuGraphDestroy, (CUgraph g), (g)) \
	X(cuMemGetAllocationGranularity, (size_t *bytes, const CUmemAllocationProp *prop, int option), (bytes, prop, option)) \
	X(cuMemCreate, (CUmemHandle *h, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags), (h, bytes, prop, flags)) \
	X(cuMemRelease, (CUmemHandle h), (h)) \
	X(cuMemAddressReserve, (CUdeviceptr *p, size_t bytes, size_t alignment, CUdeviceptr at, unsigned long long flags), (p, bytes, alignment, at, flags)) \
	X(cuMemAddressFree, (CUdeviceptr p, size_t bytes), (p, bytes)) \
	X(cuMemMap, (CUdeviceptr p, size_t bytes, size_t offset, CUmemHandle h, unsigned long long flags), (p, bytes, offset, h, flags)) \
	X(cuMemUnmap, (CUdeviceptr p, size_t bytes), (p, bytes)) \
	X(cuMemSetAccess, (CUdeviceptr p, size_t bytes, const CUmemAccessDesc *desc, size_t n), (p, bytes, desc, n)) \
	X(cuMemExportToShareableHandle, (void *out, CUmemHandle h, int type, unsigned long long flags), (out, h, type, flags)) \
	X(cuMemImportFromShareableHandle, (CUmemHandle *h, void *os, int type), (h, os, type))

#define CUDA_INDEX(name, params, args) FN_##name,
enum {
	CUDA_FREE_FUNCTIONS(CUDA_INDEX)
	CUDA_BOUND_FUNCTIONS(CUDA_INDEX)
	FN_REQUIRED, // the number of functions that must be there
	FN_BEFORE_OPTIONAL = FN_REQUIRED - 1,
	CUDA_OPTIONAL_FUNCTIONS(CUDA_INDEX)
	FN_COUNT
};

// tandem_names are the ABI names in the order of the enum.
extern const char *const tandem_names[FN_COUNT];

// A table of FN_COUNT addresses travels as an integer: it lives in C memory.
// Each shim is the driver's function behind it. The bound ones set ctx first
// and answer with the negative code if that fails.
#define CUDA_UNPAREN(...) __VA_ARGS__
#define CUDA_FREE_SHIM(name, params, args) CUresult call_##name(uintptr_t table, CUDA_UNPAREN params);
#define CUDA_BOUND_SHIM(name, params, args) CUresult call_##name(uintptr_t table, CUcontext ctx, CUDA_UNPAREN params);
CUDA_FREE_FUNCTIONS(CUDA_FREE_SHIM)
CUDA_OPTIONAL_FUNCTIONS(CUDA_FREE_SHIM)
CUDA_BOUND_FUNCTIONS(CUDA_BOUND_SHIM)

// tandem_table makes a table of addresses; 0 if there is no memory.
uintptr_t tandem_table(const uintptr_t *addresses);

// tandem_dlopen and tandem_dlsym give 0 and the loader's words on failure.
uintptr_t tandem_dlopen(const char *name, char *err, size_t len);
uintptr_t tandem_dlsym(uintptr_t lib, const char *symbol, char *err, size_t len);

// tandem_start asks the version and initialises if that is at least min.
CUresult tandem_start(uintptr_t init, uintptr_t get_version, int min, int *version);

// tandem_span is where an argument lies in the buffer; gpu.Param.
typedef struct {
	intptr_t offset, size;
} tandem_span;

// How to launch, for tandem_launch: bits.
enum { TANDEM_COOPERATIVE = 1, TANDEM_OVERLAP = 2 };

// What takes more than passing on: arrays and structs are built in C.
CUresult tandem_launch(uintptr_t table, CUcontext ctx, CUfunction f, const uint32_t *dims, uint32_t shared,
	CUstream s, int how, void *buf, const tandem_span *spans, size_t n);
CUresult tandem_load_module(uintptr_t table, CUcontext ctx, CUmodule *m, const void *image,
	char *errors, size_t errors_len, char *infos, size_t infos_len);
CUresult tandem_sm_count(uintptr_t table, CUcontext ctx, int *n);
CUresult tandem_granularity(uintptr_t table, CUcontext ctx, CUdevice dev, int types, size_t *bytes);
CUresult tandem_create(uintptr_t table, CUcontext ctx, CUdevice dev, int types, size_t bytes, CUmemHandle *h);
CUresult tandem_set_access(uintptr_t table, CUcontext ctx, CUdeviceptr p, size_t bytes, const int *devs, size_t n);
CUresult tandem_import_file(uintptr_t table, CUcontext ctx, CUmemHandle *h, int fd);
CUresult tandem_multicast_granularity(uintptr_t table, unsigned int devices, size_t bytes, int types, int option, size_t *out);
CUresult tandem_multicast_create(uintptr_t table, unsigned int devices, size_t bytes, int types, CUmemHandle *h);

#endif
