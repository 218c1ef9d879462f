package probe

import (
	"fmt"
	"math/big"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// Model is a fitted arithmetic, in the words of the simulator's parameter space.
type Model struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"` // exact, window, aligned, fold or tree
	Acc        string `json:"acc,omitempty"`
	Step       string `json:"step,omitempty"`
	Order      string `json:"order,omitempty"`
	Granule    int    `json:"granule,omitempty"`
	TermBits   int    `json:"term_bits,omitempty"`
	ResultBits int    `json:"result_bits,omitempty"`
	AlignBits  int    `json:"align_bits,omitempty"`
	Final      string `json:"final"`
	FTZIn      bool   `json:"ftz_in,omitempty"`
	FTZOut     bool   `json:"ftz_out,omitempty"`
	KeepNeg0   bool   `json:"keep_neg_zero,omitempty"`
	KeepNaN    bool   `json:"keep_nan,omitempty"`
	Overflow   string `json:"overflow,omitempty"`
	PassNaN    bool   `json:"minmax_propagate_nan,omitempty"`
	MinMaxZero string `json:"minmax_zero,omitempty"`

	tree *node // of fold and tree
}

// cut is a sum before its last rounding: the magnitude pattern cut off, how what
// was cut compares with half a place, and whether anything was.
type cut struct {
	neg     bool
	low     uint64
	half    int
	inexact bool
	zero    bool
	special uint64 // NaN or infinity, if done
	done    bool
}

// before is the sum of the inputs before the last rounding.
func (m *Model) before(d api.DType, in []uint64) cut {
	if m.FTZIn {
		flushed := make([]uint64, len(in))
		for i, b := range in {
			flushed[i] = flush(d, b)
		}
		in = flushed
	}
	if m.tree != nil {
		return m.beforeTree(d, in)
	}
	sum, low, anchor, special, done := m.total(d, in)
	if done {
		return cut{special: special, done: true}
	}
	if sum.Sign() == 0 {
		return cut{zero: true, neg: allNegZero(d, in)}
	}
	if m.ResultBits > 0 && sum.BitLen()-1+low < anchor-m.ResultBits {
		return cut{zero: true}
	}
	return cutAt(d, sum, low)
}

func flush(d api.DType, b uint64) uint64 {
	if b&(1<<(d.Bits()-1)-1) < 1<<d.MantissaBits() {
		return b &^ (1<<(d.Bits()-1) - 1)
	}
	return b
}

func allNegZero(d api.DType, in []uint64) bool {
	for _, b := range in {
		if b != 1<<(d.Bits()-1) {
			return false
		}
	}
	return true
}

// term is a finite pattern as an integer times 2^low.
func term(d api.DType, b uint64, low int) *big.Int {
	mag := b & (1<<(d.Bits()-1) - 1)
	field := int(mag >> d.MantissaBits())
	mant := mag & (1<<d.MantissaBits() - 1)
	if field > 0 {
		mant |= 1 << d.MantissaBits()
		field--
	}
	x := new(big.Int).SetUint64(mant)
	x.Lsh(x, uint(field+lowest(d)-low))
	if num.SignBit(d, b) {
		x.Neg(x)
	}
	return x
}

// lowest is the exponent of the last place of subnormals.
func lowest(d api.DType) int { return 1 - d.Bias() - d.MantissaBits() }

// total is the fused sum, an integer times 2^low, after terms are cut.
func (m *Model) total(d api.DType, in []uint64) (sum *big.Int, low, anchor int, special uint64, done bool) {
	if special, done = specials(d, in); done {
		return nil, 0, 0, special, true
	}
	low = lowest(d)
	emax := 1 - d.Bias()
	for _, b := range in {
		emax = max(emax, int(b&(1<<(d.Bits()-1)-1)>>d.MantissaBits())-d.Bias())
	}
	place := low
	switch m.Kind {
	case "window":
		for anchor = -16 * 1000; anchor < emax; anchor += m.Granule {
		}
		if m.TermBits > 0 {
			place = anchor - m.TermBits
		}
	case "aligned":
		place = emax - m.AlignBits
	}
	sum = new(big.Int)
	for _, b := range in {
		x := term(d, b, low)
		if n := place - low; n > 0 {
			neg := x.Sign() < 0
			x.Abs(x).Rsh(x, uint(n)).Lsh(x, uint(n))
			if neg {
				x.Neg(x)
			}
		}
		sum.Add(sum, x)
	}
	return sum, low, anchor, 0, false
}

// specials is what NaNs and infinities make of a sum, if there are any.
func specials(d api.DType, in []uint64) (uint64, bool) {
	var pos, neg, nan bool
	var inf uint64
	for _, b := range in {
		switch {
		case num.IsNaN(d, b):
			nan = true
		case num.IsInf(d, b):
			inf = b
			pos = pos || !num.SignBit(d, b)
			neg = neg || num.SignBit(d, b)
		}
	}
	if nan || pos && neg {
		return num.CanonicalNaN(d), true
	}
	return inf, pos || neg
}

// cutAt cuts sum * 2^low, which is not zero, to the places of d.
func cutAt(d api.DType, sum *big.Int, low int) cut {
	c := cut{neg: sum.Sign() < 0}
	mag := new(big.Int).Abs(sum)
	lead := mag.BitLen() - 1 + low
	e := max(lead, 1-d.Bias())
	if lead > d.Bias()+1 {
		c.low = ^uint64(0)
		return c
	}
	drop := e - d.MantissaBits() - low
	q := new(big.Int).Set(mag)
	if drop < 0 {
		q.Lsh(q, uint(-drop))
	} else {
		q.Rsh(q, uint(drop))
		rest := new(big.Int).Sub(mag, new(big.Int).Lsh(q, uint(drop)))
		c.inexact = rest.Sign() != 0
		c.half = new(big.Int).Lsh(rest, 1).Cmp(new(big.Int).Lsh(big.NewInt(1), uint(drop)))
	}
	c.low = q.Uint64() + uint64(e-(1-d.Bias()))<<d.MantissaBits()
	return c
}

