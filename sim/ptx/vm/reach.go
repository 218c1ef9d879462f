package vm

import (
	"encoding/binary"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/ptx/asm"
)

// Fault is how a kernel goes wrong.
type Fault struct {
	Code   gpu.Code
	What   string
	Kernel string
	Device int
	Rank   int // -1 where it is nobody's
	CTA    int // block of the rank, or of the launch
	Block  [3]uint32
	Thread [3]uint32
	Where  string // PTX line, instruction, source line
	Race   bool
}

// Kind is the class that reports have it in.
func (f *Fault) Kind() api.FaultKind {
	switch {
	case f.Race:
		return api.FaultRace
	case f.Code == gpu.MisalignedAddress:
		return api.FaultMisaligned
	case f.Code == gpu.IllegalAddress:
		return api.FaultAddress
	case f.Code == gpu.LaunchTimeout:
		return api.FaultHang
	}
	return api.FaultAssert
}

// Blame is the fault as collectives report it.
func (f *Fault) Blame() *api.Fault {
	rank := f.Rank
	if rank < 0 {
		rank = f.Device
	}
	return &api.Fault{Kind: f.Kind(), Rank: rank, CTA: f.CTA, Detail: f.Error()}
}

// Error is one line.
func (f *Fault) Error() string {
	who := fmt.Sprintf("device %d", f.Device)
	if f.Kernel == "" {
		return fmt.Sprintf("copy, %s: %s", who, f.What)
	}
	if f.Rank >= 0 {
		who = fmt.Sprintf("rank %d, device %d", f.Rank, f.Device)
	}
	return fmt.Sprintf("kernel %s, %s, block %v, thread %v at %s: %s", f.Kernel, who, f.Block, f.Thread, f.Where, f.What)
}

// fault ends everything on the thread's device.
func (t *thread) fault(code gpu.Code, format string, args ...any) {
	f := t.blame(code, fmt.Sprintf(format, args...))
	t.state = ended
	t.b.m.Kill(int(t.device), f)
}

// blame is a fault at the thread's instruction.
func (t *thread) blame(code gpu.Code, what string) *Fault {
	s := t.b.m.names[t.b.id]
	return &Fault{
		Code: code, What: what, Kernel: t.b.l.Kernel.Name, Device: int(t.device), Rank: int(s.rank), CTA: int(s.block),
		Block: t.b.ctaid, Thread: t.tid, Where: t.b.l.Kernel.where(t.pc),
	}
}

// find gives the store and offset that an access reaches; false after a fault.
func (t *thread) find(a *access, p uint64) (s *Store, off uint64, r *Region, ok bool) {
	total := uint64(a.n * a.size)
	space := a.space
	if space == asm.Generic && p&windowMask != 0 {
		space = map[uint64]asm.Space{paramWindow: asm.Param, sharedWindow: asm.Shared, localWindow: asm.Local}[p&windowMask]
		p &^= windowMask
	}
	if p%total != 0 {
		t.fault(gpu.MisalignedAddress, "%d bytes at %#x, which is no multiple of %d", total, p, total)
		return nil, 0, nil, false
	}
	switch space {
	case asm.Shared:
		s = t.b.shared
	case asm.Local:
		if t.local == nil {
			t.local = NewStore(uint64(t.b.l.Kernel.Local), int(t.device), false)
		}
		s = t.local
	default:
		if r = t.last; r == nil || r.Freed || p < r.Base || total > r.Bytes || p-r.Base > r.Bytes-total {
			r = t.b.m.Find(p, total)
		}
		switch {
		case r == nil:
			t.fault(gpu.IllegalAddress, "%d bytes at %#x, %s", total, p, t.b.m.nearest(p))
			return nil, 0, nil, false
		case r.Devices != nil && !r.Devices(int(t.device)):
			t.fault(gpu.IllegalAddress, "%#x is memory to which device %d has no access", p, t.device)
			return nil, 0, nil, false
		case (r.Parts != nil) != (a.what >= multiLoad):
			t.fault(gpu.IllegalAddress, "%#x: multimem instructions, and only they, use multicast addresses", p)
			return nil, 0, nil, false
		}
		t.last = r
		return r.Store, p - r.Base, r, true
	}
	if s == nil || p > uint64(len(s.Data)) || total > uint64(len(s.Data))-p {
		n := 0
		if s != nil {
			n = len(s.Data)
		}
		t.fault(gpu.IllegalAddress, "%d bytes at %#x of %v memory, which has %d", total, p, space, n)
		return nil, 0, nil, false
	}
	return s, p, nil, true
}

