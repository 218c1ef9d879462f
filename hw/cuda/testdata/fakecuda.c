// A libcuda without a GPU, for the tests of the loader and of the calls. It
// keeps every object in a table, checks that each call finds the right context
// current on its thread, and does what a page of memory shared with the test
// tells it: fail at the n-th call, be busy, have more devices. It runs nothing.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int CUresult;
typedef unsigned long long u64;

enum { CONTEXT, MEMORY, HOST, HANDLE, MULTICAST, RESERVATION, STREAM, EVENT, MODULE, GRAPH, EXEC, FUNCTION, KINDS };

// The page; page in fake_test.go has the same fields.
struct page {
	uint32_t devices, version, init_code, busy;
	uint32_t calls, fail_at, fail_times, fail_code; // the fail_at-th call and those after it
	uint32_t violations, multicast_calls, blocked, unloaded;
	uint32_t live[KINDS];
	uint32_t launches, cooperative, overlaps, grid[3], block[3], shared, params;
	uint8_t param[1024];
	char failed[64], complaint[128];
	uint32_t waiting; // calls that are blocked
	uint32_t access;  // devices of the last cuMemSetAccess, as bits
};
static struct page *page;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread struct object *current;

struct object {
	u64 magic;
	int kind, alive, dev, state, sizes[300], params;
	struct object *ctx;
	u64 address, bytes;
};
enum { MAGIC = 0x7fa1edcc, ROOM = 1 << 16 };
static struct object *all[ROOM];
static int count;

__attribute__((constructor)) static void attach(void) {
	const char *path = getenv("FAKECUDA_PAGE");
	int fd = path ? open(path, O_RDWR) : -1;
	if (fd < 0)
		return;
	void *p = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p != MAP_FAILED)
		page = p;
}

static void complain(const char *name, const char *what) {
	page->violations++;
	snprintf(page->complaint, sizeof page->complaint, "%s: %s", name, what);
}

static struct object *make(int kind, struct object *ctx) {
	static u64 next = 0x7f0000000000;
	struct object *o = calloc(1, sizeof *o);
	o->magic = MAGIC, o->kind = kind, o->alive = 1, o->ctx = ctx;
	o->address = next, next += 1 << 21;
	all[count++ % ROOM] = o;
	page->live[kind]++;
	return o;
}

// use checks a handle: of that kind, alive, and of the current context.
static struct object *use(const char *name, uintptr_t h, int kind, int bound) {
	struct object *o = (struct object *)h;
	if (!o || o->magic != MAGIC || o->kind != kind || !o->alive) {
		complain(name, "a dead or foreign handle");
		return NULL;
	}
	if (bound && o->ctx != current)
		complain(name, "the object's context is not current");
	return o;
}

static CUresult drop(const char *name, uintptr_t h, int kind, int bound) {
	struct object *o = use(name, h, kind, bound);
	if (!o)
		return 400;
	o->alive = 0;
	page->live[kind]--;
	return 0;
}

static struct object *at(u64 address, int kind) {
	for (int i = 0; i < ROOM && i < count; i++)
		if (all[i] && all[i]->alive && all[i]->kind == kind && all[i]->address == address)
			return all[i];
	return NULL;
}

// enter counts the call and says whether it is to fail.
static CUresult enter(const char *name, int bound) {
	CUresult r = 0;
	uint32_t n = ++page->calls;
	if (page->fail_at && n >= page->fail_at && n < page->fail_at + page->fail_times) {
		snprintf(page->failed, sizeof page->failed, "%s", name);
		r = (CUresult)page->fail_code;
	} else if (bound && !current) {
		complain(name, "no context is current");
		r = 201;
	}
	return r;
}

// block holds a call back for as long as the page says, without the lock.
static void block(uint32_t kind) {
	page->waiting++;
	while (page->blocked == kind) {
		pthread_mutex_unlock(&mutex);
		usleep(1000);
		pthread_mutex_lock(&mutex);
	}
	page->waiting--;
}

#define LOCK pthread_mutex_lock(&mutex)
#define LEAVE(r) do { CUresult leave = (r); pthread_mutex_unlock(&mutex); return leave; } while (0)
#define ENTER(bound) LOCK; do { CUresult r = enter(__func__, bound); if (r) LEAVE(r); } while (0)
#define FREE ENTER(0)
#define BOUND ENTER(1)

