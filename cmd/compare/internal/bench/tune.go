package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"example.com/tandem/api"
)

// TuneSchema names the JSON form of a Table.
const TuneSchema = "tandem.tune/1"

// Table says which parameters of an implementation were the fastest, by collective
// and size, on one kind of GPU, link and world.
type Table struct {
	Schema      string            `json:"schema"`
	Environment map[string]string `json:"environment"`
	Spec        string            `json:"spec"` // what the parameters are added to
	GPU         string            `json:"gpu"`
	LinkGBs     float64           `json:"link_gb_s"` // B of Floors
	Ranks       int               `json:"ranks"`
	DType       string            `json:"dtype"`
	Entries     []TableEntry      `json:"entries"`
}

// TableEntry is what is fastest from a size on, up to the next entry of the same
// collective. The first entry of a collective is the smallest size measured.
type TableEntry struct {
	Collective string            `json:"collective"`
	FromBytes  int64             `json:"from_bytes"` // of a rank's source
	Params     map[string]string `json:"params"`
	Us         float64           `json:"us"` // at that size
}

// worthIt is by how much another choice must be faster to be taken: a table that
// changes its mind at every size says nothing.
const worthIt = 0.02

// Candidate is parameters that a tuner tries.
type Candidate struct {
	Params map[string]string
	// MaxBytes is the largest source that they are of use for; 0 is any.
	MaxBytes int64
}

// LeaveOut is for Config: candidates are not timed beyond what they are of use
// for.
func LeaveOut(all []Candidate) func(side int, p *Point) string {
	return func(side int, p *Point) string {
		if m := all[side].MaxBytes; m > 0 && p.Bytes > m {
			return fmt.Sprintf("of no use beyond %d bytes", m)
		}
		return ""
	}
}

// Tune makes the table of a report whose specs are those of the candidates, in
// order.
func Tune(r *Report, base api.Spec, all []Candidate) (*Table, error) {
	if len(all) != len(r.Specs) {
		return nil, &api.InvalidError{Field: "tune", Value: fmt.Sprint(len(r.Specs)), Reason: fmt.Sprintf("there are %d candidates", len(all))}
	}
	t := &Table{Schema: TuneSchema, Environment: r.Environment, Spec: base.String(), GPU: r.GPU, Ranks: r.Ranks, Entries: []TableEntry{}}
	if r.Floors != nil {
		t.LinkGBs = r.Floors.B
	}
	last, lastOf := -1, ""
	for _, g := range r.groups() {
		t.DType = g.point.DType
		if g.point.Collective != lastOf {
			last, lastOf = -1, g.point.Collective
		}
		k := r.choose(g, all, last)
		if k < 0 || k == last {
			continue
		}
		last = k
		t.Entries = append(t.Entries, TableEntry{Collective: g.point.Collective, FromBytes: g.point.Bytes, Params: all[k].Params, Us: r.Rows[g.rows[k]].Us})
	}
	if len(t.Entries) == 0 {
		return nil, &api.Refused{Spec: base.String(), What: "tuning", Reason: "no candidate has a time"}
	}
	return t, nil
}

// choose is the candidate for a point: the one of the size before where it is all
// but the fastest, else the first that is.
func (r *Report) choose(g group, all []Candidate, last int) int {
	var fit []int
	best := -1.0
	for k, n := range g.rows {
		row := &r.Rows[n]
		if row.Refused != "" {
			continue
		}
		fit = append(fit, k)
		if best < 0 || row.Us < best {
			best = row.Us
		}
	}
	near := slices.DeleteFunc(fit, func(k int) bool { return r.Rows[g.rows[k]].Us > best*(1+worthIt) })
	switch {
	case len(near) == 0:
		return -1
	case slices.Contains(near, last):
		return last
	}
	return near[0]
}

// Write writes the table as JSON.
func (t *Table) Write(w io.Writer) error {
	b, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return fmt.Errorf("cannot write the table as JSON: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