// memory executes an access; false after a fault.
func (t *thread) memory(in *instr, a *access) bool {
	p := t.value(&in.a) + uint64(a.offset)
	if a.space == asm.Param || a.space == asm.Generic && p&windowMask == paramWindow {
		return t.parameter(in, a, p&^windowMask)
	}
	s, off, r, ok := t.find(a, p)
	if !ok {
		return false
	}
	if a.what >= multiLoad {
		return t.multicast(in, a, r, off)
	}
	if a.release && a.what != load {
		// What came before is released, and the write itself comes after.
		t.ev.n++
	}
	if (a.what == load || a.what == rmw) && s.init != nil && !t.wasWritten(s, off, a) {
		t.fault(gpu.IllegalAddress, "%d bytes at %#x were never written", a.n*a.size, p)
		return false
	}
	// A strong access is one an element, a weak one is as good as one in all.
	if !a.strong && !t.checked(s, off, a, 0, a.n*a.size) {
		return false
	}
	for i := range a.n {
		at := off + uint64(i*a.size)
		if a.strong && !t.checked(s, at, a, 0, a.size) {
			return false
		}
		switch a.what {
		case load:
			t.loaded(in, a, i, s, at)
		case store:
			v := t.value(&in.vec[i])
			s.wrote(at, uint64(a.size))
			if a.strong {
				t.strongWrite(s, at, a, v)
			} else {
				s.forget(at, uint64(a.size))
				s.store(at, a.size, v)
			}
		default:
			s.wrote(at, uint64(a.size))
			old := t.strongRead(s, at, a)
			t.strongWrite(s, at, a, a.update(old, t.value(&in.b), t.value(&in.c)))
			if len(in.vec) > 0 {
				t.put(in, a, 0, old)
			}
		}
	}
	switch {
	case a.what != load:
		t.acted()
	case a.strong:
		t.polled = p
		t.look(64)
		if s.Device < 0 {
			t.outside |= looksAtHost
		}
	default:
		t.look(1)
		if s.Device < 0 {
			t.outside |= looksAtHost
		}
	}
	return true
}

// wasWritten: lines are loaded rounded out, so of a vector only the whole must
// not be all new.
func (t *thread) wasWritten(s *Store, off uint64, a *access) bool {
	return s.written(off, uint64(a.n*a.size))
}

// checked looks for races of size bytes.
func (t *thread) checked(s *Store, at uint64, a *access, alias int16, size int) bool {
	t.ev.n++
	x := mark{what: a.what, strong: a.strong, scope: a.scope, alias: alias, off: at, size: uint8(size), line: t.pc}
	if a.constant {
		x.alias = -1
	}
	bad := t.touch(s, x)
	if bad == nil {
		return true
	}
	return t.raced(x, bad)
}

// raced says whether the thread may go on after a race. It is apart from what
// every access goes through, so that marks stay off the heap there.
func (t *thread) raced(x mark, bad *mark) bool {
	x.event, x.device, x.kernel = t.ev, t.device, t.kernel
	m := t.b.m
	describe := func() *Fault {
		f := t.blame(gpu.LaunchFailed, fmt.Sprintf("race: %s, and %s, are not ordered by causality", m.describe(&x), m.describe(bad)))
		f.Race = true
		return f
	}
	if told := m.opts.Race; told != nil && !told(describe) {
		return true
	}
	t.state = ended
	m.Kill(int(t.device), describe())
	return false
}