CUresult cuInit(unsigned flags) { (void)flags; FREE; LEAVE((CUresult)page->init_code); }
CUresult cuDriverGetVersion(int *v) { FREE; *v = (int)page->version; LEAVE(0); }
CUresult cuGetErrorName(CUresult r, const char **s) { *s = r == 999 ? "CUDA_ERROR_UNKNOWN" : r == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : NULL; return *s ? 0 : 1; }
CUresult cuGetErrorString(CUresult r, const char **s) { *s = r == 999 ? "unknown error" : NULL; return *s ? 0 : 1; }
CUresult cuDeviceGetCount(int *n) { FREE; *n = (int)page->devices; LEAVE(0); }
CUresult cuDeviceGet(int *d, int i) { FREE; *d = i; LEAVE(0); }
CUresult cuDeviceGetName(char *s, int n, int d) { FREE; snprintf(s, (size_t)n, "Fake %d", d); LEAVE(0); }
CUresult cuDeviceGetUuid_v2(unsigned char *u, int d) { FREE; memset(u, 0x10 + d, 16); LEAVE(0); }
CUresult cuDeviceGetPCIBusId(char *s, int n, int d) { FREE; snprintf(s, (size_t)n, "0000:0%d:00.0", d); LEAVE(0); }
CUresult cuDeviceTotalMem_v2(size_t *n, int d) { FREE; *n = (size_t)(d + 1) << 30; LEAVE(0); }
CUresult cuDeviceGetAttribute(int *v, int a, int d) { (void)d; FREE; *v = a == 20 ? 0 : a == 13 ? 1980000 : a == 75 ? 9 : a >= 2 && a <= 7 ? 1024 : a == 1 ? 1024 : a == 97 ? 232448 : 1; LEAVE(0); }
CUresult cuDeviceCanAccessPeer(int *v, int a, int b) { (void)a, (void)b; FREE; *v = 1; LEAVE(0); }
CUresult cuDeviceGetP2PAttribute(int *v, int a, int x, int y) { (void)x, (void)y; FREE; *v = a; LEAVE(0); }

static struct object *primaries[16];
static int retained[16];
CUresult cuDevicePrimaryCtxRetain(uintptr_t *c, int d) {
	FREE;
	if (!retained[d]++) {
		primaries[d] = make(CONTEXT, NULL);
		primaries[d]->dev = d;
	}
	*c = (uintptr_t)primaries[d];
	LEAVE(0);
}
CUresult cuDevicePrimaryCtxRelease_v2(int d) {
	FREE;
	if (!retained[d]) {
		complain(__func__, "released too often");
		LEAVE(201);
	}
	LEAVE(--retained[d] ? 0 : drop(__func__, (uintptr_t)primaries[d], CONTEXT, 0));
}
CUresult cuCtxSetCurrent(uintptr_t c) { FREE; current = use(__func__, c, CONTEXT, 0); LEAVE(current ? 0 : 201); }
CUresult cuCtxGetDevResource(uintptr_t c, void *r, int type) { FREE; use(__func__, c, CONTEXT, 0); ((unsigned *)r)[24] = type == 1 ? 66 : 0; LEAVE(0); }
CUresult cuCtxEnablePeerAccess(uintptr_t c, unsigned flags) {
	(void)flags;
	BOUND;
	struct object *peer = use(__func__, c, CONTEXT, 0);
	int bit = peer ? 1 << peer->dev : 0, old = current->state;
	current->state |= bit;
	LEAVE(old & bit ? 704 : 0);
}

