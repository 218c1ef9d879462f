package probe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"example.com/tandem/api/num"
)

// specials looks at zeros, subnormals, NaNs, infinities and overflow.
func (f *fit) specials() error {
	d := f.d
	zero, inf, nan := f.neg(0), firstInfinite(d), num.CanonicalNaN(d)
	least, normal, most := uint64(1), f.power(1-d.Bias()), firstInfinite(d)-1
	allZero := make([]uint64, f.ranks)
	for r := range allZero {
		allZero[r] = zero
	}
	payload := inf | 1<<(d.MantissaBits()-1) | 1 | zero
	out, err := f.samples([][]uint64{
		allZero, f.vector(inf, f.neg(inf)), f.vector(payload), f.vector(least, least), f.vector(normal, f.neg(least)),
		f.vector(normal>>1, normal>>1), f.vector(most, most), f.vector(inf, f.neg(most), f.neg(most)),
	})
	if err != nil {
		return err
	}
	at := func(v int) uint64 { return out[0][v][0] }
	f.m.KeepNeg0 = at(0) == zero
	f.say("all -0: %#x", at(0))
	f.say("inf - inf: %#x; a NaN with payload: %#x (canonical %#x)", at(1), at(2), nan)
	if at(1) != nan || at(2) != nan {
		f.nans(out, [][]uint64{f.vector(inf, f.neg(inf)), f.vector(payload)})
	}
	f.m.FTZIn = at(5) == 0
	f.m.FTZOut = !f.m.FTZIn && at(4) == 0
	f.say("subnormals: least + least = %#x, least normal - least = %#x", at(3), at(4))
	want, _ := f.m.Eval(d, f.vector(most, most))
	switch got := at(6); {
	case got == want:
	case got == most:
		f.m.Overflow = "maxfinite"
	case num.IsNaN(d, got):
		f.m.Overflow = "nan"
	}
	f.say("MAX + MAX: %#x", at(6))
	return nil
}

// nans looks whether NaNs that are not canonical are those that additions in the
// type leave, of the tree that was found: with f64, operands pass theirs on.
func (f *fit) nans(out [][][]uint64, of [][]uint64) {
	keeps := *f.m
	keeps.KeepNaN = true
	for r := range out {
		if f.trees != nil && r < len(f.trees) {
			keeps.tree = f.trees[r]
		}
		for i, in := range of {
			if want, _ := keeps.Eval(f.d, in); out[r][1+i][0] != want {
				f.odd("NaNs are not canonical: %#x, %#x", out[0][1][0], out[0][2][0])
				return
			}
		}
	}
	f.m.KeepNaN = true
	f.say("NaNs are as additions in %s leave them", f.d)
}

// trials is how many random vectors a model is held to.
const trials = 3000

// verify holds the model to vectors that it was not fitted to.
func (f *fit) verify() error {
	rng := rand.New(rand.NewPCG(11, uint64(f.d)))
	vectors := make([][]uint64, trials)
	for i := range vectors {
		vectors[i] = f.random(rng, i)
	}
	out, err := f.samples(vectors)
	if err != nil {
		return err
	}
	missed, same := 0, true
	var first string
	for r := range out {
		m := *f.m
		if f.trees != nil && r < len(f.trees) {
			m.tree = f.trees[r]
		}
		for v, in := range vectors {
			for s, got := range out[r][v] {
				same = same && got == out[0][v][s]
				if !f.admits(&m, in, got) {
					if missed++; missed == 1 {
						want, _ := m.Eval(f.d, in)
						first = fmt.Sprintf("rank %d, %#x: %#x, the model gives %#x", r, in, got, want)
					}
					break
				}
			}
		}
	}
	f.differ = f.differ || !same
	if same {
		f.say("all ranks hold the same bits")
	} else {
		f.say("the ranks hold different bits")
	}
	if missed > 0 {
		f.odd("%d of %d random vectors are not the model's, the first on %s", missed, f.ranks*trials, first)
		return nil
	}
	f.say("%d random vectors on %d ranks: every result is the model's", trials, f.ranks)
	return nil
}

