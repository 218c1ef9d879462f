//go:build gpu && linux && cgo

package cuda

/*
#cgo CFLAGS: -O2 -Wall
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "abi.h"

#cgo noescape tandem_dlopen
#cgo nocallback tandem_dlopen
#cgo noescape tandem_dlsym
#cgo nocallback tandem_dlsym
#cgo noescape tandem_start
#cgo nocallback tandem_start
#cgo noescape tandem_table
#cgo nocallback tandem_table
*/
import "C"

import (
	"errors"
	"unsafe"

	"example.com/tandem/api/gpu"
)

// dynamic is libcuda by dlopen.
type dynamic struct{ handle C.uintptr_t }

// dlerrorLen is room for what the dynamic loader says.
const dlerrorLen = 512

func (l *dynamic) Open(name string) error {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	var msg [dlerrorLen]C.char
	if l.handle = C.tandem_dlopen(n, &msg[0], dlerrorLen); l.handle == 0 {
		return errors.New(C.GoString(&msg[0]))
	}
	return nil
}

func (l *dynamic) Lookup(symbol string) (uintptr, error) {
	n := C.CString(symbol)
	defer C.free(unsafe.Pointer(n))
	var msg [dlerrorLen]C.char
	p := C.tandem_dlsym(l.handle, n, &msg[0], dlerrorLen)
	if p == 0 {
		return 0, errors.New(C.GoString(&msg[0]))
	}
	return uintptr(p), nil
}

func (l *dynamic) Start(cuInit, cuDriverGetVersion uintptr, min int) (int, gpu.Code) {
	var version C.int
	rc := C.tandem_start(C.uintptr_t(cuInit), C.uintptr_t(cuDriverGetVersion), C.int(min), &version)
	return int(version), gpu.Code(rc)
}

// symbols are the functions of abi.h, the optional ones from FN_REQUIRED on.
func symbols() []string {
	names := make([]string, C.FN_COUNT)
	for i := range names {
		names[i] = C.GoString(C.tandem_names[i])
	}
	return names
}

// newTable puts the addresses where the shims find them. The table is never
// freed, as the library is never closed: 600 bytes for each Open.
func newTable(addresses []uintptr) (C.uintptr_t, error) {
	t := C.tandem_table((*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(addresses))))
	if t == 0 {
		return 0, gpu.Refuse("", gpu.ErrOutOfMemory, "no host memory for the table of functions")
	}
	return t, nil
}
