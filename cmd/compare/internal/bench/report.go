package bench

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"

	"example.com/tandem/api"
)

// Schema names the JSON form of a Report.
const Schema = "tandem.bench/1"

// Report is what a run found. Times are microseconds a call.
type Report struct {
	Schema      string            `json:"schema"`
	Environment map[string]string `json:"environment"`
	Flags       []string          `json:"flags"` // the command line
	Notes       string            `json:"notes"`
	GPU         string            `json:"gpu"`
	Ranks       int               `json:"ranks"`
	Specs       []string          `json:"specs"`
	Samples     int               `json:"samples"`
	WarmUp      int               `json:"warm_up"`
	Floors      *Floors           `json:"floors"`
	Rows        []Row             `json:"rows"`
	Crossovers  []Crossover       `json:"crossovers"`
	Changes     []Change          `json:"changes,omitempty"`
	// Incomplete says why rows are missing; "" if none is.
	Incomplete string `json:"incomplete,omitempty"`
}

// Row is one call under one spec in one form of launch.
type Row struct {
	Point
	Spec  string `json:"spec"`
	Calls int    `json:"calls"` // of a sample
	Sets  int    `json:"sets"`  // of buffers, taken in turn
	// Refused says why the spec does not take the call; the rest is then empty.
	Refused string `json:"refused,omitempty"`
	// Us is the time: the slowest rank's median. RankUs are all medians.
	Us     float64   `json:"us"`
	RankUs []float64 `json:"rank_us"`
	// P10 and P90 are percentiles of the slowest rank's samples.
	P10 float64 `json:"p10_us"`
	P90 float64 `json:"p90_us"`
	// GapUs is what one gap takes by itself; it is not in Us.
	GapUs float64 `json:"gap_us,omitempty"`
	// BusGBs is bus bandwidth: the bytes that a rank must send at least, by
	// time.
	BusGBs float64 `json:"bus_gb_s"`
	// Outliers are samples of the slowest rank far from the others, by number.
	Outliers []int  `json:"outliers"`
	Ratio    *Ratio `json:"ratio,omitempty"`
	// FloorUs is F1 + bytes/B, the time that nothing goes below.
	FloorUs float64 `json:"floor_us,omitempty"`
	// RankSamples are all samples, by rank and in order.
	RankSamples [][]float64 `json:"rank_samples_us"`
}

// Point is what is timed; rows of two reports with equal points and specs are
// comparable.
type Point struct {
	Collective string  `json:"collective"`
	DType      string  `json:"dtype"`
	Op         string  `json:"op,omitempty"`
	Ranks      int     `json:"ranks"`
	Bytes      int64   `json:"bytes"` // of a rank's source
	Lanes      int     `json:"lanes,omitempty"`
	SrcOffset  int64   `json:"src_offset,omitempty"` // elements
	DstOffset  int64   `json:"dst_offset,omitempty"`
	InPlace    bool    `json:"in_place,omitempty"`
	Launch     Launch  `json:"launch"`
	Gap        float64 `json:"gap,omitempty"` // microseconds asked for
}

// Launch is a form of launching.
type Launch string

// The forms.
const (
	Eager Launch = "eager" // each call by itself
	Graph Launch = "graph" // a graph of calls back to back
	Gaps  Launch = "gap"   // a graph of calls with a busy kernel after each
)

// Launches lists the forms.
func Launches() []Launch { return []Launch{Eager, Graph, Gaps} }

// Ratio is a spec's time by that of the first spec: above 1 the first is faster.
// Low and High are the ends of a 95 % bootstrap interval.
type Ratio struct {
	To    string  `json:"to"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Floors are times and rates of next to nothing, in the same run.
type Floors struct {
	Launch Launch  `json:"launch"`
	F0     float64 `json:"f0_us"` // a kernel that does nothing
	F1     float64 `json:"f1_us"` // one with a flag from every GPU to every other
	// The rates, in 10^9 bytes a second, at which each GPU sends while all do.
	Bytes int64   `json:"bytes"`
	Copy  float64 `json:"copy_gb_s"` // copy engine
	Push  float64 `json:"push_gb_s"` // stores of 16 bytes
	Pull  float64 `json:"pull_gb_s"` // loads of 16 bytes
	B     float64 `json:"b_gb_s"`    // the best of the three; 0 on one GPU
}

// Crossover is a size at which one of two specs begins to be the faster.
type Crossover struct {
	Point
	From   string `json:"from"`   // faster below
	To     string `json:"to"`     // faster from here on
	Below  int64  `json:"below"`  // the last size measured below
	Beyond int64  `json:"beyond"` // the first size measured beyond
}

// Write writes the report as JSON, a line for each row.
func (r *Report) Write(w io.Writer) error {
	head := *r
	head.Rows = []Row{}
	b, err := json.MarshalIndent(&head, "", " ")
	if err != nil {
		return fmt.Errorf("cannot write the report as JSON: %w", err)
	}
	before, after, _ := bytes.Cut(b, []byte(`"rows": []`))
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(`"rows": [`)
	for i := range r.Rows {
		row, err := json.Marshal(&r.Rows[i])
		if err != nil {
			return fmt.Errorf("cannot write the report as JSON: %w", err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n  ")
		out.Write(row)
	}
	out.WriteByte(']')
	out.Write(append(after, '\n'))
	_, err = w.Write(out.Bytes())
	return err
}

// maxReport bounds what is read of a report.
const maxReport = 256 << 20

// Bytes reads a file, and unpacks it where its name ends in .gz.
func Bytes(name string) ([]byte, error) {
	f, err := api.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	b, err := io.ReadAll(io.LimitReader(in, maxReport+1))
	if err == nil && len(b) > maxReport {
		err = fmt.Errorf("more than the %d bytes that a report may have", maxReport)
	}
	return b, err
}

// Read reads a report that Write wrote. One whose figures do not follow from its
// samples is refused.
func Read(name string) (*Report, error) {
	bad := func(reason string) error {
		return &api.InvalidError{Field: "report", Value: name, Reason: reason, Hint: "compare bench writes reports with -o"}
	}
	text, err := Bytes(name)
	if err != nil {
		return nil, bad(err.Error())
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var r Report
	if err := d.Decode(&r); err != nil {
		return nil, bad("it cannot be read: " + err.Error())
	}
	if r.Schema != Schema {
		return nil, bad(fmt.Sprintf("its schema is %q, not %q", r.Schema, Schema))
	}
	if len(r.Rows) == 0 && r.Incomplete == "" {
		return nil, bad("it has no rows")
	}
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Refused == "" && (!(row.Us > 0) || math.IsInf(row.Us, 0)) {
			return nil, bad(fmt.Sprintf("a row of %d bytes took %v us", row.Bytes, row.Us))
		}
	}
	for _, text := range r.shown() {
		if strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
			return nil, bad(fmt.Sprintf("%.40q is no name", text))
		}
	}
	if err := r.verify(); err != nil {
		return nil, bad(err.Error())
	}
	return &r, nil
}

// shown are the texts that end up on a terminal.
func (r *Report) shown() []string {
	point := func(p Point) []string { return []string{p.Collective, p.DType, p.Op, string(p.Launch)} }
	out := append([]string{r.GPU, r.Incomplete}, r.Specs...)
	for i := range r.Rows {
		row := &r.Rows[i]
		out = append(append(out, point(row.Point)...), row.Spec, row.Refused)
	}
	for _, c := range r.Crossovers {
		out = append(append(out, point(c.Point)...), c.From, c.To)
	}
	for _, c := range r.Changes {
		out = append(append(out, point(c.Point)...), c.Spec)
	}
	return out
}