static CUresult allocate(int kind, u64 *p, size_t n) { struct object *o = make(kind, current); o->bytes = n, *p = o->address; return 0; }
CUresult cuMemAlloc_v2(u64 *p, size_t n) { BOUND; LEAVE(n > (size_t)1 << 32 ? 2 : allocate(MEMORY, p, n)); }
static CUresult release(const char *name, u64 p, int kind) { struct object *o = at(p, kind); if (!o) complain(name, "nothing at that address"); return o ? drop(name, (uintptr_t)o, kind, 1) : 1; }
CUresult cuMemFree_v2(u64 p) { BOUND; LEAVE(release(__func__, p, MEMORY)); }
CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) { BOUND; if (flags != 3) complain(__func__, "not portable and mapped"); struct object *o = make(HOST, current); o->bytes = n; *p = aligned_alloc(4096, (n + 4095) & ~(size_t)4095); memset(*p, 0xff, n); o->address = (u64)*p; LEAVE(0); }
CUresult cuMemFreeHost(void *p) { BOUND; CUresult r = release(__func__, (u64)p, HOST); if (!r) free(p); LEAVE(r); }
CUresult cuMemHostGetDevicePointer_v2(u64 *d, void *p, unsigned flags) { (void)flags; BOUND; *d = (u64)p; LEAVE(0); }
CUresult cuMemGetInfo_v2(size_t *f, size_t *t) { BOUND; *f = 1 << 20, *t = 1 << 30; LEAVE(0); }
// One foreign allocation of 4096 bytes lives at 0x5000000 on device 1.
CUresult cuPointerGetAttribute(void *v, int a, u64 p) {
	BOUND;
	if (p < 0x5000000 || p >= 0x5001000)
		LEAVE(1);
	switch (a) {
	case 2: *(unsigned *)v = 2; LEAVE(0);
	case 9: *(int *)v = 1; LEAVE(0);
	case 11: *(u64 *)v = 0x5000000; LEAVE(0);
	case 12: *(size_t *)v = 0x1000; LEAVE(0);
	case 14: *(u64 *)v = 9; LEAVE(0);
	}
	LEAVE(801);
}

CUresult cuStreamCreateWithPriority(uintptr_t *s, unsigned flags, int prio) { BOUND; if (flags != 1) complain(__func__, "not non-blocking"); struct object *o = make(STREAM, current); o->dev = prio; *s = (uintptr_t)o; LEAVE(0); }
CUresult cuStreamDestroy_v2(uintptr_t s) { BOUND; LEAVE(drop(__func__, s, STREAM, 1)); }
static CUresult queue(const char *name, uintptr_t s) { return use(name, s, STREAM, 1) ? 0 : 400; }
CUresult cuStreamQuery(uintptr_t s) { BOUND; struct object *o = use(__func__, s, STREAM, 1); if (o && o->state) complain(__func__, "the stream captures"); LEAVE(o ? (page->busy ? 600 : 0) : 400); }
CUresult cuStreamWaitEvent(uintptr_t s, uintptr_t e, unsigned f) { (void)f; BOUND; LEAVE(use(__func__, e, EVENT, 0) ? queue(__func__, s) : 400); }
CUresult cuMemcpyAsync(u64 d, u64 s, size_t n, uintptr_t q) { (void)d, (void)s, (void)n; BOUND; LEAVE(queue(__func__, q)); }
CUresult cuMemsetD8Async(u64 d, unsigned char v, size_t n, uintptr_t q) { (void)d, (void)v, (void)n; BOUND; LEAVE(queue(__func__, q)); }
CUresult cuMemsetD32Async(u64 d, unsigned v, size_t n, uintptr_t q) { (void)d, (void)v, (void)n; BOUND; LEAVE(queue(__func__, q)); }
CUresult cuStreamBeginCapture_v2(uintptr_t s, int mode) { BOUND; struct object *o = use(__func__, s, STREAM, 1); if (mode != 2) complain(__func__, "not the relaxed mode"); if (o) o->state = 1; LEAVE(o ? 0 : 400); }
CUresult cuStreamEndCapture(uintptr_t s, uintptr_t *g) { BOUND; struct object *o = use(__func__, s, STREAM, 1); if (!o || !o->state) LEAVE(903); o->state = 0; *g = (uintptr_t)make(GRAPH, current); LEAVE(0); }
CUresult cuStreamIsCapturing(uintptr_t s, int *v) { BOUND; struct object *o = use(__func__, s, STREAM, 1); *v = o ? o->state : 0; LEAVE(o ? 0 : 400); }
CUresult cuEventCreate(uintptr_t *e, unsigned f) { (void)f; BOUND; *e = (uintptr_t)make(EVENT, current); LEAVE(0); }
CUresult cuEventDestroy_v2(uintptr_t e) { BOUND; LEAVE(drop(__func__, e, EVENT, 1)); }
CUresult cuEventRecord(uintptr_t e, uintptr_t s) { BOUND; LEAVE(use(__func__, e, EVENT, 1) ? queue(__func__, s) : 400); }
CUresult cuEventRecordWithFlags(uintptr_t e, uintptr_t s, unsigned flags) { BOUND; LEAVE(use(__func__, e, EVENT, 1) && flags == 1 ? queue(__func__, s) : 400); }
CUresult cuEventQuery(uintptr_t e) { BOUND; LEAVE(use(__func__, e, EVENT, 1) ? (page->busy ? 600 : 0) : 400); }
CUresult cuEventElapsedTime(float *ms, uintptr_t a, uintptr_t b) { BOUND; *ms = 1.5f; LEAVE(use(__func__, a, EVENT, 1) && use(__func__, b, EVENT, 1) ? 0 : 400); }