// accOf is the accumulator's format.
func (m *Model) accOf(d api.DType) api.DType {
	switch m.Acc {
	case "f32":
		return api.F32
	case "f16":
		return api.F16
	}
	return d
}

func (m *Model) beforeTree(d api.DType, in []uint64) cut {
	acc := m.accOf(d)
	step := num.Scheme{Op: num.Sum}
	if m.Step == "rz" {
		step.Step = num.TowardZero
	}
	var sum func(n *node) uint64
	sum = func(n *node) uint64 {
		if n.left == nil {
			if acc != d {
				return num.Convert(acc, d, in[n.leaf], num.NearestEven)
			}
			return in[n.leaf]
		}
		return num.Eval(acc, step, []uint64{sum(n.left), sum(n.right)})
	}
	v := sum(m.tree)
	switch {
	case num.IsNaN(acc, v) && m.KeepNaN && acc == d:
		return cut{special: v, done: true}
	case num.IsNaN(acc, v):
		return cut{special: num.CanonicalNaN(d), done: true}
	case num.IsInf(acc, v):
		if special, has := specials(d, in); has {
			return cut{special: special, done: true}
		}
		return cut{neg: num.SignBit(acc, v), low: ^uint64(0)}
	case num.IsZero(acc, v):
		return cut{zero: true, neg: num.SignBit(acc, v)}
	}
	return cutAt(d, term(acc, v, lowest(acc)), lowest(acc))
}

// Eval is the model's result; where its last rounding is no function of the
// inputs, ok is false and the result cut off.
func (m *Model) Eval(d api.DType, in []uint64) (value uint64, ok bool) {
	c := m.before(d, in)
	switch {
	case c.done:
		return c.special, true
	case c.zero:
		return m.signed(d, c.neg, 0), true
	}
	rule, known := rules[m.Final]
	if !known {
		return m.place(d, c, false), !c.inexact && c.low < firstInfinite(d)
	}
	return m.place(d, c, c.inexact && rule(c)), true
}

// place is the pattern that a cut becomes.
func (m *Model) place(d api.DType, c cut, up bool) uint64 {
	inf := firstInfinite(d)
	mag := c.low
	switch {
	case mag >= inf:
		// Beyond the last finite number by a unit or more.
		if beyond := (cut{neg: c.neg, low: 1, half: 1, inexact: true}); rules[m.Final] != nil && m.Final != "g1" && !rules[m.Final](beyond) || m.Final == "odd" {
			mag = inf - 1
		} else {
			mag = inf
		}
	case up:
		mag++
	}
	if mag >= inf {
		switch m.Overflow {
		case "maxfinite":
			mag = inf - 1
		case "nan":
			return num.CanonicalNaN(d)
		}
		if d == api.E4M3 && mag == inf {
			return num.CanonicalNaN(d)
		}
	}
	return m.signed(d, c.neg, mag)
}

func (m *Model) signed(d api.DType, neg bool, mag uint64) uint64 {
	if m.FTZOut && mag < 1<<d.MantissaBits() {
		mag = 0
	}
	if !neg || mag == 0 && !m.KeepNeg0 {
		return mag
	}
	return mag | 1<<(d.Bits()-1)
}

func firstInfinite(d api.DType) uint64 {
	if d == api.E4M3 {
		return 0x7F
	}
	return (1<<d.ExponentBits() - 1) << d.MantissaBits()
}

// rules are the last roundings that are functions of the inputs: whether an
// inexact magnitude goes up.
var rules = map[string]func(c cut) bool{
	"rne":         func(c cut) bool { return c.half > 0 || c.half == 0 && c.low&1 == 1 },
	"rna":         func(c cut) bool { return c.half >= 0 },
	"rhu":         func(c cut) bool { return c.half > 0 || c.half == 0 && !c.neg },
	"rz":          func(cut) bool { return false },
	"away":        func(cut) bool { return true },
	"rtn":         func(c cut) bool { return c.neg },
	"rtp":         func(c cut) bool { return !c.neg },
	"odd":         func(c cut) bool { return c.low&1 == 0 },
	"g1":          func(c cut) bool { return c.half >= 0 && c.low&1 == 1 },
	"adversarial": func(c cut) bool { return !(c.half > 0 || c.half == 0 && c.low&1 == 1) },
}

// ruleOrder is the order in which rules are tried and named.
var ruleOrder = []string{"rne", "rna", "rhu", "rz", "away", "rtn", "rtp", "odd", "g1", "adversarial"}

// String is the model in one line.
func (m *Model) String() string {
	var b strings.Builder
	b.WriteString(m.Kind)
	switch m.Kind {
	case "window":
		fmt.Fprintf(&b, " anchored in steps of %d", m.Granule)
		if m.TermBits > 0 {
			fmt.Fprintf(&b, ", terms cut %d bits below", m.TermBits)
		}
		fmt.Fprintf(&b, ", sums below 2^(anchor-%d) read +0", m.ResultBits)
	case "aligned":
		fmt.Fprintf(&b, " %d bits below the greatest exponent", m.AlignBits)
	case "fold", "tree":
		fmt.Fprintf(&b, " in %s, %s a step, order %s", m.Acc, m.Step, m.Order)
	}
	fmt.Fprintf(&b, ", last rounding %s", m.Final)
	return b.String()
}
