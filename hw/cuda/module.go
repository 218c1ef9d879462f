//go:build gpu && linux && cgo

package cuda

/*
#include <stdlib.h>
#include "abi.h"

#cgo noescape tandem_load_module
#cgo nocallback tandem_load_module
#cgo nocallback call_cuModuleUnload
#cgo noescape call_cuModuleGetFunction
#cgo nocallback call_cuModuleGetFunction
#cgo noescape call_cuModuleGetGlobal_v2
#cgo nocallback call_cuModuleGetGlobal_v2
#cgo nocallback call_cuFuncLoad
#cgo noescape call_cuFuncIsLoaded
#cgo nocallback call_cuFuncIsLoaded
#cgo noescape call_cuFuncGetAttribute
#cgo nocallback call_cuFuncGetAttribute
#cgo nocallback call_cuFuncSetAttribute
#cgo noescape call_cuFuncGetParamInfo
#cgo nocallback call_cuFuncGetParamInfo
#cgo noescape call_cuOccupancyMaxActiveBlocksPerMultiprocessor
#cgo nocallback call_cuOccupancyMaxActiveBlocksPerMultiprocessor
*/
import "C"

import (
	"bytes"
	"strings"
	"sync"
	"unsafe"

	"example.com/tandem/api/gpu"
)

// module is loaded code.
type module struct {
	c     *primary
	m     C.CUmodule // 0 once unloaded
	name  string
	entry *gpu.Entry

	mu      sync.Mutex
	globals map[gpu.Ptr]bool // that Global has entered among the addresses
}

// jitLog is room for what the compiler says, of errors and of the rest.
const jitLog = 16 << 10

// LoadModule compiles PTX for the device.
func (c *primary) LoadModule(name string, ptx []byte) (gpu.Module, error) {
	const call = "cuModuleLoadDataEx"
	if err := c.usable(call); err != nil {
		return nil, err
	}
	// The driver reads up to a zero byte.
	text := append(bytes.Clone(ptx), 0)
	problems, infos := make([]byte, jitLog), make([]byte, jitLog)
	m := &module{c: c, name: name, globals: make(map[gpu.Ptr]bool)}
	rc := C.tandem_load_module(c.d.table, c.ctx, &m.m, unsafe.Pointer(&text[0]),
		(*C.char)(unsafe.Pointer(&problems[0])), jitLog, (*C.char)(unsafe.Pointer(&infos[0])), jitLog)
	if rc != 0 {
		return nil, c.moduleError(rc, call, name, cString(problems), cString(infos))
	}
	m.entry = c.ledger.Add(gpu.KindModule, func() string { return "module " + name })
	return m, nil
}

// moduleError puts the first line of the log into the message and the whole of
// it behind %+v.
func (c *primary) moduleError(rc C.CUresult, call, name, problems, infos string) error {
	first, _, _ := strings.Cut(strings.TrimSpace(problems), "\n")
	i := c.dev.info
	err := c.fail(rc, call, "%s for compute capability %d.%d: %s", name, i.Major, i.Minor, first)
	if e, ok := err.(*gpu.Error); ok {
		e.Log = strings.TrimSpace(problems + "\n" + infos)
	}
	return err
}

// cString is the text before the first zero byte.
func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

func (m *module) live(call string) error {
	if m.m == 0 {
		return gpu.Refuse(call, gpu.ErrClosed, "module %s was unloaded", m.name)
	}
	return m.c.usable(call)
}

// Unload releases the module, once no stream has work.
func (m *module) Unload() error {
	const call = "cuModuleUnload"
	if err := m.live(call); err != nil {
		return err
	}
	if err := m.c.idle(call); err != nil {
		return err
	}
	if rc := C.call_cuModuleUnload(m.c.d.table, m.c.ctx, m.m); rc != 0 {
		if err := m.c.fail(rc, call, "%s", m.name); !gone(err) {
			return err
		}
	}
	m.m = 0
	m.entry.Release()
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range m.globals {
		_, _ = m.c.d.memory.take(p, func(block) error { return nil })
	}
	return nil
}

