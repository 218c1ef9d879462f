package nvls

import (
	"fmt"
	"slices"

	"example.com/tandem/api/num"
)

// maxAllowed is the most ranks for which all orders of a fold are tried.
const maxAllowed = 10

// Allowed lists, ascending, every result that the model may give for the inputs
// of one element, whatever an unknown order or a hidden direction is. The error
// says that there are too many orders.
func (m *Model) Allowed(d num.DType, op num.Op, in []uint64) ([]uint64, error) {
	var out []uint64
	switch {
	case d.Float() && op != num.Sum && m.MinMaxZero == ZeroEither:
		out = m.eitherZero(d, op, in)
	case !d.Float() || op != num.Sum:
		out = []uint64{m.Word(d, op, in, 0)}
	default:
		for _, last := range m.lasts() {
			with := *m
			with.Final = last
			sums, err := with.orders(d, in)
			if err != nil {
				return nil, err
			}
			out = append(out, sums...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// lasts are the last roundings that hidden state may choose from.
func (m *Model) lasts() []Final {
	if m.Final == DIR || m.Final == Adversarial {
		return []Final{RZ, RA}
	}
	return []Final{m.Final}
}

// eitherZero is min or max where a zero may be either, if both were given.
func (m *Model) eitherZero(d num.DType, op num.Op, in []uint64) []uint64 {
	best := num.Eval(d, num.Scheme{Op: op, MinMax: m.minMaxRule()}, in)
	out := []uint64{best}
	if num.IsZero(d, best) {
		for _, b := range in {
			if num.IsZero(d, b) {
				out = append(out, b)
			}
		}
	}
	return out
}

// orders are the sums under all orders of the operands that are possible.
func (m *Model) orders(d num.DType, in []uint64) ([]uint64, error) {
	if !m.stepwise() || !m.Unordered {
		return []uint64{m.Word(d, num.Sum, in, 0)}, nil
	}
	if len(in) > maxAllowed {
		return nil, fmt.Errorf("%d operands have too many orders: at most %d are tried", len(in), maxAllowed)
	}
	f := m.folder(m.rounder(d), len(in))
	vals := make([]uint64, len(in))
	for i, b := range in {
		vals[i] = f.widen(b)
	}
	o := &orderings{f: f, vals: vals, memo: map[uint32][]uint64{}}
	infinite := anyInfinite(&f.format, in)
	var out []uint64
	for _, acc := range o.reach(1<<len(in) - 1) {
		out = append(out, f.finish(acc, infinite, 0))
	}
	return out, nil
}

// orderings finds what subsets of the operands can add up to.
type orderings struct {
	f    *folder
	vals []uint64
	memo map[uint32][]uint64
}

func (o *orderings) reach(set uint32) []uint64 {
	if known, ok := o.memo[set]; ok {
		return known
	}
	members := membersOf(set)
	if len(members) == 1 {
		return []uint64{o.vals[members[0]]}
	}
	first := len(members) - 1
	if o.f.tree {
		first = treeSplit(len(members))
	}
	var out []uint64
	for _, a := range subsets(set, first) {
		for _, x := range o.reach(a) {
			for _, y := range o.reach(set &^ a) {
				out = append(out, o.f.join(x, y))
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	o.memo[set] = out
	return out
}

func membersOf(set uint32) []int {
	var out []int
	for i := range 32 {
		if set>>i&1 == 1 {
			out = append(out, i)
		}
	}
	return out
}

// subsets are those of set with k members.
func subsets(set uint32, k int) []uint32 {
	var out []uint32
	for sub := set; sub > 0; sub = (sub - 1) & set {
		if len(membersOf(sub)) == k {
			out = append(out, sub)
		}
	}
	return out
}
