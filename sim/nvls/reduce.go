package nvls

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/arith"
)

// Word is the result of one element: in are the patterns of all ranks, in rank
// order, and index is the element's place in the multicast range, which hidden
// directions depend on. It panics where op is not defined on d, or where the
// model's order names other ranks than there are.
func (m *Model) Word(d num.DType, op num.Op, in []uint64, index int64) uint64 {
	return m.element(d, op, len(in))(in, index)
}

// element is the scalar evaluation for a number of ranks, for one goroutine.
func (m *Model) element(d num.DType, op num.Op, ranks int) func(in []uint64, index int64) uint64 {
	switch {
	case !d.Float() || op != num.Sum:
		s := num.Scheme{Op: op, MinMax: m.minMaxRule()}
		if d.Float() && m.MinMaxZero == ZeroEither {
			return func(in []uint64, _ int64) uint64 { return firstZero(d, s, in) }
		}
		return func(in []uint64, _ int64) uint64 { return num.Eval(d, s, in) }
	case m.stepwise():
		return m.folder(m.rounder(d), ranks).sum
	}
	return m.summer(m.rounder(d)).sum
}

// firstZero is min or max where zeros are equal and the first one stays.
func firstZero(d num.DType, s num.Scheme, in []uint64) uint64 {
	best := num.Eval(d, s, in)
	if num.IsZero(d, best) {
		for _, b := range in {
			if num.IsZero(d, b) {
				return b
			}
		}
	}
	return best
}

// Reducer reduces ranges under one model.
type Reducer struct {
	model Model
	d     num.DType
	op    num.Op
	ranks int
	// scheme serves where arith has a kernel of the same bits, but for NaNs and
	// the sign of zeros, on the sources in that order.
	scheme *num.Scheme
	order  []int
	tidy   bool // NaNs and zeros need a second look
	// windowed is the scheme of nearly all of a window's sums.
	windowed *num.Scheme
	half     bool // nearly all sums are exact in f64
	// Workers is the most goroutines that share one range; 0 stands for
	// GOMAXPROCS.
	Workers int
}

// NewReducer readies reductions of d under op over a number of ranks. The error
// says what the model does not have.
func NewReducer(m Model, d num.DType, op num.Op, ranks int) (*Reducer, error) {
	if !op.ValidFor(d) || op == num.Prod || op == num.Avg {
		return nil, fmt.Errorf("a switch has no %v of %v", op, d)
	}
	if order, ok := m.Order.listed(); ok && len(order) != ranks && m.stepwise() {
		return nil, &Missing{fmt.Sprintf("order %s names %d ranks, the team has %d", m.Order, len(order), ranks), fmt.Sprintf("%d ranks; or another order, or a profile that was probed on %d", len(order), ranks)}
	}
	r := &Reducer{model: m, d: d, op: op, ranks: ranks}
	switch {
	case !d.Float() || op != num.Sum && m.MinMaxZero != ZeroEither:
		r.scheme = &num.Scheme{Op: op, MinMax: m.minMaxRule()}
	case op == num.Sum:
		r.planSum()
		r.planWindow()
		r.planHalf()
	}
	return r, nil
}

// planSum finds the scheme of arith that gives the same sums.
func (r *Reducer) planSum() {
	m := &r.model
	plain := !m.FTZIn && !m.FTZOut && (m.Overflow == "" || m.Overflow == OverflowIEEE) && m.Final == RNE && m.Step != RZ && r.ranks > 1
	acc := m.accumulator(r.d)
	switch {
	case !plain:
	case m.Kind == KindExact && m.ResultBits == 0:
		r.scheme = &num.Scheme{Op: num.Sum, Acc: num.AccExact}
	case m.stepwise() && (acc == r.d || acc == num.F32):
		r.scheme = &num.Scheme{Op: num.Sum}
		if acc != r.d {
			r.scheme.Acc = num.AccF32
		}
		if m.Kind == KindTree {
			r.scheme.Order = num.Balanced
		}
		r.order = m.Order.of(r.ranks, m.Seed)
	}
	r.tidy = r.scheme != nil && (!m.KeepNeg0 || r.d == num.F64 && !m.KeepNaN)
}

// Model is what the reducer was made with.
func (r *Reducer) Model() Model { return r.model }

// shareBytes is the least number of source bytes that is worth a goroutine.
const shareBytes = 64 << 10

// Fold sets every element of dst to the reduction of the elements of srcs at the
// same place, srcs[i] being rank i's, little-endian and all of one length; dst
// may be one of them. at is the place of the first byte in the multicast range.
func (r *Reducer) Fold(dst []byte, at int64, srcs ...[]byte) {
	if r.scheme != nil {
		r.fold(dst, srcs)
		return
	}
	size := r.d.Size()
	n := len(dst) / size
	workers := r.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = max(1, min(workers, len(dst)*len(srcs)/shareBytes))
	var wg sync.WaitGroup
	for w := range workers {
		lo, hi := n*w/workers*size, n*(w+1)/workers*size
		work := func() { r.part(dst, at, lo, hi, srcs) }
		switch {
		case r.half:
			work = func() { r.foldHalf(dst, at, lo, hi, srcs) }
		case r.windowed != nil:
			work = func() { r.foldWindow(dst, at, lo, hi, srcs) }
		}
		if w == workers-1 {
			work()
		} else {
			wg.Go(work)
		}
	}
	wg.Wait()
}

// fold is Fold by arith.
func (r *Reducer) fold(dst []byte, srcs [][]byte) {
	if r.order != nil {
		turned := make([][]byte, len(srcs))
		for i, rank := range r.order {
			turned[i] = srcs[rank]
		}
		srcs = turned
	}
	arith.Options{Workers: r.Workers}.Reduce(dst, r.d, *r.scheme, srcs...)
	if !r.tidy {
		return
	}
	f := formatOf(r.d)
	for i := 0; i < len(dst); i += r.d.Size() {
		switch b := num.Load(r.d, dst[i:]); {
		case b == f.sign && !r.model.KeepNeg0:
			num.Store(r.d, dst[i:], 0)
		case f.isNaN(b) && !r.model.KeepNaN:
			num.Store(r.d, dst[i:], f.nan)
		}
	}
}

// part reduces the bytes lo to hi.
func (r *Reducer) part(dst []byte, at int64, lo, hi int, srcs [][]byte) {
	eval := r.model.element(r.d, r.op, len(srcs))
	in := make([]uint64, len(srcs))
	size := r.d.Size()
	for i := lo; i < hi; i += size {
		for k, src := range srcs {
			switch size {
			case 2:
				in[k] = uint64(binary.LittleEndian.Uint16(src[i:]))
			case 4:
				in[k] = uint64(binary.LittleEndian.Uint32(src[i:]))
			default:
				in[k] = num.Load(r.d, src[i:])
			}
		}
		num.Store(r.d, dst[i:], eval(in, (at+int64(i))/int64(size)))
	}
}
