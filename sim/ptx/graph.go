package ptx

import (
	"slices"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

// capture is a graph being recorded.
type capture struct {
	origin *stream
	nodes  []node
	open   map[*stream]bool // streams that joined: true while not waited for
	ended  bool
}

// node is captured work, and the nodes that it comes after. One without work
// only joins others.
type node struct {
	op    op
	on    *vcontext
	after []int
}

// add captures an op of a stream.
func (k *capture) add(s *stream, o op) int {
	n := node{op: o, on: s.c, after: slices.Clone(s.joins)}
	if s.tail >= 0 {
		n.after = append(n.after, s.tail)
	}
	k.nodes = append(k.nodes, n)
	s.tail, s.joins = len(k.nodes)-1, nil
	return s.tail
}

// point is the node that stands for all that a stream has captured so far.
func (k *capture) point(s *stream) int {
	if s.tail < 0 || len(s.joins) > 0 {
		k.add(s, op{})
	}
	return s.tail
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
	s.capture, s.tail, s.joins = &capture{origin: s, open: map[*stream]bool{}}, -1, nil
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
	return &graph{c: s.c, nodes: k.nodes, entry: s.c.ledger.Add(gpu.KindGraph, nil)}, nil
}

type graph struct {
	c     *vcontext
	nodes []node
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
	return &graphExec{c: g.c, nodes: g.nodes, entry: g.c.ledger.Add(gpu.KindGraphExec, nil)}, nil
}

func (g *graph) Destroy() error { return g.c.book.Drop("cuGraphDestroy", &g.entry) }

type graphExec struct {
	c     *vcontext
	nodes []node
	entry *gpu.Entry // nil once destroyed
	turn  *replay    // under way: launches do not overlap
}

func (x *graphExec) Destroy() error { return x.c.book.Drop("cuGraphExecDestroy", &x.entry) }

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
	v.add(op{graph: &replay{x: x}})
	return nil
}

// replay is a launch of a graph. Every node runs as a stream of its own, which
// knows what the nodes before it did.
type replay struct {
	x     *graphExec
	parts []part
}

type part struct {
	s    *stream
	op   op
	done bool
}

// step goes on, and says whether all is done.
func (r *replay) step(s *stream) bool {
	d := s.c.d
	if r.parts == nil {
		if r.x.turn != nil {
			return false
		}
		r.x.turn = r
		r.parts = make([]part, len(r.x.nodes))
	}
	all := true
	for i := range r.parts {
		p, n := &r.parts[i], &r.x.nodes[i]
		ready := !p.done
		for _, a := range n.after {
			ready = ready && r.parts[a].done
		}
		if ready {
			p.done = r.run(s, p, n)
		}
		all = all && p.done
	}
	if all {
		var known vm.Known
		for i := range r.parts {
			if p := &r.parts[i]; p.s != nil {
				known = known.Join(p.s.known)
				d.spare(p.s)
			}
		}
		s.known = s.known.Join(known)
		r.x.turn = nil
	}
	return all
}

// run goes on with one node.
func (r *replay) run(s *stream, p *part, n *node) bool {
	d := s.c.d
	if p.s == nil {
		p.s, p.op = d.lend(n.on), n.op
		p.s.known = s.known
		for _, a := range n.after {
			p.s.known = p.s.known.Join(r.parts[a].s.known)
		}
	}
	if d.lost[n.on.dev] != nil || p.op.work == nil && p.op.data == nil {
		return true
	}
	done := p.s.work(&p.op)
	if !done && p.op.launch != nil {
		done, _ = p.op.launch.Done()
	}
	return done
}

// abandon ends a replay in a context that is lost.
func (r *replay) abandon() {
	if r.x.turn == r {
		r.x.turn = nil
	}
}

// lend gives a stream of the driver's own for a node of a graph.
func (d *driver) lend(c *vcontext) *stream {
	if n := len(d.idle); n > 0 {
		s := d.idle[n-1]
		d.idle = d.idle[:n-1]
		s.c = c
		return s
	}
	s := &stream{c: c, number: uint32(len(d.streams))}
	d.streams = append(d.streams, nil) // its number is taken
	return s
}

func (d *driver) spare(s *stream) { d.idle = append(d.idle, s) }
