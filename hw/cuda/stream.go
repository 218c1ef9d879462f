//go:build gpu && linux && cgo

package cuda

/*
#include "abi.h"

#cgo noescape call_cuStreamCreateWithPriority
#cgo nocallback call_cuStreamCreateWithPriority
#cgo nocallback call_cuStreamDestroy_v2
#cgo nocallback call_cuStreamQuery
#cgo nocallback call_cuStreamWaitEvent
#cgo nocallback call_cuMemcpyAsync
#cgo nocallback call_cuMemsetD8Async
#cgo nocallback call_cuMemsetD32Async
#cgo noescape call_cuEventCreate
#cgo nocallback call_cuEventCreate
#cgo nocallback call_cuEventDestroy_v2
#cgo nocallback call_cuEventRecord
#cgo nocallback call_cuEventRecordWithFlags
#cgo nocallback call_cuEventQuery
#cgo noescape call_cuEventElapsedTime
#cgo nocallback call_cuEventElapsedTime
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"time"

	"example.com/tandem/api/gpu"
)

// stream is a non-blocking stream.
type stream struct {
	c     *primary
	entry *gpu.Entry

	// mu keeps busy, which another goroutine calls, away from the moments
	// in which the stream enters a capture: a query would spoil that.
	mu        sync.Mutex
	s         C.CUstream // 0 once destroyed
	capturing bool       // by BeginCapture of this stream
	// overlaps is set while the last thing queued is a launch with Overlap.
	overlaps atomic.Bool
}

const streamNonBlocking = 1

// NewStream makes a stream that does not wait for the legacy stream.
func (c *primary) NewStream(o gpu.StreamOptions) (gpu.Stream, error) {
	const call = "cuStreamCreateWithPriority"
	if err := c.usable(call); err != nil {
		return nil, err
	}
	s := &stream{c: c}
	if rc := C.call_cuStreamCreateWithPriority(c.d.table, c.ctx, &s.s, streamNonBlocking, C.int(o.Priority)); rc != 0 {
		return nil, c.fail(rc, call, "a stream of priority %d", o.Priority)
	}
	s.entry = c.ledger.Add(gpu.KindStream, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[s] = true
	return s, nil
}

// live gives the handle, to queue something, or why there is none.
func (s *stream) live(call string) (C.CUstream, error) {
	if s == nil || s.s == 0 {
		return 0, gpu.Refuse(call, gpu.ErrClosed, "the stream was destroyed")
	}
	s.overlaps.Store(false)
	return s.s, s.c.usable(call)
}

// Native gives the handles for another library of the process.
func (s *stream) Native() (handle, context uintptr, err error) {
	h, err := s.live("cuStreamGetCtx")
	if err != nil {
		return 0, 0, err
	}
	return uintptr(h), uintptr(s.c.ctx), nil
}

// Query asks whether all work is done.
func (s *stream) Query() (bool, error) {
	const call = "cuStreamQuery"
	h, err := s.live(call)
	if err != nil {
		return false, err
	}
	if s.capturing {
		return false, gpu.Refuse(call, gpu.ErrCapture, "the stream is capturing, and a query would spoil the capture")
	}
	return s.c.done(C.call_cuStreamQuery(s.c.d.table, s.c.ctx, h), call)
}

// done reads the answer of a query.
func (c *primary) done(rc C.CUresult, call string) (bool, error) {
	switch gpu.Code(rc) {
	case gpu.Success:
		return true, nil
	case gpu.NotReady:
		return false, nil
	}
	return false, c.fail(rc, call, "work")
}

// busy reports whether the stream is known to have work. One that captures has
// none, and a dead context has none either.
func (s *stream) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.s == 0 || s.capturing {
		return false
	}
	if status, err := s.captureStatus(); err != nil || status != captureNone {
		return false
	}
	return gpu.Code(C.call_cuStreamQuery(s.c.d.table, s.c.ctx, s.s)) == gpu.NotReady
}

// Copy queues a copy between addresses that lie in known memory: the driver
// would take any other for pageable host memory, and read it.
func (s *stream) Copy(dst, src gpu.Ptr, n uint64) error {
	const call = "cuMemcpyAsync"
	h, err := s.live(call)
	if err != nil || n == 0 {
		return err
	}
	for _, p := range []gpu.Ptr{dst, src} {
		if err := s.c.reach(call, p, n); err != nil {
			return err
		}
	}
	if rc := C.call_cuMemcpyAsync(s.c.d.table, s.c.ctx, C.CUdeviceptr(dst), C.CUdeviceptr(src), C.size_t(n), h); rc != 0 {
		return s.c.fail(rc, call, "%d bytes from %#x to %#x", n, uint64(src), uint64(dst))
	}
	return nil
}

// Set8 queues the filling of bytes.
func (s *stream) Set8(dst gpu.Ptr, value uint8, n uint64) error {
	const call = "cuMemsetD8Async"
	h, err := s.live(call)
	if err != nil || n == 0 {
		return err
	}
	if err := s.c.reach(call, dst, n); err != nil {
		return err
	}
	if rc := C.call_cuMemsetD8Async(s.c.d.table, s.c.ctx, C.CUdeviceptr(dst), C.uchar(value), C.size_t(n), h); rc != 0 {
		return s.c.fail(rc, call, "%d bytes at %#x", n, uint64(dst))
	}
	return nil
}

// Set32 queues the filling of 4-byte words.
func (s *stream) Set32(dst gpu.Ptr, value uint32, n uint64) error {
	const call = "cuMemsetD32Async"
	h, err := s.live(call)
	if err != nil || n == 0 {
		return err
	}
	if dst%4 != 0 || n > 1<<60 {
		return gpu.Refuse(call, gpu.ErrInvalid, "%d words at %#x: an address that is no multiple of 4, or too many", n, uint64(dst))
	}
	if err := s.c.reach(call, dst, 4*n); err != nil {
		return err
	}
	if rc := C.call_cuMemsetD32Async(s.c.d.table, s.c.ctx, C.CUdeviceptr(dst), C.uint(value), C.size_t(n), h); rc != 0 {
		return s.c.fail(rc, call, "%d words at %#x", n, uint64(dst))
	}
	return nil
}

// Record marks the end of the queue.
func (s *stream) Record(e gpu.Event) error {
	const call = "cuEventRecord"
	h, err := s.live(call)
	if err != nil {
		return err
	}
	v, err := s.c.d.ownEvent(call, e)
	if err != nil {
		return err
	}
	if rc := C.call_cuEventRecord(s.c.d.table, s.c.ctx, v.e, h); rc != 0 {
		return s.c.fail(rc, call, "an event of %v", v.c)
	}
	return nil
}

// recordExternal makes a record of a capture a node of its graph.
const recordExternal = 1

// RecordNode puts a record into the graph that the stream captures.
func (s *stream) RecordNode(e gpu.Event) error {
	const call = "cuEventRecordWithFlags"
	h, err := s.live(call)
	if err != nil {
		return err
	}
	v, err := s.c.d.ownEvent(call, e)
	if err != nil {
		return err
	}
	if !s.capturing {
		return gpu.Refuse(call, gpu.ErrCapture, "the stream captures nothing, so there is no graph for the record to be a node of")
	}
	if rc := C.call_cuEventRecordWithFlags(s.c.d.table, s.c.ctx, v.e, h, recordExternal); rc != 0 {
		return s.c.fail(rc, call, "an event of %v", v.c)
	}
	return nil
}

// WaitEvent holds later work until the event, of any device.
func (s *stream) WaitEvent(e gpu.Event) error {
	const call = "cuStreamWaitEvent"
	v, err := s.c.d.ownEvent(call, e)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.live(call)
	if err != nil {
		return err
	}
	if rc := C.call_cuStreamWaitEvent(s.c.d.table, s.c.ctx, h, v.e, 0); rc != 0 {
		return s.c.fail(rc, call, "an event of %v", v.c)
	}
	return nil
}

// Destroy releases an idle stream.
func (s *stream) Destroy() error {
	const call = "cuStreamDestroy"
	if _, err := s.live(call); err != nil {
		return err
	}
	if s.capturing {
		if g, err := s.endCapture(); err == nil && g.Destroy() != nil {
			g.entry.Orphan(g.free) // nobody else has it
		}
	}
	if s.busy() {
		return gpu.Refuse(call, gpu.ErrBusy, "the stream still has work on %v; wait for it first", s.c)
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if rc := C.call_cuStreamDestroy_v2(s.c.d.table, s.c.ctx, s.s); rc != 0 {
		if err := s.c.fail(rc, call, "a stream"); !gone(err) {
			return err
		}
	}
	delete(s.c.streams, s)
	s.s = 0
	s.entry.Release()
	return nil
}

// event is a CUDA event.
type event struct {
	c      *primary
	e      C.CUevent // 0 once destroyed
	timing bool
	entry  *gpu.Entry
}

const eventNoTiming = 2

// NewEvent makes an event.
func (c *primary) NewEvent(o gpu.EventOptions) (gpu.Event, error) {
	const call = "cuEventCreate"
	if err := c.usable(call); err != nil {
		return nil, err
	}
	v := &event{c: c, timing: o.Timing}
	flags := C.uint(eventNoTiming)
	if o.Timing {
		flags = 0
	}
	if rc := C.call_cuEventCreate(c.d.table, c.ctx, &v.e, flags); rc != 0 {
		return nil, c.fail(rc, call, "an event")
	}
	v.entry = c.ledger.Add(gpu.KindEvent, nil)
	return v, nil
}

func (d *driver) ownEvent(call string, e gpu.Event) (*event, error) {
	v, ok := e.(*event)
	if !ok || v == nil || v.c.d != d {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "the event is another driver's")
	}
	if v.e == 0 {
		return nil, gpu.Refuse(call, gpu.ErrClosed, "the event was destroyed")
	}
	return v, v.c.usable(call)
}

// Query asks whether the event was reached.
func (v *event) Query() (bool, error) {
	const call = "cuEventQuery"
	if _, err := v.c.d.ownEvent(call, v); err != nil {
		return false, err
	}
	return v.c.done(C.call_cuEventQuery(v.c.d.table, v.c.ctx, v.e), call)
}

// Since is the device's time between two events.
func (v *event) Since(earlier gpu.Event) (time.Duration, error) {
	const call = "cuEventElapsedTime"
	if _, err := v.c.d.ownEvent(call, v); err != nil {
		return 0, err
	}
	from, err := v.c.d.ownEvent(call, earlier)
	if err != nil {
		return 0, err
	}
	if !v.timing || !from.timing {
		return 0, gpu.Refuse(call, gpu.ErrInvalid, "an event was made without timing")
	}
	var ms C.float
	if rc := C.call_cuEventElapsedTime(v.c.d.table, v.c.ctx, &ms, from.e, v.e); rc != 0 {
		return 0, v.c.fail(rc, call, "two events")
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), nil
}

// Destroy releases the event.
func (v *event) Destroy() error {
	const call = "cuEventDestroy"
	if _, err := v.c.d.ownEvent(call, v); err != nil {
		return err
	}
	if rc := C.call_cuEventDestroy_v2(v.c.d.table, v.c.ctx, v.e); rc != 0 {
		if err := v.c.fail(rc, call, "an event"); !gone(err) {
			return err
		}
	}
	v.e = 0
	v.entry.Release()
	return nil
}
