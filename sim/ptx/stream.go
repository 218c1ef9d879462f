package ptx

import (
	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gpubook"
	"example.com/tandem/sim/ptx/vm"
)

// op is queued work: one of a kernel, a copy or fill, a point in time, a wait,
// or a graph.
type op struct {
	work   *vm.Work
	data   func(g *vm.Agent) *vm.Fault
	record *record
	await  *record
	graph  *replay
	known  vm.Known // to the host when it was queued
	launch *vm.Launch
}

type stream struct {
	c         *vcontext
	entry     *gpu.Entry
	number    uint32
	seq       uint32
	known     vm.Known
	queue     []op
	last      uint64 // Machine.Steps that its work may reach, since it was interrupted; 0 is any
	destroyed bool
	capture   *capture
	tail      int // node of the capture that the next one comes after
	joins     []int
}

func (c *vcontext) NewStream(gpu.StreamOptions) (gpu.Stream, error) {
	leave, err := c.enter("cuStreamCreateWithPriority")
	if err != nil {
		return nil, err
	}
	defer leave()
	return c.newStream(), nil
}

func (c *vcontext) newStream() *stream {
	s := &stream{c: c, number: uint32(len(c.d.streams)), entry: c.ledger.Add(gpu.KindStream, nil)}
	c.d.streams = append(c.d.streams, s)
	return s
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
		s.capture.add(s, o)
		return
	}
	o.known = s.c.d.known
	s.queue = append(s.queue, o)
	s.c.d.advance()
}

// advance takes every stream as far as it goes without running kernels, and
// says whether any went anywhere. The lock is held.
func (d *driver) advance() (moved bool) {
	for again := true; again; {
		again = false
		for _, s := range d.streams {
			for s != nil && len(s.queue) > 0 && s.step(&s.queue[0]) {
				s.queue = s.queue[1:]
				again, moved = true, true
				if len(s.queue) == 0 {
					s.last = 0
				}
			}
		}
	}
	return moved
}

// step goes on with an op, and says whether it is done. In a context that is
// lost everything is.
func (s *stream) step(o *op) (done bool) {
	d := s.c.d
	lost := d.lost[s.c.dev] != nil
	s.known = s.known.Join(o.known)
	switch {
	case o.record != nil:
		o.record.done, o.record.at, o.record.known = true, d.m.Now(), s.known
		return true
	case o.await != nil:
		if o.await.done {
			s.known = s.known.Join(o.await.known)
		}
		return o.await.done || lost
	case lost:
		if o.graph != nil {
			o.graph.abandon()
		}
		return true
	case o.graph != nil:
		return o.graph.step(s)
	}
	return s.work(o)
}

// work goes on with a kernel, copy or fill.
func (s *stream) work(o *op) (done bool) {
	d := s.c.d
	if o.data != nil {
		s.seq++
		if fault := o.data(d.m.Agent(s.c.dev.ordinal, s.number, s.seq, s.known)); fault != nil {
			d.lose(s.c.dev, failure("cuMemcpyAsync", fault))
		}
		s.known = s.known.Finished(s.number, s.seq)
		return true
	}
	if o.launch == nil {
		s.seq++
		w := *o.work
		w.Stream, w.Seq, w.Known = s.number, s.seq, s.known
		o.launch = d.m.Start(w)
		return false
	}
	done, fault := o.launch.Done()
	if fault != nil {
		d.lose(s.c.dev, failure("kernel "+fault.Kernel, fault))
	}
	if done {
		s.known = s.known.Join(o.launch.Known())
	}
	return done
}

// failure is the error that a fault shows as.
func failure(call string, f *vm.Fault) *gpu.Error {
	return &gpu.Error{Call: call, Code: f.Code, Detail: f.Error(), Err: blamed{f.Code.Sentinel(), f.Blame()}}
}

// blamed is a sentinel of package gpu with the fault as collectives report it.
type blamed struct {
	sentinel error
	fault    *api.Fault
}

func (b blamed) Error() string   { return b.sentinel.Error() }
func (b blamed) Unwrap() []error { return []error{b.sentinel, b.fault} }

// lose costs a device's contexts.
func (d *driver) lose(v *device, why *gpu.Error) {
	if d.lost[v] == nil {
		d.lost[v] = why
	}
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
	s.c.d.advance()
	if lost := s.c.d.lost[s.c.dev]; lost != nil {
		return false, &gpu.Error{Call: "cuStreamQuery", Code: lost.Code, Detail: lost.Detail, Err: lost.Err}
	}
	if len(s.queue) > 0 {
		return false, nil
	}
	s.c.d.known = s.c.d.known.Join(s.known)
	return true, nil
}

// reach gives the region of bytes at p, or why they may not be named.
func (d *driver) reach(call string, p gpu.Ptr, n uint64) (*region, error) {
	r := d.find(p, n)
	if r == nil || r.Store == nil {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "%d bytes at %#x are in no allocation", n, uint64(p))
	}
	return r, nil
}

func (s *stream) Copy(dst, src gpu.Ptr, n uint64) error {
	leave, err := s.enter("cuMemcpyAsync")
	if err != nil {
		return err
	}
	defer leave()
	if n == 0 {
		return nil
	}
	to, err := s.c.d.reach("cuMemcpyAsync", dst, n)
	if err != nil {
		return err
	}
	from, err := s.c.d.reach("cuMemcpyAsync", src, n)
	if err != nil {
		return err
	}
	at, of := uint64(dst)-to.Base, uint64(src)-from.Base
	s.add(op{data: func(g *vm.Agent) *vm.Fault {
		if fault := g.Read(&from.Region, of, n); fault != nil {
			return fault
		}
		fault := g.Wrote(&to.Region, at, n)
		copy(to.Store.Data[at:at+n], from.Store.Data[of:of+n])
		return fault
	}})
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
	at := uint64(dst) - to.Base
	s.add(op{data: func(g *vm.Agent) *vm.Fault {
		fault := g.Wrote(&to.Region, at, n*size)
		gpubook.Fill(to.Store.Data[at:at+n*size], pattern)
		return fault
	}})
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
	s.c.d.advance()
	if len(s.queue) > 0 {
		return gpu.Refuse(call, gpu.ErrBusy, "the stream still has work")
	}
	if s.capture != nil {
		s.capture.end()
	}
	s.destroyed = true
	s.c.d.streams[s.number] = nil
	s.entry.Release()
	return nil
}
