package figure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/bench"
)

// Source is the rows of one report that may be drawn together: one measurement.
type Source struct {
	File       string
	Collective string
	Launch     string
	DType      string
	GPU        string
	World      int
	Note       string // what else tells measurements of one collective apart
	Label      string // of the times
	Reference  string // label of the reference; "" if there is none
	Rows       []Row  // by size
}

// Row is the times at one size, in microseconds.
type Row struct {
	Bytes     int64 // of a rank's source
	Us        float64
	Reference float64 // 0 where there is none
}

// Select says which rows are taken; the zero value takes all collectives, the
// first spec, and NCCL as the reference.
type Select struct {
	Collectives []string
	Launches    []string
	Spec        string
	Reference   string
}

// kindRL is the kind of RL-Kernel's reports.
const kindRL = "deterministic_collectives_benchmark"

// Load reads the sources of a file, sorted by collective and launch.
func Load(name string, sel Select) ([]Source, error) {
	bad := func(reason string) error {
		return &api.InvalidError{Field: "report", Value: name, Reason: reason, Hint: "a report of compare bench, or of RL-Kernel's benchmark"}
	}
	text, err := bench.Bytes(name)
	if err != nil {
		return nil, bad(err.Error())
	}
	var head struct {
		Schema string `json:"schema"`
		Kind   string `json:"kind"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, bad("it cannot be read: " + err.Error())
	}
	var out []Source
	switch {
	case head.Schema == bench.Schema:
		r, err := bench.Read(name)
		if err != nil {
			return nil, err
		}
		out, err = ofBench(r, sel)
		if err != nil {
			return nil, bad(err.Error())
		}
	case head.Kind == kindRL:
		if out, err = ofRL(text); err != nil {
			return nil, bad(err.Error())
		}
	default:
		return nil, bad(fmt.Sprintf("it is no report: schema %q, kind %q", head.Schema, head.Kind))
	}
	there := keys(out)
	out = slices.DeleteFunc(out, func(s Source) bool {
		return len(sel.Collectives) > 0 && !slices.Contains(sel.Collectives, s.Collective) ||
			len(sel.Launches) > 0 && !slices.Contains(sel.Launches, s.Launch)
	})
	for i := range out {
		out[i].File = name
		if err := out[i].sort(); err != nil {
			return nil, bad(err.Error())
		}
	}
	if len(out) == 0 {
		slices.Sort(there)
		return nil, bad(fmt.Sprintf("it has no row that was asked for, of the collective and launch that --collective and --launch name; it has %s", cmp.Or(strings.Join(there, "; "), "none at all")))
	}
	slices.SortFunc(out, func(a, b Source) int { return cmp.Compare(a.key(), b.key()) })
	return out, nil
}

// key tells the sources of one file apart.
func (s *Source) key() string { return s.Collective + " " + s.Launch + " " + s.Note }

// maxTime is more than any call takes, in microseconds.
const maxTime = 1e12

// sort puts the rows in the order of their sizes, whatever order the file has.
func (s *Source) sort() error {
	slices.SortFunc(s.Rows, func(a, b Row) int { return cmp.Compare(a.Bytes, b.Bytes) })
	for i, r := range s.Rows {
		if i > 0 && s.Rows[i-1].Bytes == r.Bytes {
			return fmt.Errorf("%s has two rows of %d bytes", strings.TrimSpace(s.key()), r.Bytes)
		}
		if !(r.Us > 0) || r.Us > maxTime || r.Bytes < 1 || !(r.Reference >= 0) || r.Reference > maxTime {
			return fmt.Errorf("%s at %d bytes: %v us cannot be drawn on a logarithmic axis", strings.TrimSpace(s.key()), r.Bytes, r.Us)
		}
	}
	return nil
}

// ofBench takes the rows of one spec, and those of the reference beside them.
func ofBench(r *bench.Report, sel Select) ([]Source, error) {
	spec, reference := sel.Spec, sel.Reference
	if spec == "" && len(r.Specs) > 0 {
		spec = r.Specs[0]
	}
	if !slices.Contains(r.Specs, spec) {
		return nil, fmt.Errorf("it has no times of %q, but of %v", spec, r.Specs)
	}
	if reference == "" && spec != defaultReference && slices.Contains(r.Specs, defaultReference) {
		reference = defaultReference
	}
	if reference == spec {
		reference = ""
	}
	if reference != "" && !slices.Contains(r.Specs, reference) {
		return nil, fmt.Errorf("it has no times of the reference %q, but of %v", reference, r.Specs)
	}
	times := map[bench.Point]float64{}
	for _, row := range r.Rows {
		if row.Spec == reference && row.Refused == "" {
			times[row.Point] = row.Us
		}
	}
	var out []Source
	for _, row := range r.Rows {
		if row.Spec != spec || row.Refused != "" {
			continue
		}
		s := Source{Collective: row.Collective, Launch: string(row.Launch), DType: row.DType, GPU: r.GPU, World: row.Ranks, Note: note(row.Point), Label: spec, Reference: reference}
		i := slices.IndexFunc(out, func(o Source) bool { return o.key() == s.key() })
		if i < 0 {
			i = len(out)
			out = append(out, s)
		}
		if o := &out[i]; o.DType != s.DType || o.World != s.World {
			return nil, fmt.Errorf("%s is there in two dtypes or world sizes", row.Collective)
		}
		out[i].Rows = append(out[i].Rows, Row{row.Bytes, row.Us, times[row.Point]})
	}
	return out, nil
}

const defaultReference = "hw:nccl"

// note is what else two rows of a collective may differ in.
func note(p bench.Point) string {
	p.Collective, p.DType, p.Ranks, p.Bytes, p.Launch = "", "", 0, 0, ""
	if p == (bench.Point{}) {
		return ""
	}
	var parts []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(p.Op != "", "%s", p.Op)
	add(p.Gap > 0, "gap %g us", p.Gap)
	add(p.Lanes > 0, "%d lanes", p.Lanes)
	add(p.SrcOffset != 0 || p.DstOffset != 0, "offsets %d, %d", p.SrcOffset, p.DstOffset)
	add(p.InPlace, "in place")
	return strings.Join(parts, ", ")
}