// A module whose text has "bad" in it does not compile. A kernel's name says
// the sizes of its parameters: p_8_4_1; "missing" is missing.
CUresult cuModuleLoadDataEx(uintptr_t *m, const void *image, unsigned n, int *opt, void **val) {
	BOUND;
	if (n != 4 || opt[0] != 3 || opt[1] != 4 || opt[2] != 5 || opt[3] != 6)
		complain(__func__, "other options");
	if (strstr(image, "bad")) {
		snprintf(val[2], (size_t)val[3], "line 3: a bad instruction\nline 4: another");
		snprintf(val[0], (size_t)val[1], "compiled for nothing");
		LEAVE(218);
	}
	*m = (uintptr_t)make(MODULE, current);
	LEAVE(0);
}
CUresult cuModuleUnload(uintptr_t m) { BOUND; LEAVE(drop(__func__, m, MODULE, 1)); }
CUresult cuModuleGetFunction(uintptr_t *f, uintptr_t m, const char *name) {
	BOUND;
	if (!use(__func__, m, MODULE, 1) || !strcmp(name, "missing"))
		LEAVE(500);
	struct object *o = calloc(1, sizeof *o);
	o->magic = MAGIC, o->kind = FUNCTION, o->alive = 1, o->ctx = current;
	for (const char *p = name; (p = strchr(p, '_')); p++)
		if (o->params < 300)
			o->sizes[o->params++] = atoi(p + 1);
	*f = (uintptr_t)o;
	LEAVE(0);
}
CUresult cuModuleGetGlobal_v2(u64 *p, size_t *n, uintptr_t m, const char *name) { (void)name; BOUND; *p = 0x6000000, *n = 8; LEAVE(use(__func__, m, MODULE, 1) ? 0 : 400); }
CUresult cuFuncLoad(uintptr_t f) { BOUND; LEAVE(use(__func__, f, FUNCTION, 1) ? 0 : 400); }
CUresult cuFuncIsLoaded(int *v, uintptr_t f) { BOUND; *v = !page->unloaded; LEAVE(use(__func__, f, FUNCTION, 1) ? 0 : 400); }
CUresult cuFuncGetAttribute(int *v, int a, uintptr_t f) { BOUND; *v = a == 0 ? 1024 : a == 3 ? 0 : 10 + a; LEAVE(use(__func__, f, FUNCTION, 1) ? 0 : 400); }
CUresult cuFuncSetAttribute(uintptr_t f, int a, int v) { (void)v; BOUND; if (a != 8) complain(__func__, "another attribute"); LEAVE(use(__func__, f, FUNCTION, 1) ? 0 : 400); }
static int offset_of(struct object *o, int i) {
	int at = 0;
	for (int k = 0;; k++) {
		int align = o->sizes[k] > 8 ? 8 : o->sizes[k];
		at = (at + align - 1) / align * align;
		if (k == i)
			return at;
		at += o->sizes[k];
	}
}
CUresult cuFuncGetParamInfo(uintptr_t f, size_t i, size_t *offset, size_t *size) {
	BOUND;
	struct object *o = use(__func__, f, FUNCTION, 1);
	if (!o || i >= (size_t)o->params)
		LEAVE(1);
	*offset = (size_t)offset_of(o, (int)i), *size = (size_t)o->sizes[i];
	LEAVE(0);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, uintptr_t f, int threads, size_t shared) { (void)shared; BOUND; *n = 2048 / threads; LEAVE(use(__func__, f, FUNCTION, 1) ? 0 : 400); }

