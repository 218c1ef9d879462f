package hwtest

import (
	"time"

	"example.com/tandem/api/gpu"
)

// stream does its work as it is queued, or records it.
type stream struct {
	c       *gpuContext
	entry   *gpu.Entry
	capture bool
	work    []func()
}

func (s *stream) do(call string, f func()) error {
	if err := s.c.d.enter(call); err != nil {
		return err
	}
	if s.capture {
		s.work = append(s.work, f)
	} else {
		f()
	}
	return nil
}

// Native gives a handle for Driver.Queue, and the device's number plus one for
// the context.
func (s *stream) Native() (handle, context uintptr, err error) {
	s.c.d.mu.Lock()
	defer s.c.d.mu.Unlock()
	s.c.d.native = append(s.c.d.native, s)
	return uintptr(len(s.c.d.native)), uintptr(s.c.dev.i + 1), nil
}

// Queue queues work on a stream by its handle, as another library of the process
// would.
func (d *Driver) Queue(handle uintptr, f func()) error {
	d.mu.Lock()
	s := d.native[handle-1]
	d.mu.Unlock()
	return s.do("native", f)
}

func (s *stream) Query() (bool, error) {
	if err := s.c.d.enter("cuStreamQuery"); err != nil {
		return false, err
	}
	return true, nil
}

func (s *stream) Launch(l gpu.Launch) error {
	if err := l.Check(s.c.dev.Info()); err != nil {
		return err
	}
	f := l.Function.(*function)
	kept := l
	kept.Args = new(gpu.Args)
	*kept.Args = *l.Args
	return s.do("cuLaunchCooperativeKernel", func() {
		s.c.d.note("%d: %s grid %v block %v cooperative %v", s.c.dev.i, f.name, l.Grid, l.Block, l.Cooperative)
		f.run(s.c.d, s.c.dev.i, kept)
	})
}

func (s *stream) reach(p gpu.Ptr, n uint64) ([]byte, error) {
	b := s.c.d.Bytes(p)
	if uint64(len(b)) < n {
		return nil, gpu.Refuse("cuMemcpyAsync", gpu.ErrInvalid, "%d bytes at %#x reach beyond an allocation", n, uint64(p))
	}
	return b[:n], nil
}

func (s *stream) Copy(dst, src gpu.Ptr, n uint64) error {
	to, err := s.reach(dst, n)
	if err != nil {
		return err
	}
	from, err := s.reach(src, n)
	if err != nil {
		return err
	}
	return s.do("cuMemcpyAsync", func() { copy(to, from) })
}

func (s *stream) Set8(dst gpu.Ptr, value uint8, n uint64) error {
	to, err := s.reach(dst, n)
	if err != nil {
		return err
	}
	return s.do("cuMemsetD8Async", func() { fillBytes(to, value) })
}

func fillBytes(b []byte, v uint8) {
	for i := range b {
		b[i] = v
	}
}

func (s *stream) Set32(dst gpu.Ptr, value uint32, n uint64) error {
	return gpu.Refuse("cuMemsetD32Async", gpu.ErrUnsupported, "the stand-in has it not")
}

// event is a moment of virtual time.
type event struct {
	d      *Driver
	timing bool
	at     time.Duration
	entry  *gpu.Entry
}

func (e *event) Query() (bool, error) { return true, nil }

func (e *event) Since(earlier gpu.Event) (time.Duration, error) {
	from := earlier.(*event)
	if !e.timing || !from.timing {
		return 0, gpu.Refuse("cuEventElapsedTime", gpu.ErrInvalid, "an event was made without timing")
	}
	return e.at - from.at, nil
}

func (e *event) Destroy() error {
	e.entry.Release()
	return nil
}

func (s *stream) record(v gpu.Event) error {
	e := v.(*event)
	return s.do("cuEventRecord", func() { e.at = clock{s.c.d}.Now() })
}

// Record in a capture only orders, so that a graph does not set the event.
func (s *stream) Record(e gpu.Event) error {
	if s.capture {
		return nil
	}
	return s.record(e)
}

// RecordNode sets the event at each launch of the graph.
func (s *stream) RecordNode(e gpu.Event) error {
	if !s.capture {
		return gpu.Refuse("cuEventRecordWithFlags", gpu.ErrCapture, "no capture is under way")
	}
	return s.record(e)
}

func (s *stream) WaitEvent(gpu.Event) error { return nil }

func (s *stream) BeginCapture() error {
	if err := s.c.d.enter("cuStreamBeginCapture"); err != nil {
		return err
	}
	s.capture, s.work = true, nil
	return nil
}

func (s *stream) EndCapture() (gpu.Graph, error) {
	if !s.capture {
		return nil, gpu.Refuse("cuStreamEndCapture", gpu.ErrCapture, "no capture is under way")
	}
	s.capture = false
	if err := s.c.d.enter("cuStreamEndCapture"); err != nil {
		return nil, err
	}
	return &graph{s.c.d, s.work, s.c.d.ledger.Add(gpu.KindGraph, nil)}, nil
}

func (s *stream) Destroy() error {
	s.entry.Release()
	return nil
}

type graph struct {
	d     *Driver
	work  []func()
	entry *gpu.Entry
}

func (g *graph) Instantiate() (gpu.GraphExec, error) {
	if err := g.d.enter("cuGraphInstantiate"); err != nil {
		return nil, err
	}
	return &exec{g.d, g.work, g.d.ledger.Add(gpu.KindGraphExec, nil)}, nil
}

func (g *graph) Destroy() error {
	g.entry.Release()
	return nil
}

type exec struct {
	d     *Driver
	work  []func()
	entry *gpu.Entry
}

func (e *exec) Upload(gpu.Stream) error { return e.d.enter("cuGraphUpload") }

func (e *exec) Launch(gpu.Stream) error {
	if err := e.d.enter("cuGraphLaunch"); err != nil {
		return err
	}
	for _, f := range e.work {
		f()
	}
	return nil
}

func (e *exec) Destroy() error {
	e.entry.Release()
	return nil
}
