package gpufake

import (
	"time"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gpubook"
)

// op is queued work. run runs it without the lock held; after, if given, is
// called with the lock held, also where run is left out since the context is
// lost.
type op struct {
	run   func() *gpu.Error
	after func()
}

type stream struct {
	c         *fakeContext
	entry     *gpu.Entry
	queue     []op
	running   bool
	destroyed bool
	capture   *capture
	captured  int // ops of this stream in the capture
}

func (c *fakeContext) NewStream(gpu.StreamOptions) (gpu.Stream, error) {
	leave, err := c.enter("cuStreamCreateWithPriority")
	if err != nil {
		return nil, err
	}
	defer leave()
	s := &stream{c: c, entry: c.ledger.Add(gpu.KindStream, nil)}
	c.streams[s] = true
	return s, nil
}

func (s *stream) enter(call string) (leave func(), err error) {
	if leave, err = s.c.enter(call); err != nil {
		return nil, err
	}
	if s.destroyed {
		leave()
		return nil, gpu.Refuse(call, gpu.ErrClosed, "the stream was destroyed")
	}
	return leave, nil
}

// add queues an op, or captures it. The lock is held.
func (s *stream) add(o op) {
	if s.capture != nil {
		s.capture.ops = append(s.capture.ops, o)
		s.captured++
		return
	}
	s.queue = append(s.queue, o)
	if !s.running {
		s.running = true
		go s.drain()
	}
}

// drain runs what is queued, in order, and ends when nothing is.
func (s *stream) drain() {
	d := s.c.d
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(s.queue) > 0 {
		o := s.queue[0]
		if o.run != nil && d.lost[s.c.dev] == nil {
			d.mu.Unlock()
			fault := o.run()
			d.mu.Lock()
			if fault != nil && d.lost[s.c.dev] == nil {
				d.lost[s.c.dev] = fault
			}
		}
		if o.after != nil {
			o.after()
		}
		s.queue = s.queue[1:]
	}
	s.running = false
}

func (s *stream) Query() (bool, error) {
	leave, err := s.enter("cuStreamQuery")
	if err != nil {
		return false, err
	}
	defer leave()
	if s.capture != nil {
		return false, gpu.Refuse("cuStreamQuery", gpu.ErrCapture, "the stream is capturing")
	}
	return len(s.queue) == 0, nil
}

// reach gives the bytes at p, or why they may not be named. The lock is held.
func (d *driver) reach(call string, p gpu.Ptr, n uint64) ([]byte, error) {
	r := d.find(p, n)
	if r == nil {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "%d bytes at %#x are in no allocation", n, uint64(p))
	}
	return r.data[p-r.Base:][:n], nil
}

func (s *stream) Copy(dst, src gpu.Ptr, n uint64) error {
	leave, err := s.enter("cuMemcpyAsync")
	if err != nil || n == 0 {
		if err == nil {
			leave()
		}
		return err
	}
	defer leave()
	to, err := s.c.d.reach("cuMemcpyAsync", dst, n)
	if err != nil {
		return err
	}
	from, err := s.c.d.reach("cuMemcpyAsync", src, n)
	if err != nil {
		return err
	}
	s.add(op{after: func() { copy(to, from) }})
	return nil
}

// set queues the filling of n words of a pattern.
func (s *stream) set(call string, dst gpu.Ptr, pattern []byte, n uint64) error {
	leave, err := s.enter(call)
	if err != nil {
		return err
	}
	defer leave()
	size := uint64(len(pattern))
	if n == 0 {
		return nil
	}
	if err := gpubook.CheckFill(call, dst, size, n); err != nil {
		return err
	}
	to, err := s.c.d.reach(call, dst, n*size)
	if err != nil {
		return err
	}
	s.add(op{after: func() { gpubook.Fill(to, pattern) }})
	return nil
}

func (s *stream) Set8(dst gpu.Ptr, v uint8, n uint64) error {
	return s.set("cuMemsetD8Async", dst, []byte{v}, n)
}

func (s *stream) Set32(dst gpu.Ptr, v uint32, n uint64) error {
	return s.set("cuMemsetD32Async", dst, []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}, n)
}

func (s *stream) Destroy() error {
	const call = "cuStreamDestroy"
	leave, err := s.c.release(call)
	if err != nil {
		return err
	}
	defer leave()
	if s.destroyed {
		return gpu.Refuse(call, gpu.ErrClosed, "the stream was destroyed")
	}
	if len(s.queue) > 0 {
		return gpu.Refuse(call, gpu.ErrBusy, "the stream still has work")
	}
	if s.capture != nil {
		s.capture.end()
	}
	s.destroyed = true
	delete(s.c.streams, s)
	s.entry.Release()
	return nil
}

