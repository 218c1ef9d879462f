//go:build gpu && linux && cgo

package nccl

/*
#cgo CFLAGS: -O2 -Wall
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "abi.h"

#cgo noescape tandem_nccl_group
#cgo nocallback tandem_nccl_group
*/
import "C"

import (
	"errors"
	"unsafe"
)

// dynamic is libnccl by dlopen.
type dynamic struct{ lib *C.tandem_nccl }

// The two forms of a task are one: the shim reads Go's.
var _ [unsafe.Sizeof(task{})]byte = [unsafe.Sizeof(C.tandem_nccl_task{})]byte{}

// dlerrorLen is room for what the dynamic loader says.
const dlerrorLen = 512

func open(file, driver string) (library, error) {
	f, d := C.CString(file), C.CString(driver)
	defer C.free(unsafe.Pointer(f))
	defer C.free(unsafe.Pointer(d))
	msg := (*C.char)(C.calloc(1, dlerrorLen))
	defer C.free(unsafe.Pointer(msg))
	l := new(dynamic)
	if C.tandem_nccl_open(&l.lib, f, d, msg, dlerrorLen) != 0 {
		return nil, errors.New(C.GoString(msg))
	}
	return l, nil
}

// fail is the error of a result; nil of success.
func (l *dynamic) fail(code C.int, call C.int) error {
	if code == 0 {
		return nil
	}
	return l.failure(code, C.GoString(C.tandem_nccl_name(call)))
}

func (l *dynamic) failure(code C.int, call string) error {
	if code == 0 {
		return nil
	}
	return &Error{Call: call, Code: int(code), Text: C.GoString(C.tandem_nccl_error(l.lib, code)), Last: C.GoString(C.tandem_nccl_last(l.lib))}
}

func (l *dynamic) Version() (int, error) {
	var v C.int
	return int(v), l.failure(C.tandem_nccl_version(l.lib, &v), "ncclGetVersion")
}

func (l *dynamic) InitAll(devices []int32) ([]uintptr, error) {
	comms := make([]uintptr, len(devices))
	rc := C.tandem_nccl_init(l.lib, (*C.uintptr_t)(unsafe.Pointer(&comms[0])), (*C.int32_t)(unsafe.Pointer(&devices[0])), C.int(len(devices)))
	return comms, l.failure(rc, "ncclCommInitAll")
}

// at is the address of a slice's elements.
func at(t []task) *C.tandem_nccl_task {
	return (*C.tandem_nccl_task)(unsafe.Pointer(unsafe.SliceData(t)))
}

func (l *dynamic) Group(tasks []task) error {
	var call C.int
	return l.fail(C.tandem_nccl_group(l.lib, at(tasks), C.size_t(len(tasks)), &call), call)
}

func (l *dynamic) AsyncError(comm uintptr) error {
	var r C.int
	if err := l.failure(C.tandem_nccl_async(l.lib, C.uintptr_t(comm), &r), "ncclCommGetAsyncError"); err != nil {
		return err
	}
	return l.failure(r, "a call under way")
}

func (l *dynamic) Destroy(comm uintptr) error {
	return l.failure(C.tandem_nccl_destroy(l.lib, C.uintptr_t(comm)), "ncclCommDestroy")
}

func (l *dynamic) Abort(comm uintptr) error {
	return l.failure(C.tandem_nccl_abort(l.lib, C.uintptr_t(comm)), "ncclCommAbort")
}

func (l *dynamic) Alloc(context uintptr, bytes uint64) (uint64, error) {
	var p C.uint64_t
	var call C.int
	rc := C.tandem_nccl_alloc(l.lib, C.uintptr_t(context), C.uint64_t(bytes), &p, &call)
	return uint64(p), l.fail(rc, call)
}

func (l *dynamic) Free(context uintptr, p uint64) error {
	var call C.int
	return l.fail(C.tandem_nccl_free(l.lib, C.uintptr_t(context), C.uint64_t(p), &call), call)
}

func truth(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func (l *dynamic) Register(windows bool, ranks []task, p []uint64, bytes uint64) ([]uintptr, error) {
	// The library fills the handles in when the group ends, so they are in C
	// memory.
	n := len(ranks)
	mem := C.calloc(C.size_t(n), C.size_t(unsafe.Sizeof(uintptr(0))))
	defer C.free(mem)
	var call C.int
	rc := C.tandem_nccl_register(l.lib, truth(windows), at(ranks), C.size_t(n), (*C.uint64_t)(unsafe.Pointer(&p[0])), C.uint64_t(bytes), (*C.uintptr_t)(mem), &call)
	handles := make([]uintptr, n)
	copy(handles, unsafe.Slice((*uintptr)(mem), n))
	return handles, l.fail(rc, call)
}

func (l *dynamic) Deregister(windows bool, ranks []task, handles []uintptr) error {
	var call C.int
	rc := C.tandem_nccl_deregister(l.lib, truth(windows), at(ranks), C.size_t(len(ranks)), (*C.uintptr_t)(unsafe.Pointer(&handles[0])), &call)
	return l.fail(rc, call)
}