static CUresult launch(const char *name, uintptr_t f, const unsigned d[6], unsigned shared, uintptr_t s, void **params, uint32_t coop) {
	struct object *o = use(name, f, FUNCTION, 1);
	if (!o || queue(name, s))
		return 400;
	if (coop && d[0] > 66)
		return 720;
	page->launches++, page->cooperative = coop, page->shared = shared, page->params = 0;
	memcpy(page->grid, d, 12), memcpy(page->block, d + 3, 12);
	for (int i = 0; i < o->params; i++) {
		memcpy(page->param + page->params, params[i], (size_t)o->sizes[i]);
		page->params += (uint32_t)o->sizes[i];
	}
	return 0;
}
CUresult cuLaunchKernel(uintptr_t f, unsigned a, unsigned b, unsigned c, unsigned x, unsigned y, unsigned z, unsigned shared, uintptr_t s, void **params, void **extra) {
	BOUND;
	if (extra)
		complain(__func__, "extra is set");
	LEAVE(launch(__func__, f, (unsigned[]){a, b, c, x, y, z}, shared, s, params, 0));
}
CUresult cuLaunchCooperativeKernel(uintptr_t f, unsigned a, unsigned b, unsigned c, unsigned x, unsigned y, unsigned z, unsigned shared, uintptr_t s, void **params) {
	BOUND;
	LEAVE(launch(__func__, f, (unsigned[]){a, b, c, x, y, z}, shared, s, params, 1));
}
// Of CUlaunchConfig: grid, block, shared memory, stream, attributes, their number.
// An attribute is 72 bytes: a number, 4 bytes of nothing, and a value.
#ifndef WITHOUT_LAUNCH_EX
CUresult cuLaunchKernelEx(const unsigned *c, uintptr_t f, void **params, void **extra) {
	BOUND;
	uintptr_t s, attributes;
	uint32_t coop = 0;
	memcpy(&s, c + 8, sizeof s), memcpy(&attributes, c + 10, sizeof attributes);
	for (unsigned i = 0; i < c[12]; i++) {
		const int *a = (const int *)(attributes + 72 * i);
		if ((a[0] != 2 && a[0] != 6) || a[2] != 1)
			complain(__func__, "other attributes");
		coop |= a[0] == 2;
		page->overlaps += a[0] == 6;
	}
	if (extra)
		complain(__func__, "extra is set");
	LEAVE(launch(__func__, f, c, c[6], s, params, coop));
}
#endif

CUresult cuGraphInstantiateWithFlags(uintptr_t *x, uintptr_t g, u64 flags) { (void)flags; BOUND; if (!use(__func__, g, GRAPH, 1)) LEAVE(400); *x = (uintptr_t)make(EXEC, current); LEAVE(0); }
CUresult cuGraphUpload(uintptr_t x, uintptr_t s) { BOUND; LEAVE(use(__func__, x, EXEC, 0) ? queue(__func__, s) : 400); }
CUresult cuGraphLaunch(uintptr_t x, uintptr_t s) { BOUND; LEAVE(use(__func__, x, EXEC, 0) ? queue(__func__, s) : 400); }
CUresult cuGraphExecDestroy(uintptr_t x) { BOUND; LEAVE(drop(__func__, x, EXEC, 1)); }
CUresult cuGraphDestroy(uintptr_t g) { BOUND; LEAVE(drop(__func__, g, GRAPH, 1)); }

