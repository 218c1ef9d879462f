package figure

import (
	"fmt"
	"slices"
	"strings"

	"example.com/tandem/api"
)

// Pair is two sources of one measurement.
type Pair struct{ Before, After Source }

// Pairs puts the sources of reports together, the i-th file before with the i-th
// after, and refuses all of them if any pair is of two measurements.
func Pairs(before, after [][]Source) ([]Pair, error) {
	if len(before) != len(after) || len(before) == 0 {
		return nil, &api.InvalidError{Field: "after", Value: fmt.Sprint(len(after)), Reason: fmt.Sprintf("%d reports before, %d after", len(before), len(after)), Hint: "one after for each before, in the same order"}
	}
	var out []Pair
	for i := range before {
		for _, b := range before[i] {
			k := slices.IndexFunc(after[i], func(a Source) bool { return a.key() == b.key() })
			if k < 0 {
				return nil, mismatch(b.File, after[i][0].File, "collective and launch", strings.TrimSpace(b.key()), strings.Join(keys(after[i]), "; "))
			}
			if err := matched(&b, &after[i][k]); err != nil {
				return nil, err
			}
			out = append(out, Pair{b, after[i][k]})
		}
		for _, a := range after[i] {
			if !slices.ContainsFunc(before[i], func(b Source) bool { return a.key() == b.key() }) {
				return nil, mismatch(before[i][0].File, a.File, "collective and launch", strings.Join(keys(before[i]), "; "), strings.TrimSpace(a.key()))
			}
		}
	}
	return out, nil
}

func keys(list []Source) []string {
	var out []string
	for _, s := range list {
		out = append(out, strings.TrimSpace(s.key()))
	}
	return out
}

// matched says what two sources of the same collective and launch differ in.
func matched(b, a *Source) error {
	for _, c := range []struct {
		what          string
		before, after any
	}{
		{"world size", b.World, a.World},
		{"dtype", b.DType, a.DType},
		{"GPU", b.GPU, a.GPU},
		{"collective", b.Collective, a.Collective},
		{"launch", b.Launch, a.Launch},
	} {
		if c.before != c.after {
			return mismatch(b.File, a.File, c.what, fmt.Sprint(c.before), fmt.Sprint(c.after))
		}
	}
	if x, y := b.sizes(), a.sizes(); !slices.Equal(x, y) {
		return mismatch(b.File, a.File, "sizes", fmt.Sprint(x), fmt.Sprint(y))
	}
	return nil
}

func (s *Source) sizes() []int64 {
	var out []int64
	for _, r := range s.Rows {
		out = append(out, r.Bytes)
	}
	return out
}

func mismatch(before, after, what, was, is string) error {
	return &api.InvalidError{Field: "after", Value: after, Reason: fmt.Sprintf("its %s: %s; that of %s: %s", what, is, before, was), Hint: "both reports of a pair are of one measurement; --collective and --launch leave out the others"}
}
