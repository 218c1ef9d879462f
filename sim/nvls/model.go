package nvls

import (
	"example.com/tandem/api/num"
	"example.com/tandem/sim/arith"
)

// Kind is how the terms of a sum are combined.
type Kind string

// The kinds.
const (
	KindExact   Kind = "exact"   // the exact sum
	KindWindow  Kind = "window"  // exact in a window anchored above the greatest exponent
	KindAligned Kind = "aligned" // terms cut AlignBits below the greatest exponent, then exact
	KindFold    Kind = "fold"    // one addition after another
	KindTree    Kind = "tree"    // a balanced tree of additions
)

// Acc is the format in which folds and trees add.
type Acc string

// The accumulators.
const (
	AccSame Acc = "same" // the element type
	AccF16  Acc = "f16"
	AccF32  Acc = "f32"
)

// Order is the order of the operands of a fold or tree: one of the constants, or
// the ranks themselves, as "2-0-1".
type Order string

// The orders with a name.
const (
	OrderRank    Order = "rank"
	OrderReverse Order = "reverse"
	OrderPerm    Order = "perm" // a permutation drawn from the seed
)

// Final is the last rounding, into the element type.
type Final string

// The last roundings.
const (
	RNE         Final = "rne"         // nearest, ties to even
	RNA         Final = "rna"         // nearest, ties away from zero
	RHU         Final = "rhu"         // nearest, ties toward +infinity
	RZ          Final = "rz"          // toward zero
	RA          Final = "away"        // away from zero
	RTN         Final = "rtn"         // toward -infinity
	RTP         Final = "rtp"         // toward +infinity
	ODD         Final = "odd"         // toward zero, last bit set if inexact
	G1          Final = "g1"          // one guard bit and no sticky bit: ties to even
	DIR         Final = "seeded"      // up in magnitude with the probability of the fraction, drawn from seed and element index
	Adversarial Final = "adversarial" // the neighbour that RNE does not give
)

// Overflow is what a magnitude beyond the greatest finite one becomes.
type Overflow string

// The overflows.
const (
	OverflowIEEE Overflow = "ieee" // infinity; a NaN in e4m3
	OverflowMax  Overflow = "maxfinite"
	OverflowNaN  Overflow = "nan"
)

// MinMaxZero is how min and max order zeros of different sign.
type MinMaxZero string

// The orders of zeros.
const (
	ZeroOrdered MinMaxZero = "ordered" // -0 < +0
	ZeroEither  MinMaxZero = "either"  // equal: the operand that comes first stays
)

// AccEffect is what the qualifier .acc::f32 does to 16-bit sums.
type AccEffect string

// The effects.
const (
	AccNoEffect AccEffect = "none"
	AccSelects  AccEffect = "selects" // without it the accumulator is the element type
)

// Model is one point of the parameter space. The zero value of a parameter that
// has no meaning for the kind is right.
type Model struct {
	Name       string     `json:"name"`
	Kind       Kind       `json:"kind"`
	Acc        Acc        `json:"acc,omitempty"`         // of fold and tree
	Step       Final      `json:"step,omitempty"`        // of fold and tree: RNE or RZ
	Order      Order      `json:"order,omitempty"`       // of fold and tree
	Granule    int        `json:"granule,omitempty"`     // of window: anchor = Granule*ceil(emax/Granule)
	TermBits   int        `json:"term_bits,omitempty"`   // terms are cut below 2^(anchor-TermBits); 0: not
	ResultBits int        `json:"result_bits,omitempty"` // sums below 2^(anchor-ResultBits) read +0; 0: none
	AlignBits  int        `json:"align_bits,omitempty"`  // of aligned
	Final      Final      `json:"final"`
	FTZIn      bool       `json:"ftz_in,omitempty"`  // subnormal inputs read 0
	FTZOut     bool       `json:"ftz_out,omitempty"` // subnormal results become 0
	KeepNeg0   bool       `json:"keep_neg_zero,omitempty"`
	KeepNaN    bool       `json:"keep_nan,omitempty"` // of fold and tree in the element type: NaNs as the additions leave them, not canonical
	Overflow   Overflow   `json:"overflow,omitempty"` // "" is ieee
	PassNaN    bool       `json:"minmax_propagate_nan,omitempty"`
	MinMaxZero MinMaxZero `json:"minmax_zero,omitempty"` // "" is ordered
	AccEffect  AccEffect  `json:"acc_effect,omitempty"`  // "" is none
	// Unordered says that the operand order is not known: Order is a choice.
	Unordered bool `json:"unordered,omitempty"`
	// Fitted says that the model was measured on the fabric it stands for.
	Fitted bool   `json:"fitted,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`

	remark string // what a profile has to do with it
}

// stepwise reports whether the model adds two operands at a time.
func (m *Model) stepwise() bool { return m.Kind == KindFold || m.Kind == KindTree }

// Determined reports whether a result follows from the inputs: no hidden state
// gives the direction and no unknown order matters. Min, max and integers always
// are, but for zeros that are in no order.
func (m *Model) Determined(d num.DType, op num.Op) bool {
	if !d.Float() {
		return true
	}
	if op == num.Min || op == num.Max {
		return m.MinMaxZero != ZeroEither
	}
	return m.Final != DIR && m.Final != Adversarial && !(m.stepwise() && m.Unordered)
}

// minMaxRule is the rule of num that min and max follow.
func (m *Model) minMaxRule() num.MinMaxRule {
	if m.PassNaN {
		return num.PropagateNaN
	}
	return num.DropNaN
}

// hash is d of the direction: a number drawn from the seed and the element index.
func hash(seed, index uint64) uint64 { return arith.Mix(hashKey(seed, index)) }

// hashKey is what is mixed; the keys of elements that follow each other do too.
func hashKey(seed, index uint64) uint64 {
	return seed*0x9E3779B97F4A7C15 + index + 0x632BE59BD9B4E019
}
