// What is used of libnccl, declared by hand so that nothing is needed to build.

#include <stddef.h>
#include <stdint.h>

typedef uintptr_t ncclComm_t;
typedef int ncclResult_t;

// The functions; those from OPTIONAL on may be missing. The order is that of
// enum below.
#define NCCL_FUNCTIONS(X) \
	X(ncclGetVersion, (int *version)) \
	X(ncclCommInitAll, (ncclComm_t *comms, int n, const int *devices)) \
	X(ncclCommDestroy, (ncclComm_t comm)) \
	X(ncclCommAbort, (ncclComm_t comm)) \
	X(ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *r)) \
	X(ncclGroupStart, (void)) \
	X(ncclGroupEnd, (void)) \
	X(ncclAllReduce, (const void *s, void *d, size_t n, int type, int op, ncclComm_t c, void *stream)) \
	X(ncclReduceScatter, (const void *s, void *d, size_t n, int type, int op, ncclComm_t c, void *stream)) \
	X(ncclAllGather, (const void *s, void *d, size_t n, int type, ncclComm_t c, void *stream)) \
	X(ncclBroadcast, (const void *s, void *d, size_t n, int type, int root, ncclComm_t c, void *stream)) \
	X(ncclSend, (const void *s, size_t n, int type, int peer, ncclComm_t c, void *stream)) \
	X(ncclRecv, (void *d, size_t n, int type, int peer, ncclComm_t c, void *stream)) \
	X(ncclMemAlloc, (void **p, size_t bytes)) \
	X(ncclMemFree, (void *p)) \
	X(ncclCommRegister, (ncclComm_t c, void *p, size_t bytes, void **handle)) \
	X(ncclCommDeregister, (ncclComm_t c, void *handle))

#define NCCL_OPTIONAL(X) \
	X(ncclCommWindowRegister, (ncclComm_t c, void *p, size_t bytes, void **window, int flags)) \
	X(ncclCommWindowDeregister, (ncclComm_t c, void *window))

#define NCCL_ENUM(name, params) FN_##name,
enum {
	NCCL_FUNCTIONS(NCCL_ENUM)
	FN_REQUIRED,
	FN_BEFORE_OPTIONAL = FN_REQUIRED - 1,
	NCCL_OPTIONAL(NCCL_ENUM)
	FN_COUNT
};

// A loaded library.
typedef struct {
	uintptr_t fn[FN_COUNT];
	uintptr_t error_string, last_error; // const char *(int), const char *(comm)
	uintptr_t set_current;              // cuCtxSetCurrent
} tandem_nccl;

// The kinds of tasks, and a task, as task.go has them.
enum { DO_ALL_REDUCE, DO_REDUCE_SCATTER, DO_ALL_GATHER, DO_BROADCAST, DO_SEND, DO_RECV };
typedef struct {
	uintptr_t comm, stream, context;
	uint64_t send, recv, count;
	int32_t kind, dtype, op, peer;
} tandem_nccl_task;

// Which call failed: an index into the functions, or this.
enum { CALL_SET_CURRENT = FN_COUNT };

// Every function gives the library's result; *call names the one that failed.
int tandem_nccl_open(tandem_nccl **lib, const char *file, const char *driver, char *err, size_t len);
const char *tandem_nccl_name(int call);
const char *tandem_nccl_error(const tandem_nccl *lib, int code);
const char *tandem_nccl_last(const tandem_nccl *lib);
int tandem_nccl_version(const tandem_nccl *lib, int *version);
int tandem_nccl_init(const tandem_nccl *lib, uintptr_t *comms, const int32_t *devices, int n);
int tandem_nccl_destroy(const tandem_nccl *lib, uintptr_t comm);
int tandem_nccl_abort(const tandem_nccl *lib, uintptr_t comm);
int tandem_nccl_async(const tandem_nccl *lib, uintptr_t comm, int *result);
int tandem_nccl_group(const tandem_nccl *lib, const tandem_nccl_task *t, size_t n, int *call);
int tandem_nccl_alloc(const tandem_nccl *lib, uintptr_t context, uint64_t bytes, uint64_t *p, int *call);
int tandem_nccl_free(const tandem_nccl *lib, uintptr_t context, uint64_t p, int *call);
int tandem_nccl_register(const tandem_nccl *lib, int windows, const tandem_nccl_task *t, size_t n,
	const uint64_t *p, uint64_t bytes, uintptr_t *handles, int *call);
int tandem_nccl_deregister(const tandem_nccl *lib, int windows, const tandem_nccl_task *t, size_t n,
	const uintptr_t *handles, int *call);
