//go:build gpu && linux && cgo

// Calls through the addresses in a loaded library; abi.h says what each does.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi.h"

enum { INTERNAL_ERROR = 3, INVALID_USAGE = 5, WIN_COLL_SYMMETRIC = 1 };

#define POINTER(name, params) typedef ncclResult_t(*p_##name) params;
NCCL_FUNCTIONS(POINTER)
NCCL_OPTIONAL(POINTER)
#define FN(lib, name) ((p_##name)(lib)->fn[FN_##name])

#define NAME(name, params) [FN_##name] = #name,
static const char *const names[FN_COUNT] = {NCCL_FUNCTIONS(NAME) NCCL_OPTIONAL(NAME)};

const char *tandem_nccl_name(int call) { return call < FN_COUNT ? names[call] : "cuCtxSetCurrent"; }

static uintptr_t find(void *lib, const char *symbol, char *err, size_t len) {
	void *p = dlsym(lib, symbol);
	if (!p) {
		const char *text = dlerror();
		snprintf(err, len, "%s", text ? text : "unknown error");
	}
	return (uintptr_t)p;
}

static void *load(const char *file, char *err, size_t len) {
	void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		const char *text = dlerror();
		snprintf(err, len, "%s", text ? text : "unknown error");
	}
	return lib;
}

int tandem_nccl_open(tandem_nccl **out, const char *file, const char *driver, char *err, size_t len) {
	tandem_nccl *l = calloc(1, sizeof *l);
	void *lib = load(file, err, len), *cuda = lib ? load(driver, err, len) : NULL;
	if (!l || !cuda)
		goto fail;
	for (int i = 0; i < FN_COUNT; i++)
		if (!(l->fn[i] = find(lib, names[i], err, len)) && i < FN_REQUIRED)
			goto fail;
	if (!(l->error_string = find(lib, "ncclGetErrorString", err, len)) ||
		!(l->last_error = find(lib, "ncclGetLastError", err, len)) ||
		!(l->set_current = find(cuda, "cuCtxSetCurrent", err, len)))
		goto fail;
	*out = l;
	return 0;
fail: // what was opened stays open: neither library survives being closed
	free(l);
	return 1;
}

const char *tandem_nccl_error(const tandem_nccl *l, int code) {
	return ((const char *(*)(int))l->error_string)(code);
}

const char *tandem_nccl_last(const tandem_nccl *l) {
	return ((const char *(*)(uintptr_t))l->last_error)(0);
}

int tandem_nccl_version(const tandem_nccl *l, int *version) { return FN(l, ncclGetVersion)(version); }

int tandem_nccl_init(const tandem_nccl *l, uintptr_t *comms, const int32_t *devices, int n) {
	return FN(l, ncclCommInitAll)(comms, n, devices);
}

int tandem_nccl_destroy(const tandem_nccl *l, uintptr_t comm) { return FN(l, ncclCommDestroy)(comm); }
int tandem_nccl_abort(const tandem_nccl *l, uintptr_t comm) { return FN(l, ncclCommAbort)(comm); }
int tandem_nccl_async(const tandem_nccl *l, uintptr_t comm, int *r) { return FN(l, ncclCommGetAsyncError)(comm, r); }

static int enter(const tandem_nccl *l, uintptr_t context, int *call) {
	*call = CALL_SET_CURRENT;
	return ((int (*)(uintptr_t))l->set_current)(context) ? INTERNAL_ERROR : 0;
}

static int one(const tandem_nccl *l, const tandem_nccl_task *t, int *call) {
	const void *s = (const void *)t->send;
	void *d = (void *)t->recv, *q = (void *)t->stream;
	int r = enter(l, t->context, call);
	if (r)
		return r;
#define CALL(name, ...) (*call = FN_##name, FN(l, name)(__VA_ARGS__))
	switch (t->kind) {
	case DO_ALL_REDUCE:
		return CALL(ncclAllReduce, s, d, t->count, t->dtype, t->op, t->comm, q);
	case DO_REDUCE_SCATTER:
		return CALL(ncclReduceScatter, s, d, t->count, t->dtype, t->op, t->comm, q);
	case DO_ALL_GATHER:
		return CALL(ncclAllGather, s, d, t->count, t->dtype, t->comm, q);
	case DO_BROADCAST:
		return CALL(ncclBroadcast, s, d, t->count, t->dtype, t->peer, t->comm, q);
	case DO_SEND:
		return CALL(ncclSend, s, t->count, t->dtype, t->peer, t->comm, q);
	case DO_RECV:
		return CALL(ncclRecv, d, t->count, t->dtype, t->peer, t->comm, q);
	}
	return INVALID_USAGE;
}

// A group that was started is always ended; the first failure is reported.
#define GROUP(body) \
	int r = CALL(ncclGroupStart), end, last; \
	if (r) \
		return r; \
	for (size_t i = 0; i < n && !r; i++) \
		r = body; \
	last = *call; \
	end = CALL(ncclGroupEnd); \
	if (r) \
		*call = last; \
	return r ? r : end

int tandem_nccl_group(const tandem_nccl *l, const tandem_nccl_task *t, size_t n, int *call) {
	GROUP(one(l, &t[i], call));
}

int tandem_nccl_alloc(const tandem_nccl *l, uintptr_t context, uint64_t bytes, uint64_t *p, int *call) {
	void *got = NULL;
	int r = enter(l, context, call);
	if (!r)
		r = CALL(ncclMemAlloc, &got, bytes);
	*p = (uint64_t)(uintptr_t)got;
	return r;
}

int tandem_nccl_free(const tandem_nccl *l, uintptr_t context, uint64_t p, int *call) {
	int r = enter(l, context, call);
	return r ? r : CALL(ncclMemFree, (void *)(uintptr_t)p);
}

static int reg(const tandem_nccl *l, int windows, const tandem_nccl_task *t, uint64_t p, uint64_t bytes, uintptr_t *handle, int *call) {
	void *m = (void *)(uintptr_t)p, **h = (void **)handle;
	int r = enter(l, t->context, call);
	if (r)
		return r;
	if (!windows)
		return CALL(ncclCommRegister, t->comm, m, bytes, h);
	*call = FN_ncclCommWindowRegister;
	if (!l->fn[FN_ncclCommWindowRegister])
		return INVALID_USAGE;
	return CALL(ncclCommWindowRegister, t->comm, m, bytes, h, WIN_COLL_SYMMETRIC);
}

int tandem_nccl_register(const tandem_nccl *l, int windows, const tandem_nccl_task *t, size_t n,
		const uint64_t *p, uint64_t bytes, uintptr_t *handles, int *call) {
	GROUP(reg(l, windows, &t[i], p[i], bytes, &handles[i], call));
}

int tandem_nccl_deregister(const tandem_nccl *l, int windows, const tandem_nccl_task *t, size_t n,
		const uintptr_t *handles, int *call) {
	int r = 0;
	for (size_t i = 0; i < n && !r; i++) {
		if ((r = enter(l, t[i].context, call)))
			break;
		if (windows)
			r = CALL(ncclCommWindowDeregister, t[i].comm, (void *)handles[i]);
		else
			r = CALL(ncclCommDeregister, t[i].comm, (void *)handles[i]);
	}
	return r;
}
