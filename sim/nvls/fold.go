package nvls

import (
	"strconv"
	"strings"

	"example.com/tandem/api/num"
)

// folder adds two operands at a time, in the accumulator's format.
type folder struct {
	rounder
	acc   num.DType
	step  num.Scheme
	tree  bool
	ftzIn bool
	keep  bool  // NaNs stay as they are
	order []int // operand i is rank order[i]; nil is rank order
	vals  []uint64
	wide  format // of the accumulator
}

// accumulator is the format in which sums of d are kept.
func (m *Model) accumulator(d num.DType) num.DType {
	switch {
	case m.Acc == AccF32 && d != num.F64:
		return num.F32
	case m.Acc == AccF16 && d.Size() == 1:
		return num.F16
	}
	return d
}

func (m *Model) folder(r rounder, ranks int) *folder {
	f := &folder{rounder: r, acc: m.accumulator(r.d), step: num.Scheme{Op: num.Sum}, tree: m.Kind == KindTree, ftzIn: m.FTZIn, keep: m.KeepNaN, order: m.Order.of(ranks, m.Seed)}
	f.wide = formatOf(f.acc)
	if m.Step == RZ {
		f.step.Step = num.TowardZero
	}
	return f
}

// of is the order for a number of ranks; nil where it is rank order.
func (o Order) of(ranks int, seed uint64) []int {
	order := make([]int, ranks)
	for i := range order {
		order[i] = i
	}
	switch o {
	case "", OrderRank:
		return nil
	case OrderReverse:
		for i := range order {
			order[i] = ranks - 1 - i
		}
		return order
	case OrderPerm:
		for i := ranks - 1; i > 0; i-- {
			j := int(hash(seed, uint64(i)) % uint64(i+1))
			order[i], order[j] = order[j], order[i]
		}
		return order
	}
	listed, _ := o.listed()
	return listed
}

// listed reads an order that names the ranks; false if it is none, or no
// permutation.
func (o Order) listed() ([]int, bool) {
	parts := strings.Split(string(o), "-")
	order, seen := make([]int, len(parts)), make([]bool, len(parts))
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 || v >= len(parts) || seen[v] {
			return nil, false
		}
		order[i], seen[v] = v, true
	}
	return order, true
}

// widen is a term in the accumulator's format.
func (f *folder) widen(b uint64) uint64 {
	if f.ftzIn && b&(f.sign-1) < 1<<f.man {
		b &= f.sign
	}
	if f.acc != f.d {
		return num.Convert(f.acc, f.d, b, num.NearestEven)
	}
	return b
}

func (f *folder) join(a, b uint64) uint64 {
	return num.Eval(f.acc, f.step, []uint64{a, b})
}

// sum is the element of that index.
func (f *folder) sum(in []uint64, index int64) uint64 {
	f.vals = f.vals[:0]
	for i := range in {
		if f.order != nil {
			i = f.order[i]
		}
		f.vals = append(f.vals, f.widen(in[i]))
	}
	acc := f.vals[0]
	if f.tree {
		acc = f.fold(f.vals)
	} else {
		for _, v := range f.vals[1:] {
			acc = f.join(acc, v)
		}
	}
	return f.finish(acc, anyInfinite(&f.format, in), index)
}

// fold is the balanced tree: it splits at the greatest power of two below n.
func (f *folder) fold(vals []uint64) uint64 {
	if len(vals) == 1 {
		return vals[0]
	}
	mid := treeSplit(len(vals))
	return f.join(f.fold(vals[:mid]), f.fold(vals[mid:]))
}

func treeSplit(n int) int {
	p := 1
	for 2*p < n {
		p *= 2
	}
	return p
}

func anyInfinite(f *format, in []uint64) bool {
	for _, b := range in {
		if f.special(b) {
			return true
		}
	}
	return false
}

// finish rounds the accumulator into the element type. infinite says that an
// input was: then an infinite accumulator is no overflow.
func (f *folder) finish(acc uint64, infinite bool, index int64) uint64 {
	neg := acc&f.wide.sign != 0
	switch {
	case f.wide.isNaN(acc):
		if f.keep && f.acc == f.d {
			return acc
		}
		return f.nan
	case f.wide.special(acc):
		if infinite && f.d != num.E4M3 {
			return f.infinity | acc&f.wide.sign>>(f.wide.d.Bits()-f.d.Bits())
		}
		return f.overflown(neg)
	}
	mant, exp := f.wide.unpack(acc)
	if mant == 0 {
		return f.signed(neg, 0)
	}
	return f.round(total{neg: neg, lo: mant, exp: exp}, index)
}
