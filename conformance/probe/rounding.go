package probe

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"example.com/tandem/api/num"
)

// steps of the fraction of a last place.
const fractions = 256

// curve is the vectors of which the share rounded up is looked at: 1 or the next
// number, and k/256 of a last place, of both signs.
func (f *fit) curve() (vectors [][]uint64, ks []int) {
	one := f.power(0)
	ulp := -f.d.MantissaBits()
	for odd := range uint64(2) {
		for k := 1; k < fractions; k++ {
			part := num.Encode(f.d, math.Ldexp(float64(k), ulp-8), num.NearestEven)
			vectors = append(vectors, f.vector(one+odd, part), f.vector(f.neg(one+odd), f.neg(part)))
			ks = append(ks, k, k)
		}
	}
	return vectors, ks
}

// rounding finds the last rounding from sums of two operands.
func (f *fit) rounding() error {
	vectors, ks := f.curve()
	out, err := f.samples(vectors)
	if err != nil {
		return err
	}
	again, err := f.samples(vectors)
	if err != nil {
		return err
	}
	repeats := true
	for r := range out {
		for v := range vectors {
			first := out[r][v][0]
			repeats = repeats && slices.Equal(out[r][v], again[r][v])
			for _, b := range append(out[r][v], again[r][v]...) {
				f.mixed = f.mixed || b != first
				if base := vectors[v][0]; b != base && b != base+1 {
					f.odd("1 + %d/256 of a last place gave %#x, which is no neighbour", ks[v], b)
					return nil
				}
			}
		}
	}
	if f.mixed {
		f.direction(vectors, ks, out[0], repeats)
		return nil
	}
	return f.rule(vectors, out[0])
}

// rule finds the rule that gives all the results.
func (f *fit) rule(vectors [][]uint64, out [][]uint64) error {
	for _, name := range ruleOrder {
		fits := true
		for v, in := range vectors {
			probe := Model{Kind: "exact", Final: name}
			want, _ := probe.Eval(f.d, in)
			fits = fits && want == out[v][0]
		}
		if !fits {
			continue
		}
		f.say("1 + k/256 of a last place, k = 1..255, both signs, even and odd: %s, the same at every place", name)
		return f.stepRule(name)
	}
	up := 0
	for v, in := range vectors {
		if out[v][0] != in[0] {
			up++
		}
	}
	f.odd("1 + k/256 of a last place: %d of %d results go up, by no known rule", up, len(vectors))
	return nil
}

// stepRule says which rounding the curve is about: where sums are rounded at each
// step in the element type it is the step's.
func (f *fit) stepRule(name string) error {
	switch {
	case f.m.tree == nil:
		f.m.Final = name
		return nil
	case f.m.Acc == "same":
		f.m.Step = name
	default:
		f.m.Final = name
		return f.innerStep()
	}
	if name != "rne" && name != "rz" {
		f.odd("steps in %s round by %s", f.d, name)
	}
	return nil
}

// innerStep looks at a step in an accumulator wider than the elements: three
// quarters of its last place at 8 are added, and 8 is taken away again.
func (f *fit) innerStep() error {
	a := deepest(f.m.tree)
	v := make([]uint64, f.ranks)
	v[a.left.leaf] = f.power(3)
	v[a.right.leaf] = num.Encode(f.d, math.Ldexp(1.5, -21), num.NearestEven)
	for r := range v {
		if r != a.left.leaf && r != a.right.leaf {
			v[r] = f.neg(f.power(3))
			break
		}
	}
	out, err := f.samples([][]uint64{v})
	if err != nil {
		return err
	}
	switch got := out[0][0][0]; got {
	case f.power(-20):
		f.m.Step = "rne"
	case 0:
		f.m.Step = "rz"
	default:
		f.odd("a step in %s gave %#x", f.m.Acc, got)
	}
	f.say("three quarters of a place of %s: its steps round by %s", f.m.Acc, f.m.Step)
	return nil
}

// deepest is an addition of two leaves.
func deepest(n *node) *node {
	for n.left.left != nil || n.right.left != nil {
		if n.left.left != nil {
			n = n.left
		} else {
			n = n.right
		}
	}
	return n
}

// direction describes results that vary for one vector.
func (f *fit) direction(vectors [][]uint64, ks []int, out [][]uint64, repeats bool) {
	f.m.Final = "seeded"
	up, all := make([]float64, fractions), make([]float64, fractions)
	var lanes [8][2]float64
	for v, in := range vectors {
		for i, b := range out[v] {
			all[ks[v]]++
			lane := (i*len(vectors) + v) % len(lanes)
			lanes[lane][0]++
			if b != in[0] {
				up[ks[v]]++
				lanes[lane][1]++
			}
		}
	}
	var chi2 float64
	for k := 1; k < fractions; k++ {
		p := float64(k) / fractions
		d := up[k] - all[k]*p
		chi2 += d * d / (all[k] * p * (1 - p))
	}
	p := distuv.ChiSquared{K: fractions - 1}.Survival(chi2)
	f.follows = p > 1e-6
	f.say("1 + k/256 of a last place: one vector gives both neighbours, so no function of the inputs gives the direction")
	f.say("share rounded up at k = 64, 128, 192: %.3f, %.3f, %.3f", up[64]/all[64], up[128]/all[128], up[192]/all[192])
	f.say("chi-square against a share of k/256: %.1f over %d, p = %.3g", chi2, fractions-1, p)
	if !f.follows {
		f.say("the share rounded up does not follow the fraction")
	}
	if repeats {
		f.say("the same call gives the same bits again: the direction is fixed by the place")
	} else {
		f.say("the same call gives other bits: the direction is not fixed by the place")
	}
	var even, total float64
	for _, l := range lanes {
		even += l[1]
		total += l[0]
	}
	mean := even / total
	var spread float64
	for _, l := range lanes {
		if l[0] > 0 {
			spread = max(spread, math.Abs(l[1]/l[0]-mean))
		}
	}
	f.say("share rounded up by place modulo 8: within %.3f of %.3f", spread, mean)
}
