package probe

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// level is a pair of magnitudes of which the smaller is lost beside the greater
// in a certain accumulator.
type level struct {
	acc  string
	m, u int // exponents
}

func levels(d api.DType) []level {
	switch d {
	case api.BF16:
		return []level{{"same", 15, 0}, {"f32", 30, 0}}
	case api.F16:
		return []level{{"same", 15, 0}, {"f32", 15, -11}}
	case api.F32:
		return []level{{"same", 30, 0}}
	}
	return []level{{"same", 60, 0}}
}

// structure finds the order, the tree and the accumulator by masks.
func (f *fit) structure() error {
	f.m.Kind = "exact" // until a window is found
	for _, l := range levels(f.d) {
		var vectors [][]uint64
		for i := range f.ranks {
			for j := range f.ranks {
				if i != j {
					v := make([]uint64, f.ranks)
					for k := range v {
						v[k] = f.power(l.u)
					}
					v[i], v[j] = f.power(l.m), f.neg(f.power(l.m))
					vectors = append(vectors, v)
				}
			}
		}
		out, err := f.samples(vectors)
		if err != nil {
			return err
		}
		kept, none := f.counts(out, l)
		switch {
		case kept:
			f.say("masks of 2^%d over terms of 2^%d: nothing is lost", l.m, l.u)
			continue
		case none:
			f.say("masks of 2^%d over terms of 2^%d: all terms are lost, whatever the pair: a fused sum whose window ends", l.m, l.u)
			return nil
		}
		return f.grow(out, l)
	}
	return nil
}

// count is how many terms outside the masked pair survived; false if the result
// is no such number.
func (f *fit) count(b uint64, l level) (int, bool) {
	x := math.Ldexp(num.Decode(f.d, b), -l.u)
	return int(x), x == math.Trunc(x) && x >= 0 && x <= float64(f.ranks-2)
}

// counts reports whether all terms survived every mask on every rank, and
// whether none did.
func (f *fit) counts(out [][][]uint64, l level) (kept, none bool) {
	kept, none = true, true
	for r := range out {
		for v := range out[r] {
			c, ok := f.count(out[r][v][0], l)
			kept = kept && ok && c == f.ranks-2
			none = none && ok && c == 0
		}
	}
	return kept, none
}

var errNoTree = errors.New("no binary tree explains what masks leave")

// grow builds the tree of every rank.
func (f *fit) grow(out [][][]uint64, l level) error {
	f.m.Acc, f.m.Final, f.m.Step = l.acc, "rne", "rne"
	for r := range out {
		// size[i][j] is the smallest subtree with both.
		size := make([][]int, f.ranks)
		for i := range size {
			size[i] = make([]int, f.ranks)
		}
		v := 0
		for i := range f.ranks {
			for j := range f.ranks {
				if i == j {
					continue
				}
				// Of the two signs one may end in a truncated step; it leaves
				// no count, or too small a one.
				if c, ok := f.count(out[r][v][0], l); ok {
					s := f.ranks - c
					if size[i][j] == 0 || s < size[i][j] {
						size[i][j], size[j][i] = s, s
					}
				}
				v++
			}
		}
		all := make([]int, f.ranks)
		for i := range all {
			all[i] = i
		}
		tree, err := build(all, size)
		if err != nil {
			f.odd("rank %d: %v", r, err)
			return nil
		}
		f.trees = append(f.trees, tree)
		f.differ = f.differ || tree.String() != f.trees[0].String()
	}
	f.m.tree = f.trees[0]
	if order, ok := f.m.tree.linear(); ok {
		f.m.Kind, f.m.Order = "fold", orderText(order)
	} else if order, ok := f.m.tree.balanced(); ok {
		f.m.Kind, f.m.Order = "tree", orderText(order)
	} else {
		f.odd("the tree %v is neither a line nor balanced", f.m.tree)
	}
	f.say("masks of 2^%d over terms of 2^%d: additions in %s in the tree %v", l.m, l.u, l.acc, f.m.tree)
	for r, tree := range f.trees {
		if f.differ {
			f.say("rank %d: %v", r, tree)
		}
	}
	return nil
}

// build makes the tree of a set of leaves: those with a common subtree smaller
// than the set lie on one side.
func build(set []int, size [][]int) (*node, error) {
	if len(set) == 1 {
		return &node{leaf: set[0]}, nil
	}
	first := []int{set[0]}
	for at := 0; at < len(first); at++ {
		for _, j := range set {
			if s := size[first[at]][j]; j != first[at] && s > 0 && s < len(set) && !slices.Contains(first, j) {
				first = append(first, j)
			}
		}
	}
	var second []int
	for _, j := range set {
		if !slices.Contains(first, j) {
			second = append(second, j)
		}
	}
	if len(second) == 0 {
		return nil, errNoTree
	}
	slices.Sort(first)
	for _, i := range first {
		for _, j := range second {
			if size[i][j] != len(set) {
				return nil, fmt.Errorf("%w (ranks %d and %d)", errNoTree, i, j)
			}
		}
	}
	left, err := build(first, size)
	if err != nil {
		return nil, err
	}
	right, err := build(second, size)
	return &node{left: left, right: right}, err
}