// Global is the address of a variable.
func (m *module) Global(name string) (gpu.Ptr, uint64, error) {
	const call = "cuModuleGetGlobal"
	if err := m.live(call); err != nil {
		return 0, 0, err
	}
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	var p C.CUdeviceptr
	var bytes C.size_t
	if rc := C.call_cuModuleGetGlobal_v2(m.c.d.table, m.c.ctx, &p, &bytes, m.m, n); rc != 0 {
		return 0, 0, m.c.fail(rc, call, "%s in %s", name, m.name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := gpu.Ptr(p); !m.globals[at] && bytes > 0 {
		m.globals[at] = true
		m.c.d.memory.add(block{Range: gpu.Range{Base: at, Bytes: uint64(bytes), Device: m.c.dev.ordinal, Owned: true}, owner: m, kept: true})
	}
	return gpu.Ptr(p), uint64(bytes), nil
}

// function is a kernel of a module.
type function struct {
	m      *module
	f      C.CUfunction
	name   string
	attr   gpu.FunctionAttributes
	params []gpu.Param
}

// Function finds a kernel and loads it onto the device at once.
func (m *module) Function(name string) (gpu.Function, error) {
	if err := m.live("cuModuleGetFunction"); err != nil {
		return nil, err
	}
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	f := &function{m: m, name: name}
	if rc := C.call_cuModuleGetFunction(m.c.d.table, m.c.ctx, &f.f, m.m, n); rc != 0 {
		return nil, m.c.fail(rc, "cuModuleGetFunction", "%s in %s", name, m.name)
	}
	for _, step := range []func() error{f.load, f.attributes, f.parameters} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *function) load() error {
	c := f.m.c
	if rc := C.call_cuFuncLoad(c.d.table, c.ctx, f.f); rc != 0 {
		return c.fail(rc, "cuFuncLoad", "%s", f.name)
	}
	var state C.int
	if rc := C.call_cuFuncIsLoaded(c.d.table, c.ctx, &state, f.f); rc != 0 {
		return c.fail(rc, "cuFuncIsLoaded", "%s", f.name)
	}
	if state == 0 {
		return gpu.Refuse("cuFuncIsLoaded", gpu.ErrDriver, "%s is not loaded after cuFuncLoad; a launch could wait for running kernels", f.name)
	}
	return nil
}

// Numbers of CUfunction_attribute.
const (
	funcMaxThreads = iota
	funcShared
	funcConst
	funcLocal
	funcRegisters
	funcPTX
	funcISA
	funcCacheMode
	funcMaxDynamicShared
)

func (f *function) attributes() error {
	c, a := f.m.c, &f.attr
	for attribute, to := range []*int{
		funcMaxThreads: &a.MaxThreads, funcShared: &a.SharedBytes, funcConst: &a.ConstBytes,
		funcLocal: &a.LocalBytes, funcRegisters: &a.Registers, funcPTX: &a.PTXVersion, funcISA: &a.ISAVersion,
	} {
		var v C.int
		if rc := C.call_cuFuncGetAttribute(c.d.table, c.ctx, &v, C.int(attribute), f.f); rc != 0 {
			return c.fail(rc, "cuFuncGetAttribute", "attribute %d of %s", attribute, f.name)
		}
		*to = int(v)
	}
	return nil
}

func (f *function) parameters() error {
	c := f.m.c
	for i := 0; ; i++ {
		var offset, size C.size_t
		rc := C.call_cuFuncGetParamInfo(c.d.table, c.ctx, f.f, C.size_t(i), &offset, &size)
		if gpu.Code(rc) == gpu.InvalidValue {
			return nil // that is how the list ends
		}
		if rc != 0 {
			return c.fail(rc, "cuFuncGetParamInfo", "parameter %d of %s", i, f.name)
		}
		f.params = append(f.params, gpu.Param{Offset: int(offset), Size: int(size)})
	}
}

// Name is the kernel's name.
func (f *function) Name() string { return f.name }

// Attributes were read when the function was loaded.
func (f *function) Attributes() gpu.FunctionAttributes { return f.attr }

// Params were read when the function was loaded.
func (f *function) Params() []gpu.Param { return f.params }

// SetDynamicShared opts in to more shared memory.
func (f *function) SetDynamicShared(bytes int) error {
	const call = "cuFuncSetAttribute"
	if err := f.m.live(call); err != nil {
		return err
	}
	c := f.m.c
	if most := c.dev.info.SharedPerBlockMax - f.attr.SharedBytes; bytes < 0 || bytes > most {
		return gpu.Refuse(call, gpu.ErrInvalid, "%d bytes of dynamic shared memory for %s; 0 to %d", bytes, f.name, most)
	}
	if rc := C.call_cuFuncSetAttribute(c.d.table, c.ctx, f.f, funcMaxDynamicShared, C.int(bytes)); rc != 0 {
		return c.fail(rc, call, "%d bytes of dynamic shared memory for %s", bytes, f.name)
	}
	return nil
}

// BlocksPerSM is the occupancy.
func (f *function) BlocksPerSM(threads, dynamicShared int) (int, error) {
	const call = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
	if err := f.m.live(call); err != nil {
		return 0, err
	}
	c := f.m.c
	if threads < 1 || dynamicShared < 0 {
		return 0, gpu.Refuse(call, gpu.ErrInvalid, "%d threads and %d bytes of shared memory", threads, dynamicShared)
	}
	var n C.int
	if rc := C.call_cuOccupancyMaxActiveBlocksPerMultiprocessor(c.d.table, c.ctx, &n, f.f, C.int(threads), C.size_t(dynamicShared)); rc != 0 {
		return 0, c.fail(rc, call, "%s with %d threads", f.name, threads)
	}
	return int(n), nil
}
