package bench

import (
	"fmt"
	"math"
	"slices"

	"example.com/tandem/api"
)

// Change is a row beside the same row of an earlier report.
type Change struct {
	Point
	Spec    string  `json:"spec"`
	OldUs   float64 `json:"old_us"`
	NewUs   float64 `json:"new_us"`
	Percent float64 `json:"percent"` // of the old time; below 0 is faster
	Beyond  bool    `json:"beyond"`  // changed by more than was allowed
}

// Allowance names what must be unchanged: collectives or specs, within so many
// percent of the old time, faster or slower.
type Allowance struct {
	Names  []string
	Within float64
}

// Against puts the rows beside those of an earlier report, which stays as it is.
// It is an error if nothing can be put side by side, or if a name stands for
// nothing that can.
func (r *Report) Against(old *Report, a Allowance) error {
	if old.GPU != r.GPU {
		return &api.InvalidError{Field: "against", Value: old.GPU, Reason: "that report is of another GPU than " + r.GPU, Hint: "compare reports of one kind of GPU"}
	}
	seen := make([]bool, len(a.Names))
	for _, row := range r.Rows {
		i := slices.IndexFunc(old.Rows, func(o Row) bool { return o.Point == row.Point && o.Spec == row.Spec })
		if i < 0 || row.Refused != "" || old.Rows[i].Refused != "" || old.Rows[i].Us <= 0 {
			continue
		}
		c := Change{Point: row.Point, Spec: row.Spec, OldUs: old.Rows[i].Us, NewUs: row.Us, Percent: 100 * (row.Us/old.Rows[i].Us - 1)}
		for k, name := range a.Names {
			if name == row.Collective || name == row.Spec {
				seen[k] = true
				c.Beyond = c.Beyond || math.Abs(c.Percent) > a.Within
			}
		}
		r.Changes = append(r.Changes, c)
	}
	if len(r.Changes) == 0 {
		return &api.InvalidError{Field: "against", Value: fmt.Sprintf("%d rows", len(old.Rows)), Reason: "no row of that report is one of this run", Hint: "the same specs, collectives, sizes, dtype, ranks and launches"}
	}
	if k := slices.Index(seen, false); k >= 0 {
		return &api.InvalidError{Field: "unchanged", Value: a.Names[k], Reason: "no row that both reports have is of that name", Hint: "names of collectives or specs"}
	}
	return nil
}

// Broken reports whether anything changed beyond what was allowed.
func (r *Report) Broken() bool {
	return slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Beyond })
}
