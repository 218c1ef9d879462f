package machine

// uses are the data steps, by their index in the trace, that touched a cell: the
// last that stored, the last that loaded since, and the last of those before it.
type uses struct{ store, load, before int32 }

var unused = uses{-1, -1, -1}

// order finds what a data step must follow when its bytes are moved. It is filled
// in by the shadows.
type order struct {
	cur   int32 // index of the step
	after int32 // the latest earlier step that it must follow, or -1
	// root is a step whose loads do not count, or -1; met says that there were some.
	root int32
	met  bool
}

// begin starts on a step.
func (o *order) begin(cur int) { *o = order{cur: int32(cur), after: -1, root: -1} }

func (o *order) load(u *uses, record bool) {
	o.after = max(o.after, u.store)
	if record && u.load != o.cur {
		u.before, u.load = u.load, o.cur
	}
}

func (o *order) store(u *uses, record bool) {
	load := u.load
	if load == o.cur { // what the step loads itself it may store
		load = u.before
	}
	if load >= 0 && load == o.root {
		o.met = true
		load = u.before
	}
	o.after = max(o.after, u.store, load)
	if record {
		*u = uses{o.cur, -1, -1}
	}
}

// move is one data step of the schedule. Moves of one batch do not depend on each
// other, but for copies of a result: these are done when the result is, and the
// move that makes it, the root, leads a list of them.
type move struct {
	agent, step uint32
	root        int32 // itself where it copies no result
	first, last int32 // of a root: the copies of its result, or -1
	next        int32
	bytes       int64
	dst         Ref
}

// source is looked at when the accesses of a step's sources have been recorded: it
// finds the root if the step copies a result of this batch.
func (m *Machine) source(s *Step) {
	o := &m.order
	if s.Kind != Copy || s.Srcs[0].Rank == All || s.Dst.Space == Line || int(o.after) < m.batch() {
		return
	}
	if from := &m.trace[o.after]; from.bytes == s.Bytes && holds(from.dst, s.Srcs[0]) {
		o.root, o.after = from.root, -1
	}
}

// holds reports whether what was stored to dst lies at r.
func holds(dst, r Ref) bool {
	if dst.Rank == All {
		dst.Rank = r.Rank
	}
	return dst == r
}

// batch is where the last batch begins.
func (m *Machine) batch() int {
	if n := len(m.batches); n > 0 {
		return m.batches[n-1]
	}
	return 0
}

// record appends a step to the trace: to its root if it has one, to the last batch
// if it follows none of that, or as the first of a new one.
func (m *Machine) record(a *agent, s *Step) {
	at := int32(len(m.trace))
	mv := move{agent: a.id, step: uint32(a.pc), root: at, first: -1, last: -1, next: -1, bytes: s.Bytes, dst: s.Dst}
	o := &m.order
	switch {
	case o.root >= 0 && int(o.after) < m.batch() && (!o.met || m.inPlace(o.root, s.Dst)):
		root := &m.trace[o.root]
		mv.root = o.root
		if root.first < 0 {
			root.first = at
		} else {
			m.trace[root.last].next = at
		}
		root.last = at
	case at == 0 || o.root >= 0 || int(o.after) >= m.batch() || s.usesLines():
		m.batches = append(m.batches, int(at))
	}
	m.trace = append(m.trace, mv)
}

// usesLines reports whether data of lines is moved. They have no shadow, so such a
// move begins a batch.
func (s *Step) usesLines() bool {
	if s.Dst.Space == Line {
		return true
	}
	for i := range s.Srcs {
		if s.Srcs[i].Space == Line {
			return true
		}
	}
	return false
}

// inPlace reports whether dst is exactly one of the sources of a move.
func (m *Machine) inPlace(root int32, dst Ref) bool {
	mv := &m.trace[root]
	a := &m.live()[mv.agent]
	s := &m.look
	s.reset()
	m.program.Step(s, a.rank, a.cta, int(mv.step))
	if dst.Rank == All {
		return false
	}
	for _, r := range s.Srcs {
		if (r.Rank == dst.Rank || r.Rank == All) && m.sameByte(r, dst) {
			return true
		}
	}
	return false
}

// sameByte reports whether two places on the rank of the second are one.
func (m *Machine) sameByte(r, s Ref) bool {
	mem := &m.mem[s.Rank]
	if r.isUser() && s.isUser() {
		return mem.key(r) == mem.key(s)
	}
	return r.Space == s.Space && r.Off == s.Off
}
