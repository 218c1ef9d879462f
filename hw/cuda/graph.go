//go:build gpu && linux && cgo

package cuda

/*
#include "abi.h"

#cgo nocallback call_cuStreamBeginCapture_v2
#cgo noescape call_cuStreamEndCapture
#cgo nocallback call_cuStreamEndCapture
#cgo noescape call_cuStreamIsCapturing
#cgo nocallback call_cuStreamIsCapturing
#cgo noescape call_cuGraphInstantiateWithFlags
#cgo nocallback call_cuGraphInstantiateWithFlags
#cgo nocallback call_cuGraphUpload
#cgo nocallback call_cuGraphLaunch
#cgo nocallback call_cuGraphExecDestroy
#cgo nocallback call_cuGraphDestroy
*/
import "C"

import "example.com/tandem/api/gpu"

// The relaxed mode: the others tie a capture to a thread, and a goroutine has
// none of its own.
const captureRelaxed = 2

// captureNone is the status of a stream that does not capture.
const captureNone = 0

func (s *stream) captureStatus() (int, error) {
	var status C.int
	if rc := C.call_cuStreamIsCapturing(s.c.d.table, s.c.ctx, s.s, &status); rc != 0 {
		return 0, s.c.fail(rc, "cuStreamIsCapturing", "a stream")
	}
	return int(status), nil
}

// BeginCapture starts a capture.
func (s *stream) BeginCapture() error {
	const call = "cuStreamBeginCapture"
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.live(call)
	if err != nil {
		return err
	}
	if s.capturing {
		return gpu.Refuse(call, gpu.ErrCapture, "the stream captures already")
	}
	if rc := C.call_cuStreamBeginCapture_v2(s.c.d.table, s.c.ctx, h, captureRelaxed); rc != 0 {
		return s.c.fail(rc, call, "a stream")
	}
	s.capturing = true
	return nil
}

// EndCapture gives the captured graph.
func (s *stream) EndCapture() (gpu.Graph, error) {
	g, err := s.endCapture()
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (s *stream) endCapture() (*graph, error) {
	const call = "cuStreamEndCapture"
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.live(call)
	if err != nil {
		return nil, err
	}
	if !s.capturing {
		return nil, gpu.Refuse(call, gpu.ErrCapture, "no capture was begun on the stream")
	}
	var g C.CUgraph
	rc := C.call_cuStreamEndCapture(s.c.d.table, s.c.ctx, h, &g)
	if rc == 0 {
		s.capturing = false
		return &graph{c: s.c, g: g, entry: s.c.ledger.Add(gpu.KindGraph, nil)}, nil
	}
	err = s.c.fail(rc, call, "a stream")
	// The driver ends the capture even when it fails. Where the call did not
	// get that far, a second one ends it.
	if status, e := s.captureStatus(); e != nil || status != captureNone {
		if C.call_cuStreamEndCapture(s.c.d.table, s.c.ctx, h, &g) == 0 && g != 0 {
			s.c.undo(gpu.KindGraph, (&graph{c: s.c, g: g}).free)
		}
	}
	status, e := s.captureStatus()
	s.capturing = e == nil && status != captureNone
	return nil, err
}

// graph is captured work.
type graph struct {
	c     *primary
	g     C.CUgraph // 0 once destroyed
	entry *gpu.Entry
}

func (g *graph) live(call string) error {
	if g.g == 0 {
		return gpu.Refuse(call, gpu.ErrClosed, "the graph was destroyed")
	}
	return g.c.usable(call)
}

// Instantiate makes the graph launchable.
func (g *graph) Instantiate() (gpu.GraphExec, error) {
	const call = "cuGraphInstantiate"
	if err := g.live(call); err != nil {
		return nil, err
	}
	x := &graphExec{c: g.c}
	if rc := C.call_cuGraphInstantiateWithFlags(g.c.d.table, g.c.ctx, &x.x, g.g, 0); rc != 0 {
		return nil, g.c.fail(rc, call, "a graph")
	}
	x.entry = g.c.ledger.Add(gpu.KindGraphExec, nil)
	return x, nil
}

func (g *graph) free() error {
	if rc := C.call_cuGraphDestroy(g.c.d.table, g.c.ctx, g.g); rc != 0 {
		return g.c.fail(rc, "cuGraphDestroy", "a graph")
	}
	return nil
}

// Destroy releases the graph; what was instantiated from it stays.
func (g *graph) Destroy() error {
	if err := g.live("cuGraphDestroy"); err != nil {
		return err
	}
	if err := g.free(); err != nil && !gone(err) {
		return err
	}
	g.g = 0
	g.entry.Release()
	return nil
}

// graphExec is a launchable graph.
type graphExec struct {
	c     *primary
	x     C.CUgraphExec // 0 once destroyed
	entry *gpu.Entry
}

// on checks the graph and the stream it is to run in.
func (x *graphExec) on(call string, s gpu.Stream) (*stream, error) {
	if x.x == 0 {
		return nil, gpu.Refuse(call, gpu.ErrClosed, "the executable graph was destroyed")
	}
	if err := x.c.usable(call); err != nil {
		return nil, err
	}
	v, ok := s.(*stream)
	if !ok || v == nil || v.c.d != x.c.d {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "the stream is another driver's")
	}
	_, err := v.live(call)
	return v, err
}

// Upload queues the graph's way to the device.
func (x *graphExec) Upload(s gpu.Stream) error {
	v, err := x.on("cuGraphUpload", s)
	if err != nil {
		return err
	}
	if rc := C.call_cuGraphUpload(v.c.d.table, v.c.ctx, x.x, v.s); rc != 0 {
		return v.c.fail(rc, "cuGraphUpload", "a graph")
	}
	return nil
}

// Launch queues one run of the graph.
func (x *graphExec) Launch(s gpu.Stream) error {
	v, err := x.on("cuGraphLaunch", s)
	if err != nil {
		return err
	}
	if rc := C.call_cuGraphLaunch(v.c.d.table, v.c.ctx, x.x, v.s); rc != 0 {
		return v.c.fail(rc, "cuGraphLaunch", "a graph")
	}
	return nil
}

// Destroy releases the executable graph.
func (x *graphExec) Destroy() error {
	const call = "cuGraphExecDestroy"
	if x.x == 0 {
		return gpu.Refuse(call, gpu.ErrClosed, "the executable graph was destroyed")
	}
	if err := x.c.usable(call); err != nil {
		return err
	}
	if rc := C.call_cuGraphExecDestroy(x.c.d.table, x.c.ctx, x.x); rc != 0 {
		if err := x.c.fail(rc, call, "a graph"); !gone(err) {
			return err
		}
	}
	x.x = 0
	x.entry.Release()
	return nil
}