// Of CUmemAllocationProp: type, handle types, location type, device.
static void prop_check(const char *name, const int *prop) { if (prop[0] != 1 || prop[2] != 1 || prop[3] != current->dev) complain(name, "other properties"); }
CUresult cuMemGetAllocationGranularity(size_t *n, const int *prop, int o) { BOUND; prop_check(__func__, prop); if (o != 1) complain(__func__, "not the recommended"); *n = 1 << 21; LEAVE(0); }
CUresult cuMemCreate(u64 *h, size_t n, const int *prop, u64 flags) { (void)flags; BOUND; prop_check(__func__, prop); struct object *o = make(HANDLE, current); o->bytes = n, o->state = prop[1]; *h = (u64)o; LEAVE(0); }
CUresult cuMemRelease(u64 h) { BOUND; struct object *o = (struct object *)h; LEAVE(drop(__func__, h, o && o->magic == MAGIC && o->kind == MULTICAST ? MULTICAST : HANDLE, 1)); }
CUresult cuMemAddressReserve(u64 *p, size_t n, size_t a, u64 where, u64 flags) { (void)a, (void)where, (void)flags; BOUND; LEAVE(allocate(RESERVATION, p, n)); }
CUresult cuMemAddressFree(u64 p, size_t n) { (void)n; BOUND; struct object *o = at(p, RESERVATION); if (o && o->state) complain(__func__, "still mapped"); LEAVE(release(__func__, p, RESERVATION)); }
CUresult cuMemMap(u64 p, size_t n, size_t off, u64 h, u64 flags) { (void)n, (void)off, (void)h, (void)flags; BOUND; block(2); struct object *o = at(p, RESERVATION); if (o) o->state = 1; LEAVE(o ? 0 : 1); }
CUresult cuMemUnmap(u64 p, size_t n) { (void)n; BOUND; struct object *o = at(p, RESERVATION); if (!o || !o->state) { complain(__func__, "not mapped"); LEAVE(1); } o->state = 0; LEAVE(0); }
CUresult cuMemSetAccess(u64 p, size_t n, const int *desc, size_t k) { (void)n; BOUND; page->access = 0; for (size_t i = 0; i < k; i++) { page->access |= 1u << desc[3 * i + 1]; if (desc[3 * i] != 1 || desc[3 * i + 2] != 3) complain(__func__, "other access"); } LEAVE(at(p, RESERVATION) ? 0 : 1); }
CUresult cuMemExportToShareableHandle(void *out, u64 h, int type, u64 flags) { (void)h, (void)flags; BOUND; if (type == 1) { *(int *)out = open("/dev/null", O_RDONLY); LEAVE(0); } memset(out, 0x77, 64); LEAVE(0); }
CUresult cuMemImportFromShareableHandle(u64 *h, void *os, int type) { BOUND; if (type == 1 ? fcntl((int)(uintptr_t)os, F_GETFD) < 0 : *(unsigned char *)os != 0x77) LEAVE(1); *h = (u64)make(HANDLE, current); LEAVE(0); }

#ifndef WITHOUT_MULTICAST
// Of CUmulticastObjectProp: devices, size, handle types, flags.
#define MULTI FREE; page->multicast_calls++
// An imported object is a handle like any other.
static CUresult multi(const char *name, u64 h) { struct object *o = (struct object *)h; return use(name, h, o && o->kind == HANDLE ? HANDLE : MULTICAST, 0) ? 0 : 400; }
CUresult cuMulticastGetGranularity(size_t *n, const u64 *prop, int o) { MULTI; *n = (size_t)(o + 1) << 21; LEAVE(prop[0] ? 0 : 1); }
CUresult cuMulticastCreate(u64 *h, const u64 *prop) { MULTI; if (!prop[1] || prop[3]) LEAVE(1); *h = (u64)make(MULTICAST, primaries[0]); LEAVE(0); }
CUresult cuMulticastAddDevice(u64 h, int d) { (void)d; MULTI; LEAVE(multi(__func__, h)); }
CUresult cuMulticastBindMem(u64 h, size_t o, u64 m, size_t f, size_t n, u64 flags) { (void)o, (void)f, (void)n, (void)flags; MULTI; block(1); LEAVE(use(__func__, m, HANDLE, 0) ? multi(__func__, h) : 400); }
CUresult cuMulticastUnbind(u64 h, int d, size_t o, size_t n) { (void)d, (void)o, (void)n; MULTI; LEAVE(multi(__func__, h)); }
#endif