// admits reports whether the model allows a result.
func (f *fit) admits(m *Model, in []uint64, got uint64) bool {
	want, ok := m.Eval(f.d, in)
	if ok || got == want {
		return got == want
	}
	return got == m.place(f.d, m.before(f.d, in), true)
}

// random is a vector of one of several shapes.
func (f *fit) random(rng *rand.Rand, i int) []uint64 {
	d := f.d
	v := make([]uint64, f.ranks)
	for r := range v {
		b := rng.Uint64() & d.Mask()
		exp := func(e int) {
			e = min(max(e, 1-d.Bias()), d.Bias())
			field := uint64(1<<d.ExponentBits()-1) << d.MantissaBits()
			b = b&^field | uint64(e+d.Bias())<<d.MantissaBits()
		}
		switch i % 6 {
		case 0, 1:
			b = num.Encode(d, rng.NormFloat64(), num.NearestEven)
		case 2:
			exp(rng.IntN(24) - 12)
		case 3:
			if exp(rng.IntN(60) - 30); r%2 == 1 {
				b = f.neg(v[r-1]) ^ uint64(rng.IntN(4))
			}
		case 4:
			exp(rng.IntN(2*d.Bias()) - d.Bias() + 1)
		default:
			if b = b & (1<<(d.MantissaBits()+1) - 1); rng.IntN(2) == 0 {
				b = f.neg(b)
			}
		}
		if num.IsNaN(d, b) || num.IsInf(d, b) {
			b = 0
		}
		v[r] = b
	}
	return v
}

// minMax probes a min or a max.
func (a *asker) minMax() (*Cell, error) {
	c := &Cell{DType: a.d.String(), Op: a.op.String(), Ranks: a.ranks, Model: Model{Name: "probed", Kind: "exact", Final: "rne"}}
	d := a.d
	one, nan, other := a.power(0), firstInfinite(d)|1<<(d.MantissaBits()-1)|1, a.neg(firstInfinite(d)|1<<(d.MantissaBits()-1)|2)
	zero := a.neg(0)
	all := func(rest uint64, first ...uint64) []uint64 {
		v := slices.Repeat([]uint64{rest}, a.ranks)
		copy(v, first)
		return v
	}
	vectors := [][]uint64{
		all(one, nan), all(nan, one), all(nan, other), all(0, zero), all(zero, 0), all(one, other, one, nan),
		all(one, a.neg(1), 1), all(firstInfinite(d), a.neg(firstInfinite(d))),
	}
	rng := rand.New(rand.NewPCG(5, uint64(d)))
	for range 500 {
		v := make([]uint64, a.ranks)
		for r := range v {
			v[r] = num.Encode(d, math.Round(rng.NormFloat64()*4), num.NearestEven)
		}
		vectors = append(vectors, v)
	}
	out, err := a.samples(vectors)
	if err != nil {
		return nil, err
	}
	for _, rule := range []struct {
		rule num.MinMaxRule
		says string
		set  func(*Model)
	}{
		{num.DropNaN, "a NaN loses against a number, two give the canonical one, -0 is below +0", func(*Model) {}},
		{num.PropagateNaN, "any NaN gives the canonical one, -0 is below +0", func(m *Model) { m.PassNaN = true }},
	} {
		fits := true
		for r := range out {
			for v, in := range vectors {
				fits = fits && out[r][v][0] == num.Eval(d, num.Scheme{Op: a.op, MinMax: rule.rule}, in)
			}
		}
		if fits {
			rule.set(&c.Model)
			c.Exact, c.Verdict = true, "exact: "+rule.says
			break
		}
	}
	if !c.Exact {
		c.Verdict = "no rule in the parameter space explains it: NaNs or zeros depend on the order of operands"
	}
	for v, name := range []string{"NaN, 1..", "1, NaN..", "two NaNs", "-0, +0..", "+0, -0.."} {
		text := name + ":"
		for r := range out {
			text += fmt.Sprintf(" %#x", out[r][v][0])
		}
		c.Evidence = append(c.Evidence, text+" by rank")
	}
	return c, nil
}
