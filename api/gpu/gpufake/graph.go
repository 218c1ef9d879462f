package gpufake

import (
	"slices"
	"sync"

	"example.com/tandem/api/gpu"
)

// capture is a graph being recorded.
type capture struct {
	origin *stream
	ops    []op
	open   map[*stream]bool // streams that joined: true while not waited for
	ended  bool
}

// end lets all streams go. The lock is held.
func (k *capture) end() {
	k.ended = true
	k.origin.capture = nil
	for s := range k.open {
		s.capture = nil
	}
}

func (s *stream) BeginCapture() error {
	leave, err := s.enter("cuStreamBeginCapture")
	if err != nil {
		return err
	}
	defer leave()
	if s.capture != nil {
		return gpu.Refuse("cuStreamBeginCapture", gpu.ErrCapture, "the stream captures already")
	}
	s.capture, s.captured = &capture{origin: s, open: map[*stream]bool{}}, 0
	return nil
}

func (s *stream) EndCapture() (gpu.Graph, error) {
	const call = "cuStreamEndCapture"
	leave, err := s.enter(call)
	if err != nil {
		return nil, err
	}
	defer leave()
	k := s.capture
	if k == nil || k.origin != s {
		return nil, gpu.Refuse(call, gpu.ErrCapture, "no capture was begun on the stream")
	}
	k.end()
	for _, open := range k.open {
		if open {
			return nil, &gpu.Error{Call: call, Code: gpu.CaptureUnjoined}
		}
	}
	return &graph{c: s.c, ops: k.ops, entry: s.c.ledger.Add(gpu.KindGraph, nil)}, nil
}

type graph struct {
	c     *fakeContext
	ops   []op
	entry *gpu.Entry // nil once destroyed
}

func (g *graph) Instantiate() (gpu.GraphExec, error) {
	leave, err := g.c.enter("cuGraphInstantiate")
	if err != nil {
		return nil, err
	}
	defer leave()
	if g.entry == nil {
		return nil, gpu.Refuse("cuGraphInstantiate", gpu.ErrClosed, "the graph was destroyed")
	}
	return &graphExec{c: g.c, ops: slices.Clone(g.ops), entry: g.c.ledger.Add(gpu.KindGraphExec, nil)}, nil
}

func (g *graph) Destroy() error { return g.c.book.Drop("cuGraphDestroy", &g.entry) }

func (x *graphExec) Destroy() error { return x.c.book.Drop("cuGraphExecDestroy", &x.entry) }

type graphExec struct {
	c     *fakeContext
	ops   []op
	entry *gpu.Entry // nil once destroyed
	turn  sync.Mutex // launches do not overlap
}

func (x *graphExec) on(call string, s gpu.Stream) (*stream, func(), error) {
	v, ok := s.(*stream)
	if !ok || v.c.d != x.c.d {
		return nil, nil, gpu.Refuse(call, gpu.ErrInvalid, "the stream is another driver's")
	}
	leave, err := v.enter(call)
	if err != nil {
		return nil, nil, err
	}
	if x.entry == nil {
		leave()
		return nil, nil, gpu.Refuse(call, gpu.ErrClosed, "the executable graph was destroyed")
	}
	return v, leave, nil
}

func (x *graphExec) Upload(s gpu.Stream) error {
	_, leave, err := x.on("cuGraphUpload", s)
	if err != nil {
		return err
	}
	leave()
	return nil
}

func (x *graphExec) Launch(s gpu.Stream) error {
	v, leave, err := x.on("cuGraphLaunch", s)
	if err != nil {
		return err
	}
	defer leave()
	d := v.c.d
	v.add(op{run: func() *gpu.Error {
		x.turn.Lock()
		defer x.turn.Unlock()
		for _, o := range x.ops {
			if o.run != nil {
				if fault := o.run(); fault != nil {
					return fault
				}
			}
			if o.after != nil {
				d.mu.Lock()
				o.after()
				d.mu.Unlock()
			}
		}
		return nil
	}})
	return nil
}
