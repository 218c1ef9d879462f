package num

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxText bounds what Parse reads: enough for every digit of an f64.
const maxText = 1100

// Text prints a pattern so that [Parse] gives it back: the shortest decimal that
// rounds to it, "-0", "inf", "-inf", "nan" for the canonical NaN and
// "nan(0x7fc1)" for any other one; integers in decimal.
func Text(d DType, b uint64) string {
	switch {
	case !d.Float() && d.Signed():
		return strconv.FormatInt(signed(d, b), 10)
	case !d.Float():
		return strconv.FormatUint(b, 10)
	case IsNaN(d, b) && b == CanonicalNaN(d):
		return "nan"
	case IsNaN(d, b):
		return fmt.Sprintf("nan(0x%0*x)", d.Bits()/4, b)
	case IsInf(d, b) && SignBit(d, b):
		return "-inf"
	case IsInf(d, b):
		return "inf"
	}
	x := Decode(d, b)
	switch d {
	case F64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case F32:
		return strconv.FormatFloat(x, 'g', -1, 32)
	}
	for digits := 1; ; digits++ {
		short := strconv.FormatFloat(x, 'g', digits, 64)
		if back, err := parseFloat(d, short); err == nil && back == b {
			// The same digits without an exponent where none is needed.
			y, _ := strconv.ParseFloat(short, 64)
			return strconv.FormatFloat(y, 'g', -1, 64)
		}
	}
}

// Parse reads what [Text] prints, any other decimal or hexadecimal floating-point
// constant of Go (rounded once, to nearest even; beyond the finite values it is
// an error), and a bit pattern as 0x and hexadecimal digits without an exponent.
// Letters may be in either case.
func Parse(d DType, text string) (uint64, error) {
	if !d.Valid() {
		return 0, fmt.Errorf("cannot read a value of %v", d)
	}
	if len(text) > maxText {
		return 0, fmt.Errorf("%v value of %d characters: at most %d are read", d, len(text), maxText)
	}
	lower := strings.ToLower(text)
	if digits, ok := strings.CutPrefix(lower, "0x"); ok && !strings.Contains(digits, "p") {
		return parsePattern(d, text, digits)
	}
	if !d.Float() {
		return parseInt(d, text)
	}
	switch lower {
	case "nan":
		return CanonicalNaN(d), nil
	case "inf", "+inf", "-inf":
		if d == E4M3 {
			return 0, fmt.Errorf("%q: e4m3 has no infinity", text)
		}
		return withSign(d, lower[0] == '-', infinity(d)), nil
	}
	if inner, ok := strings.CutPrefix(lower, "nan(0x"); ok {
		return parseNaN(d, text, inner)
	}
	return parseFloat(d, text)
}

func parsePattern(d DType, text, digits string) (uint64, error) {
	b, err := strconv.ParseUint(digits, 16, d.Bits())
	if err != nil {
		return 0, fmt.Errorf("%q is not a %d-bit pattern of %v", text, d.Bits(), d)
	}
	return b, nil
}

func parseNaN(d DType, text, inner string) (uint64, error) {
	digits, ok := strings.CutSuffix(inner, ")")
	b, err := strconv.ParseUint(digits, 16, d.Bits())
	if !ok || err != nil || !IsNaN(d, b) {
		return 0, fmt.Errorf("%q is not a NaN of %v", text, d)
	}
	return b, nil
}

func parseInt(d DType, text string) (uint64, error) {
	var b uint64
	var err error
	if d.Signed() {
		var v int64
		v, err = strconv.ParseInt(text, 10, d.Bits())
		b = uint64(v) & d.Mask()
	} else {
		b, err = strconv.ParseUint(text, 10, d.Bits())
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a value of %v", text, d)
	}
	return b, nil
}

func parseFloat(d DType, text string) (uint64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, fmt.Errorf("%q is not a value of %v", text, d)
	}
	below, above := math.Nextafter(x, math.Inf(-1)), math.Nextafter(x, math.Inf(1))
	if d != F64 && x != 0 && Encode(d, below, NearestEven) != Encode(d, above, NearestEven) {
		x = nudge(text, x)
	}
	b := Encode(d, x, NearestEven)
	if IsInf(d, b) || IsNaN(d, b) {
		return 0, fmt.Errorf("%q is beyond the finite values of %v", text, d)
	}
	return b, nil
}

// nudge moves x, which is text rounded to nearest even, to the odd neighbour of
// text: then a second rounding goes where a single one would have gone, even if x
// is half way between two numbers and text is not. Where it cannot be half way
// nudge is not needed.
func nudge(text string, x float64) float64 {
	// The exponent cannot be out of hand: x is a finite number, and what the
	// digits may add to it is bounded by maxText.
	exact, ok := new(big.Rat).SetString(text)
	if !ok || math.IsInf(x, 0) {
		return x
	}
	side := exact.Cmp(new(big.Rat).SetFloat64(x))
	if side == 0 || math.Float64bits(x)&1 == 1 {
		return x
	}
	return math.Nextafter(x, math.Inf(side))
}
