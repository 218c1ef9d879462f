package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// Schema names the format of a report; a profile for the simulator is a report.
const Schema = "tandem.nvls_profile/1"

// Options of a probe; the zero value probes 4 ranks, the four float types that
// switches reduce, and 32768 elements a call.
type Options struct {
	Ranks  int
	DTypes []api.DType
	Count  int64
}

// Report is what a probe found.
type Report struct {
	Schema string `json:"schema"`
	Of     string `json:"of"`
	Cells  []Cell `json:"cells"`
	// Refused are the cells that the target does not do, and why.
	Refused []string `json:"refused,omitempty"`
}

// Cell is the arithmetic of one operation on one type.
type Cell struct {
	DType string `json:"dtype"`
	Op    string `json:"op"`
	Ranks int    `json:"ranks"`
	// Exact says that every output was the model's, bit for bit.
	Exact    bool     `json:"exact"`
	Verdict  string   `json:"verdict"`
	Evidence []string `json:"evidence"`
	Model    Model    `json:"model"`
}

// MaxRanks bounds a probe: masks grow with the square.
const MaxRanks = 16

// Run probes sums, mins and maxs of the types. What the target refuses is listed;
// other errors end the probe.
func Run(ctx context.Context, t Target, of string, o Options) (*Report, error) {
	if o.Ranks == 0 {
		o.Ranks = 4
	}
	if o.Ranks < 3 || o.Ranks > MaxRanks {
		reason := "fewer than three ranks have no order to find"
		if o.Ranks > MaxRanks {
			reason = "what is asked grows with the square of the ranks, and takes too long"
		}
		return nil, &api.InvalidError{Field: "ranks", Value: fmt.Sprint(o.Ranks), Reason: reason, Hint: fmt.Sprintf("3 to %d", MaxRanks)}
	}
	if o.Count == 0 {
		o.Count = 32768
	}
	if o.Count < 1 || o.Count > 1<<24 {
		return nil, &api.InvalidError{Field: "count", Value: fmt.Sprint(o.Count), Reason: "out of range", Hint: "1 to 16777216 elements a call"}
	}
	if len(o.DTypes) == 0 {
		o.DTypes = []api.DType{api.BF16, api.F16, api.F32, api.F64}
	}
	rep := &Report{Schema: Schema, Of: of, Cells: []Cell{}}
	for _, d := range o.DTypes {
		if !d.Float() || d.Size() == 1 {
			return nil, &api.InvalidError{Field: "dtype", Value: d.String(), Reason: "not probed", Hint: "bf16, f16, f32 and f64"}
		}
		for _, op := range []api.Op{api.Sum, api.Min, api.Max} {
			a := &asker{ctx: ctx, target: t, d: d, op: op, ranks: o.Ranks, count: o.Count}
			probe := a.sum
			if op != api.Sum {
				probe = a.minMax
			}
			cell, err := probe()
			if errors.Is(err, api.ErrRefused) || errors.Is(err, api.ErrFault) {
				rep.Refused = append(rep.Refused, fmt.Sprintf("%s of %s: %s", op, d, why(err)))
				continue
			}
			if err != nil {
				return nil, err
			}
			rep.Cells = append(rep.Cells, *cell)
		}
	}
	if len(rep.Cells) == 0 {
		return rep, &api.Refused{Spec: of, What: "every cell", Reason: "nothing could be probed: " + strings.Join(rep.Refused, "; "), Hint: "other dtypes, ranks or count"}
	}
	return rep, nil
}

// why is the reason of a refusal without what was asked, which the report says.
func why(err error) string {
	var refused *api.Refused
	if errors.As(err, &refused) {
		return refused.Reason
	}
	return err.Error()
}

// asker asks for one cell.
type asker struct {
	ctx    context.Context
	target Target
	d      api.DType
	op     api.Op
	ranks  int
	count  int64
}

// samples gives, by rank and vector, the outputs, at least one, of vectors that
// fill a buffer, one after another, over and over.
func (a *asker) samples(vectors [][]uint64) ([][][]uint64, error) {
	n := int64(len(vectors))
	// Whole words for every rank, so that no remainder goes another way.
	whole := int64(16 * a.ranks)
	count := (max(a.count, n) + whole - 1) / whole * whole
	out, err := a.target.Reduce(a.ctx, a.d, a.op, a.ranks, count, func(rank int, i int64) uint64 { return vectors[i%n][rank] })
	if err != nil {
		return nil, err
	}
	by := make([][][]uint64, a.ranks)
	for r := range by {
		by[r] = make([][]uint64, n)
		for i, b := range out[r] {
			by[r][int64(i)%n] = append(by[r][int64(i)%n], b)
		}
	}
	return by, nil
}

// vector is an input of every rank, zeros but for the first ones.
func (a *asker) vector(first ...uint64) []uint64 {
	v := make([]uint64, a.ranks)
	copy(v, first)
	return v
}

// power is 2^e as a pattern.
func (a *asker) power(e int) uint64 { return powerOf(a.d, e) }

func powerOf(d api.DType, e int) uint64 {
	if e >= 1-d.Bias() {
		return uint64(e+d.Bias()) << d.MantissaBits()
	}
	return 1 << (e - lowest(d))
}

func (a *asker) neg(b uint64) uint64 { return num.Neg(a.d, b) }

// sum probes a sum.
func (a *asker) sum() (*Cell, error) {
	c := &Cell{DType: a.d.String(), Op: a.op.String(), Ranks: a.ranks}
	f := &fit{asker: a, cell: c, m: &c.Model}
	for _, step := range []func() error{f.structure, f.rounding, f.window, f.specials, f.verify} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	f.conclude()
	return c, nil
}

// fit is a sum's cell as it is filled in.
type fit struct {
	*asker
	cell  *Cell
	m     *Model
	trees []*node // by rank, of a sum step by step
	// mixed says that one vector gave more than one result.
	mixed   bool
	follows bool // the share rounded up follows the fraction
	strange []string
	differ  bool // the ranks disagree
}

func (f *fit) say(format string, args ...any) {
	f.cell.Evidence = append(f.cell.Evidence, fmt.Sprintf(format, args...))
}

// odd notes what no model explains.
func (f *fit) odd(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.strange = append(f.strange, text)
	f.say("%s", text)
}

// conclude writes the verdict.
func (f *fit) conclude() {
	c := f.cell
	c.Exact = len(f.strange) == 0 && !f.mixed && !f.differ
	switch {
	case len(f.strange) > 0:
		c.Verdict = "no model in the parameter space explains it: " + f.strange[0]
	case f.mixed:
		c.Verdict = "faithful, direction not a function of the inputs: " + f.m.String()
	case f.differ:
		c.Verdict = "exact on every rank, and the ranks differ: " + f.m.String()
	default:
		c.Verdict = "exact: " + f.m.String()
	}
	f.m.Name = "probed"
}