func (t *thread) loaded(in *instr, a *access, i int, s *Store, at uint64) {
	var v uint64
	if a.strong {
		v = t.strongRead(s, at, a)
	} else {
		v = s.load(at, a.size)
	}
	t.put(in, a, i, v)
}

// put writes element i to its register.
func (t *thread) put(in *instr, a *access, i int, v uint64) {
	if w := in.vec[i].imm; w != 0 {
		v = uint64(signed(a.typ, v)) & w
	}
	t.write(in.vec[i].reg, v)
}

// parameter loads from the arguments of the launch.
func (t *thread) parameter(in *instr, a *access, p uint64) bool {
	args := t.b.l.Args
	total := uint64(a.n * a.size)
	if a.what != load || p > uint64(len(args)) || total > uint64(len(args))-p {
		t.fault(gpu.IllegalAddress, "%d bytes at %d of the parameters, which have %d and cannot be written", total, p, len(args))
		return false
	}
	for i := range a.n {
		var b [8]byte
		copy(b[:a.size], args[p+uint64(i*a.size):])
		t.put(in, a, i, binary.LittleEndian.Uint64(b[:]))
	}
	return true
}

// Sum adds patterns of a format in the switch. The element lies place bytes
// behind the start of the multicast range.
type Sum func(d num.DType, in []uint64, place uint64) uint64

func exactSum(d num.DType, in []uint64, _ uint64) uint64 {
	var x num.Exact
	for _, b := range in {
		x.Add(d, b)
	}
	return x.Round(d, num.NearestEven)
}

// multicast executes a multimem instruction on all parts of an address.
func (t *thread) multicast(in *instr, a *access, r *Region, off uint64) bool {
	if a.release {
		t.ev.n++
	}
	values := make([]uint64, len(r.Parts))
	for i := range a.n {
		at := off + uint64(i*a.size)
		for k, s := range r.Parts {
			if a.what != multiStore && !s.written(at, uint64(a.size)) {
				t.fault(gpu.IllegalAddress, "%d bytes at %#x were never written on device %d", a.size, r.Base+at, s.Device)
				return false
			}
			if !t.checked(s, at, a, 1, a.size) {
				return false
			}
			switch a.what {
			case multiLoad:
				if a.strong {
					values[k] = t.strongRead(s, at, a)
				} else {
					values[k] = s.load(at, a.size)
				}
			case multiStore, multiRed:
				v := t.value(&in.vec[i])
				if a.what == multiRed {
					v = a.update(s.load(at, a.size), v, 0)
				}
				s.wrote(at, uint64(a.size))
				if a.strong {
					t.strongWrite(s, at, a, v)
				} else {
					s.forget(at, uint64(a.size))
					s.store(at, a.size, v)
				}
			}
		}
		if a.what == multiLoad {
			t.put(in, a, i, t.b.m.combine(a, values, at))
		}
	}
	if a.what == multiLoad {
		t.look(64)
	} else {
		t.acted()
	}
	return true
}

// combine is what the switch makes of the parts' values at a place.
func (m *Machine) combine(a *access, values []uint64, at uint64) uint64 {
	if a.reduce != nil {
		v := values[0]
		for _, x := range values[1:] {
			v = a.reduce(v, x, 0)
		}
		return v
	}
	sum := m.opts.Sum
	if sum == nil {
		sum = exactSum
	}
	if !a.packed {
		return sum(a.sum, values, at)
	}
	lo, hi := make([]uint64, len(values)), make([]uint64, len(values))
	for i, v := range values {
		lo[i], hi[i] = v&0xFFFF, v>>16
	}
	return sum(a.sum, lo, at) | sum(a.sum, hi, at+2)<<16
}
