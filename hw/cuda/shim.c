//go:build gpu && linux && cgo

// Shims around the driver's functions; abi.h says what each does.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

#define NAME(name, params, args) [FN_##name] = #name,
const char *const tandem_names[FN_COUNT] = {
	CUDA_FREE_FUNCTIONS(NAME) CUDA_BOUND_FUNCTIONS(NAME) CUDA_OPTIONAL_FUNCTIONS(NAME)};

enum { INVALID_VALUE = 1, NOT_SUPPORTED = 801, MAX_ARGS = 256, MAX_DEVICES = 64 };

#define ADDRESS(name) (((const uintptr_t *)table)[FN_##name])

#define FREE_SHIM(name, params, args) \
	CUresult call_##name(uintptr_t table, CUDA_UNPAREN params) { \
		CUresult (*function) params = (CUresult(*) params)ADDRESS(name); \
		return function ? function args : NOT_SUPPORTED; \
	}
CUDA_FREE_FUNCTIONS(FREE_SHIM)
CUDA_OPTIONAL_FUNCTIONS(FREE_SHIM)

#define BOUND_SHIM(name, params, args) \
	CUresult call_##name(uintptr_t table, CUcontext ctx, CUDA_UNPAREN params) { \
		CUresult (*function) params = (CUresult(*) params)ADDRESS(name); \
		CUresult set = call_cuCtxSetCurrent(table, ctx); \
		return set ? -set : function args; \
	}
CUDA_BOUND_FUNCTIONS(BOUND_SHIM)

uintptr_t tandem_table(const uintptr_t *addresses) {
	uintptr_t *t = malloc(FN_COUNT * sizeof *t);
	if (t)
		memcpy(t, addresses, FN_COUNT * sizeof *t);
	return (uintptr_t)t;
}

static void words(char *err, size_t len) {
	const char *text = dlerror();
	snprintf(err, len, "%s", text ? text : "unknown error");
}

uintptr_t tandem_dlopen(const char *name, char *err, size_t len) {
	void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		words(err, len);
	return (uintptr_t)lib;
}

uintptr_t tandem_dlsym(uintptr_t lib, const char *symbol, char *err, size_t len) {
	void *p = dlsym((void *)lib, symbol);
	if (!p)
		words(err, len);
	return (uintptr_t)p;
}

CUresult tandem_start(uintptr_t init, uintptr_t get_version, int min, int *version) {
	CUresult r = ((CUresult(*)(int *))get_version)(version);
	if (r || *version < min)
		return r;
	return ((CUresult(*)(unsigned int))init)(0);
}

CUresult tandem_launch(uintptr_t table, CUcontext ctx, CUfunction f, const uint32_t *d, uint32_t shared,
		CUstream s, int how, void *buf, const tandem_span *spans, size_t n) {
	void *params[MAX_ARGS];
	if (n > MAX_ARGS)
		return INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		params[i] = (char *)buf + spans[i].offset;
	if ((how & TANDEM_OVERLAP) && ADDRESS(cuLaunchKernelEx)) {
		CUlaunchAttribute a[2] = {{.id = 6, .value.on = 1}, {.id = 2, .value.on = 1}};
		CUlaunchConfig c = {{d[0], d[1], d[2]}, {d[3], d[4], d[5]}, shared, s, a, how & TANDEM_COOPERATIVE ? 2 : 1};
		CUresult set = call_cuCtxSetCurrent(table, ctx);
		return set ? -set : call_cuLaunchKernelEx(table, &c, f, params, NULL);
	}
	if (how & TANDEM_COOPERATIVE)
		return call_cuLaunchCooperativeKernel(table, ctx, f, d[0], d[1], d[2], d[3], d[4], d[5], shared, s, params);
	return call_cuLaunchKernel(table, ctx, f, d[0], d[1], d[2], d[3], d[4], d[5], shared, s, params, NULL);
}

CUresult tandem_load_module(uintptr_t table, CUcontext ctx, CUmodule *m, const void *image,
		char *errors, size_t errors_len, char *infos, size_t infos_len) {
	// CU_JIT_INFO_LOG_BUFFER, its size, CU_JIT_ERROR_LOG_BUFFER, its size.
	int options[] = {3, 4, 5, 6};
	void *values[] = {infos, (void *)infos_len, errors, (void *)errors_len};
	return call_cuModuleLoadDataEx(table, ctx, m, image, 4, options, values);
}

CUresult tandem_sm_count(uintptr_t table, CUcontext ctx, int *n) {
	// CUdevResource: the type, padding up to 96 bytes, then a union that
	// begins with the SM count. Later versions append; the rest is room.
	struct {
		int type;
		unsigned char padding[92];
		unsigned int sms;
		unsigned char room[412];
	} resource = {0};
	CUresult r = call_cuCtxGetDevResource(table, ctx, &resource, 1); // CU_DEV_RESOURCE_TYPE_SM
	*n = (int)resource.sms;
	return r;
}

static CUmemAllocationProp prop_of(CUdevice dev, int types) {
	CUmemAllocationProp p = {.type = 1, .handleTypes = types, .location = {.type = 1, .id = dev}};
	return p;
}

CUresult tandem_granularity(uintptr_t table, CUcontext ctx, CUdevice dev, int types, size_t *bytes) {
	CUmemAllocationProp p = prop_of(dev, types);
	return call_cuMemGetAllocationGranularity(table, ctx, bytes, &p, 1); // recommended
}

CUresult tandem_create(uintptr_t table, CUcontext ctx, CUdevice dev, int types, size_t bytes, CUmemHandle *h) {
	CUmemAllocationProp p = prop_of(dev, types);
	return call_cuMemCreate(table, ctx, h, bytes, &p, 0);
}

CUresult tandem_set_access(uintptr_t table, CUcontext ctx, CUdeviceptr p, size_t bytes, const int *devs, size_t n) {
	CUmemAccessDesc desc[MAX_DEVICES];
	if (n > MAX_DEVICES)
		return INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		CUmemAccessDesc d = {.location = {.type = 1, .id = devs[i]}, .flags = 3};
		desc[i] = d;
	}
	return call_cuMemSetAccess(table, ctx, p, bytes, desc, n);
}

CUresult tandem_import_file(uintptr_t table, CUcontext ctx, CUmemHandle *h, int fd) {
	// A descriptor travels as the pointer's value, a fabric handle behind it.
	return call_cuMemImportFromShareableHandle(table, ctx, h, (void *)(uintptr_t)fd, 1);
}

static CUmulticastObjectProp multicast_of(unsigned int devices, size_t bytes, int types) {
	CUmulticastObjectProp p = {.devices = devices, .size = bytes, .handleTypes = (unsigned long long)types};
	return p;
}

CUresult tandem_multicast_granularity(uintptr_t table, unsigned int devices, size_t bytes, int types, int option, size_t *out) {
	CUmulticastObjectProp p = multicast_of(devices, bytes, types);
	return call_cuMulticastGetGranularity(table, out, &p, option);
}

CUresult tandem_multicast_create(uintptr_t table, unsigned int devices, size_t bytes, int types, CUmemHandle *h) {
	CUmulticastObjectProp p = multicast_of(devices, bytes, types);
	return call_cuMulticastCreate(table, h, &p);
}
