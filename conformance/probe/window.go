package probe

import (
	"slices"
)

// window finds where a fused sum loses what is small.
func (f *fit) window() error {
	if f.m.tree != nil || len(f.strange) > 0 {
		return nil
	}
	exponents := slices.DeleteFunc([]int{-33, -32, -31, -17, -16, -15, -9, -8, -7, -1, 0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 49},
		func(e int) bool { return e > f.d.Bias() || e < 1-f.d.Bias() })
	place := map[int]int{} // of the lowest residue that survives
	bounded := false
	for _, e := range exponents {
		low, err := f.residue(e)
		if err != nil {
			return err
		}
		place[e] = low
		bounded = bounded || low > lowest(f.d)
	}
	if !bounded {
		f.say("2^e - 2^e + 2^-k: the smallest residue survives at every e")
		return nil
	}
	if err := f.shape(exponents, place); err != nil {
		return err
	}
	if f.m.Kind == "window" {
		return f.terms()
	}
	return nil
}

// residue is the exponent of the lowest residue that x - x leaves, x = 2^e.
func (f *fit) residue(e int) (int, error) {
	x := f.power(e)
	var vectors [][]uint64
	for p := e - 1; p >= lowest(f.d); p-- {
		vectors = append(vectors, f.vector(x, f.neg(x), f.power(p)))
	}
	if len(vectors) == 0 {
		return lowest(f.d), nil
	}
	out, err := f.samples(vectors)
	if err != nil {
		return 0, err
	}
	for v := range vectors {
		if out[0][v][0] == 0 {
			return e - v, nil
		}
	}
	return lowest(f.d), nil
}

// shape says whether the cuts move with the exponent or in larger steps.
func (f *fit) shape(exponents []int, place map[int]int) error {
	low := lowest(f.d)
	fits := func(cut func(e int) int) bool {
		for _, e := range exponents {
			if want := min(max(cut(e), low), e); place[e] != want {
				return false
			}
		}
		return true
	}
	// One cut that the format does not hide tells the number of bits.
	at := exponents[slices.IndexFunc(exponents, func(e int) bool { return place[e] > low })]
	for _, granule := range append([]int{1, 16}, sequence(2, 64)...) {
		anchor := func(e int) int { return granule * ceilDiv(e, granule) }
		bits := anchor(at) - place[at]
		if !fits(func(e int) int { return anchor(e) - bits }) {
			continue
		}
		if granule == 1 {
			f.m.Kind, f.m.AlignBits = "aligned", bits
			f.say("2^e - 2^e + 2^-k: lost %d bits below e, at every e", bits)
		} else {
			f.m.Kind, f.m.Granule, f.m.ResultBits = "window", granule, bits
			f.say("2^e - 2^e + 2^-k: lost %d bits below e rounded up to a multiple of %d", bits, granule)
		}
		return nil
	}
	f.odd("2^e - 2^e + 2^-k: cuts at %v follow no window", place)
	return nil
}

func sequence(from, to int) []int {
	var out []int
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

func ceilDiv(a, b int) int {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// terms finds below which place the bits of terms are cut, where the last
// rounding lets it be seen: a term so small that only its being there counts.
func (f *fit) terms() error {
	if f.mixed {
		return nil
	}
	one, half := f.power(0), f.power(-f.d.MantissaBits()-1)
	var vectors [][]uint64
	var places []int
	for p := -f.d.MantissaBits() - 2; p >= lowest(f.d); p-- {
		t := f.power(p)
		for _, v := range [][]uint64{f.vector(one, half, t), f.vector(one, half, f.neg(t)), f.vector(one, t), f.vector(one, f.neg(t))} {
			seen, _ := f.m.Eval(f.d, v)
			without := append([]uint64(nil), v...)
			without[slices.IndexFunc(v, func(b uint64) bool { return b == t || b == f.neg(t) })] = 0
			if unseen, _ := f.m.Eval(f.d, without); seen != unseen {
				vectors, places = append(vectors, v), append(places, p)
				break
			}
		}
	}
	if len(vectors) == 0 {
		return nil
	}
	out, err := f.samples(vectors)
	if err != nil {
		return err
	}
	for v, in := range vectors {
		if want, _ := f.m.Eval(f.d, in); out[0][v][0] != want {
			f.m.TermBits = -places[v] - 1
			f.say("1 and a term of 2^-k: not seen from k = %d on", -places[v])
			return nil
		}
	}
	f.say("1 and a term of 2^-k: seen down to 2^%d", places[len(places)-1])
	return nil
}
