// A libnccl and a libcuda that note how they are called, for tests of the
// loader and the shims. Each call appends a line to a file.

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static int depth;

// note appends to the log and gives the result of the call: the test's control
// file holds a generation, the call of it that fails, and the code.
static int note(const char *format, ...) {
	static int calls, generation;
	int g = 0, at = 0, code = 0;
	FILE *f = fopen(FAKE_DIR "/control", "r");
	if (f) {
		if (fscanf(f, "%d %d %d", &g, &at, &code) != 3)
			at = 0;
		fclose(f);
	}
	if (g != generation)
		generation = g, calls = depth = 0;
	f = fopen(FAKE_DIR "/log", "a");
	if (f) {
		va_list a;
		va_start(a, format);
		vfprintf(f, format, a);
		va_end(a);
		fputc('\n', f);
		fclose(f);
	}
	return ++calls == at ? code : 0;
}

typedef uintptr_t comm;
typedef unsigned long long word;
#define W(x) ((word)(uintptr_t)(x))

int ncclGetVersion(int *v) { return *v = FAKE_VERSION, 0; }
const char *ncclGetErrorString(int code) { return code == 2 ? "unhandled system error" : "some error"; }
const char *ncclGetLastError(comm c) { return c ? "not this one" : "the last warning"; }
int ncclCommInitAll(comm *c, int n, const int *devices) {
	for (int i = 0; i < n; i++)
		c[i] = 0x100 + (comm)devices[i];
	return note("init %d", n);
}
int ncclCommDestroy(comm c) { return note("destroy %llx", W(c)); }
int ncclCommAbort(comm c) { return note("abort %llx", W(c)); }
int ncclCommGetAsyncError(comm c, int *r) { return *r = c == 0x101 ? 6 : 0, 0; }
int ncclGroupStart(void) {
	int r = note("start");
	return depth++, r;
}
int ncclGroupEnd(void) { return depth--, note("end %d", depth); }
int ncclAllReduce(const void *s, void *d, size_t n, int t, int op, comm c, void *q) {
	return note("all_reduce %llx %llx %llu type %d op %d comm %llx stream %llx", W(s), W(d), (word)n, t, op, W(c), W(q));
}
int ncclReduceScatter(const void *s, void *d, size_t n, int t, int op, comm c, void *q) {
	return note("reduce_scatter %llx %llx %llu type %d op %d comm %llx stream %llx", W(s), W(d), (word)n, t, op, W(c), W(q));
}
int ncclAllGather(const void *s, void *d, size_t n, int t, comm c, void *q) {
	return note("all_gather %llx %llx %llu type %d comm %llx stream %llx", W(s), W(d), (word)n, t, W(c), W(q));
}
int ncclBroadcast(const void *s, void *d, size_t n, int t, int root, comm c, void *q) {
	return note("broadcast %llx %llx %llu type %d root %d comm %llx stream %llx", W(s), W(d), (word)n, t, root, W(c), W(q));
}
int ncclSend(const void *s, size_t n, int t, int peer, comm c, void *q) {
	return note("send %llx %llu type %d peer %d comm %llx stream %llx", W(s), (word)n, t, peer, W(c), W(q));
}
int ncclRecv(void *d, size_t n, int t, int peer, comm c, void *q) {
	return note("recv %llx %llu type %d peer %d comm %llx stream %llx", W(d), (word)n, t, peer, W(c), W(q));
}
int ncclMemAlloc(void **p, size_t bytes) { return *p = (void *)0x7000, note("alloc %llu", (word)bytes); }
int ncclMemFree(void *p) { return note("free %llx", W(p)); }
int ncclCommRegister(comm c, void *p, size_t bytes, void **h) {
	return *h = (void *)(uintptr_t)(0x900 + c), note("register %llx %llx %llu", W(c), W(p), (word)bytes);
}
int ncclCommDeregister(comm c, void *h) { return note("deregister %llx %llx", W(c), W(h)); }
#ifndef FAKE_OLD
int ncclCommWindowRegister(comm c, void *p, size_t bytes, void **w, int flags) {
	return *w = (void *)(uintptr_t)(0xa00 + c), note("window %llx %llx %llu flags %d", W(c), W(p), (word)bytes, flags);
}
int ncclCommWindowDeregister(comm c, void *w) { return note("no window %llx %llx", W(c), W(w)); }
#endif
int cuCtxSetCurrent(void *ctx) { return note("context %llx", W(ctx)); }
