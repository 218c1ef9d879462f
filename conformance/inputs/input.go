package inputs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"example.com/tandem/api"
)

// Kind is a way of choosing values.
type Kind uint8

// The kinds. The zero Kind stands for the default of the call.
const (
	Auto      Kind = iota // Normal where every lane is a float, else Bits
	Normal                // float: any sign and mantissa, 8 binades around 1
	Finite                // float: any pattern that is neither NaN nor infinity
	Bits                  // any pattern
	Uniform               // float: uniform in [Lo, Hi)
	OrderFree             // values whose reduction is the same in any order
	Ones                  // 1 everywhere
	Values                // one pattern a rank, the same in all its elements
	Files                 // a directory of dumps
)

var kindNames = []string{"auto", "normal", "finite", "bits", "uniform", "order_free", "ones", "values", "file"}

// String is the name as --input has it.
func (k Kind) String() string { return kindNames[min(int(k), len(kindNames)-1)] }

// Input describes the sources of a call. The zero Input is [Default] of the call.
type Input struct {
	Kind   Kind
	Seed   uint64
	Lo, Hi float64  // of Uniform
	Values []uint64 // of Values: a pattern a rank
	Dir    string   // of Files
}

// Default is what a call gets when nothing is asked for: Normal, or Bits where
// a lane is of an integer type, with seed 1.
func Default(call *api.Call) Input {
	for i := range call.Lanes() {
		if !call.Lane(i).DType.Float() {
			return Input{Kind: Bits, Seed: 1}
		}
	}
	return Input{Kind: Normal, Seed: 1}
}

// Resolve replaces Auto by the default of the call. A seed of 0 counts as none
// given there.
func (in Input) Resolve(call *api.Call) Input {
	if in.Kind != Auto {
		return in
	}
	d := Default(call)
	if in.Seed != 0 {
		d.Seed = in.Seed
	}
	return d
}

// seeded reports whether the kind takes a seed.
func (k Kind) seeded() bool { return k <= OrderFree }

const hint = "known are normal, finite, bits, uniform:LO:HI, order_free, ones and file:DIR"

// Parse reads the text of --input. Random kinds get the seed.
func Parse(text string, seed uint64) (Input, error) {
	name, rest, hasRest := strings.Cut(text, ":")
	bad := func(reason string) (Input, error) {
		return Input{}, &api.InvalidError{Field: "input", Value: text, Reason: reason, Hint: hint}
	}
	k := Kind(max(0, slices.Index(kindNames, name)))
	switch {
	case k == Values:
		return bad("values are given by --values")
	case k == Auto:
		return bad("unknown")
	case hasRest && k != Uniform && k != Files:
		return bad(name + " takes nothing after it")
	}
	in := Input{Kind: k}
	if k.seeded() {
		in.Seed = seed
	}
	switch k {
	case Files:
		if in.Dir = rest; rest == "" {
			return bad("the directory is missing")
		}
	case Uniform:
		lo, hi, _ := strings.Cut(rest, ":")
		var err1, err2 error
		in.Lo, err1 = strconv.ParseFloat(lo, 64)
		in.Hi, err2 = strconv.ParseFloat(hi, 64)
		if err1 != nil || err2 != nil {
			return bad("it needs two numbers, as uniform:-1:1")
		}
		if err := in.checkUniform(); err != nil {
			return Input{}, err
		}
	}
	return in, nil
}

// ParseValues reads the text of --values: a comma list of bit patterns, one a
// rank.
func ParseValues(text string) (Input, error) {
	in := Input{Kind: Values}
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseUint(strings.TrimSpace(part), 0, 64)
		if err != nil {
			return Input{}, &api.InvalidError{Field: "values", Value: text, Reason: fmt.Sprintf("%q is no bit pattern", part), Hint: "write one a rank, as 0x4380,0x3f80"}
		}
		in.Values = append(in.Values, v)
	}
	return in, nil
}

// String is the flags of compare that give this input.
func (in Input) String() string {
	switch in.Kind {
	case Values:
		parts := make([]string, len(in.Values))
		for i, v := range in.Values {
			parts[i] = fmt.Sprintf("0x%x", v)
		}
		return "--values " + strings.Join(parts, ",")
	case Files:
		return "--input file:" + in.Dir
	case Uniform:
		return fmt.Sprintf("--input uniform:%v:%v --seed %d", in.Lo, in.Hi, in.Seed)
	case Ones:
		return "--input ones"
	}
	return fmt.Sprintf("--input %s --seed %d", in.Kind, in.Seed)
}

func (in Input) checkUniform() error {
	bad := func(reason string) error {
		return &api.InvalidError{Field: "input", Value: fmt.Sprintf("uniform:%v:%v", in.Lo, in.Hi), Reason: reason, Hint: "write LO and HI as two finite numbers, the smaller one first"}
	}
	if math.IsNaN(in.Lo) || math.IsNaN(in.Hi) || math.IsInf(in.Hi-in.Lo, 0) {
		return bad("the range is not finite")
	}
	if in.Lo > in.Hi {
		return bad("the range is empty")
	}
	return nil
}

// check says whether the input makes sense for the call.
func (in Input) check(call *api.Call) error {
	for i := range call.Lanes() {
		if err := in.checkLane(call, call.Lane(i).DType); err != nil {
			return err
		}
	}
	switch in.Kind {
	case Uniform:
		return in.checkUniform()
	case Values:
		return in.checkValues(call)
	}
	return nil
}

func (in Input) checkLane(call *api.Call, d api.DType) error {
	bad := func(reason, hint string) error {
		return &api.InvalidError{Field: "input", Value: in.Kind.String(), Reason: reason, Hint: hint}
	}
	switch in.Kind {
	case Normal, Finite, Uniform:
		if !d.Float() {
			return bad(fmt.Sprintf("not defined on %s", d), "integers take bits, order_free, ones and values")
		}
	case OrderFree:
		if call.Op == api.Avg && d.Float() {
			return bad("an average in a float type depends on how it is divided, whatever the order", "order_free is defined for sum, prod, min and max, and for every op on integers")
		}
	case Bits, Ones, Values, Files:
	default:
		return bad("unknown", hint)
	}
	return nil
}

func (in Input) checkValues(call *api.Call) error {
	if len(in.Values) != call.Ranks {
		return &api.InvalidError{Field: "values", Value: fmt.Sprintf("%d patterns", len(in.Values)), Reason: "wrong number of patterns", Hint: fmt.Sprintf("one for each of %d ranks", call.Ranks)}
	}
	for _, v := range in.Values {
		for i := range call.Lanes() {
			if d := call.Lane(i).DType; v&^d.Mask() != 0 {
				return &api.InvalidError{Field: "values", Value: fmt.Sprintf("0x%x", v), Reason: fmt.Sprintf("wider than %s", d), Hint: fmt.Sprintf("at most 0x%x", d.Mask())}
			}
		}
	}
	return nil
}