// event is a point in a stream; in a capture, a point in that.
type event struct {
	c         *fakeContext
	entry     *gpu.Entry
	timing    bool
	destroyed bool
	last      *record
	capture   *capture // that the last Record was part of
	from      *stream
	mark      int // captured ops of from at that time
}

// record is one Record of an event.
type record struct {
	done chan struct{}
	at   time.Duration
}

func (c *fakeContext) NewEvent(o gpu.EventOptions) (gpu.Event, error) {
	leave, err := c.enter("cuEventCreate")
	if err != nil {
		return nil, err
	}
	defer leave()
	return &event{c: c, timing: o.Timing, entry: c.ledger.Add(gpu.KindEvent, nil)}, nil
}

func (d *driver) event(call string, e gpu.Event) (*event, error) {
	v, ok := e.(*event)
	switch {
	case !ok || v.c.d != d:
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "the event is another driver's")
	case v.destroyed:
		return nil, gpu.Refuse(call, gpu.ErrClosed, "the event was destroyed")
	}
	return v, nil
}

func (s *stream) Record(e gpu.Event) error {
	leave, err := s.enter("cuEventRecord")
	if err != nil {
		return err
	}
	defer leave()
	v, err := s.c.d.event("cuEventRecord", e)
	if err != nil {
		return err
	}
	v.capture, v.from, v.mark = s.capture, s, s.captured
	if s.capture != nil {
		return nil
	}
	r := &record{done: make(chan struct{})}
	v.last = r
	s.add(op{after: func() {
		r.at = s.c.d.clock.Now()
		close(r.done)
	}})
	return nil
}

func (s *stream) WaitEvent(e gpu.Event) error {
	leave, err := s.enter("cuStreamWaitEvent")
	if err != nil {
		return err
	}
	defer leave()
	v, err := s.c.d.event("cuStreamWaitEvent", e)
	if err != nil {
		return err
	}
	switch k := v.capture; {
	case k != nil && k.ended:
	case k != nil && s.capture == nil:
		s.capture, s.captured = k, 0
		k.open[s] = true
	case k != nil && s.capture != k:
		return &gpu.Error{Call: "cuStreamWaitEvent", Code: gpu.CaptureMerge}
	case k != nil:
		// Captured ops are replayed in their order here, which is one that
		// the graph allows.
		k.open[v.from] = v.mark != v.from.captured
	case s.capture != nil:
		return &gpu.Error{Call: "cuStreamWaitEvent", Code: gpu.CaptureIsolation}
	case v.last != nil:
		done := v.last.done
		s.add(op{run: func() *gpu.Error { <-done; return nil }})
	}
	return nil
}

func (v *event) Query() (bool, error) {
	leave, err := v.c.enter("cuEventQuery")
	if err != nil {
		return false, err
	}
	defer leave()
	if _, err := v.c.d.event("cuEventQuery", v); err != nil {
		return false, err
	}
	if v.capture != nil && !v.capture.ended {
		return false, &gpu.Error{Call: "cuEventQuery", Code: gpu.CapturedEvent}
	}
	return v.reached(), nil
}

func (v *event) reached() bool {
	if v.last == nil {
		return true
	}
	select {
	case <-v.last.done:
		return true
	default:
		return false
	}
}

func (v *event) Since(earlier gpu.Event) (time.Duration, error) {
	const call = "cuEventElapsedTime"
	leave, err := v.c.enter(call)
	if err != nil {
		return 0, err
	}
	defer leave()
	from, err := v.c.d.event(call, earlier)
	if err != nil {
		return 0, err
	}
	if !v.timing || !from.timing || v.last == nil || from.last == nil {
		return 0, gpu.Refuse(call, gpu.ErrInvalid, "an event without timing, or never recorded")
	}
	if !v.reached() || !from.reached() {
		return 0, &gpu.Error{Call: call, Code: gpu.NotReady}
	}
	return v.last.at - from.last.at, nil
}

func (v *event) Destroy() error {
	leave, err := v.c.release("cuEventDestroy")
	if err != nil {
		return err
	}
	defer leave()
	if _, err := v.c.d.event("cuEventDestroy", v); err != nil {
		return err
	}
	v.destroyed = true
	v.entry.Release()
	return nil
}
