package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"example.com/tandem/api"
)

// Side is a spec that is timed.
type Side struct {
	Spec string
	Team api.Team
}

// Config says what is timed and how.
type Config struct {
	Points  []Point
	Samples int
	WarmUp  int
	Calls   int // of a sample in a graph; an eager sample is one call
	L2      int64
	Floors  bool
	// LeaveOut says why the side of that number is not timed at a point; "" if it
	// is. May be nil.
	LeaveOut func(side int, p *Point) string
	// Progress is told what comes next; may be nil.
	Progress func(done, all int, what string)
}

// defaultL2 is assumed where nobody knows: more than any GPU in use.
const defaultL2 = 128 << 20

// Run times all points under all sides. What was measured before an error is in
// the report.
func Run(ctx context.Context, c Config, sides []Side) (*Report, error) {
	r := &Report{Schema: Schema, Samples: c.Samples, WarmUp: c.WarmUp, Rows: []Row{}, Crossovers: []Crossover{}}
	for _, s := range sides {
		r.Specs = append(r.Specs, s.Spec)
	}
	if c.L2 == 0 {
		c.L2 = defaultL2
	}
	err := c.run(ctx, sides, r)
	r.conclude()
	if err == nil {
		err = r.nothing()
	}
	if err != nil {
		r.Incomplete = line(err)
	}
	return r, err
}

func (c *Config) run(ctx context.Context, sides []Side, r *Report) error {
	if len(c.Points) == 0 || len(sides) == 0 || c.Samples < 1 {
		return &api.InvalidError{Field: "bench", Reason: "there is nothing to time"}
	}
	r.Ranks = c.Points[0].Ranks
	if c.Floors {
		var err error
		if r.Floors, err = c.floors(ctx, sides[0], &c.Points[0]); err != nil {
			return fmt.Errorf("the floors: %w", err)
		}
	}
	for i, p := range c.Points {
		if c.Progress != nil {
			c.Progress(i, len(c.Points), fmt.Sprintf("%s %s %d bytes", p.Collective, p.Launch, p.Bytes))
		}
		rows, err := c.point(ctx, sides, p)
		r.Rows = append(r.Rows, rows...)
		if err != nil {
			return fmt.Errorf("%s of %d bytes, %s: %w", p.Collective, p.Bytes, p.Launch, err)
		}
	}
	return nil
}

// Timed reports whether any row has a time.
func (r *Report) Timed() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Refused == "" })
}

// nothing is an error where no row has a time.
func (r *Report) nothing() error {
	if r.Timed() {
		return nil
	}
	return &api.Refused{Spec: r.Rows[0].Spec, What: "timing", Reason: r.Rows[0].Refused}
}

// course is one side at one point.
type course struct {
	row   Row
	timed api.Timed
	gaps  []float64 // of each rank: what the gaps of a sample take by themselves
	ranks [][]float64
}

// point times one point under all sides.
func (c *Config) point(ctx context.Context, sides []Side, p Point) (rows []Row, err error) {
	var all []*course
	defer func() {
		for _, k := range all {
			if k.timed != nil {
				err = errors.Join(err, k.timed.Close())
			}
		}
	}()
	for i, s := range sides {
		if c.LeaveOut != nil {
			if why := c.LeaveOut(i, &p); why != "" {
				all = append(all, &course{row: Row{Point: p, Spec: s.Spec, Refused: why}})
				continue
			}
		}
		k, err := c.open(ctx, s, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Spec, err)
		}
		all = append(all, k)
	}
	if err := c.sample(ctx, all); err != nil {
		return nil, err
	}
	for _, k := range all {
		rows = append(rows, k.finish())
	}
	return rows, nil
}

// open makes a side ready; that it refuses the call is no error.
func (c *Config) open(ctx context.Context, s Side, p Point) (*course, error) {
	k := &course{row: Row{Spec: s.Spec, Calls: c.Calls}}
	call, err := p.call()
	if err != nil {
		return nil, err
	}
	k.row.Point = p
	timer, ok := s.Team.(api.Timer)
	if !ok {
		return nil, &api.Refused{Spec: s.Spec, What: "timing", Reason: "it runs on no device that tells the time", Hint: "hw: specs"}
	}
	if p.Launch == Eager {
		k.row.Calls = 1
	}
	k.row.Sets = sets(&call, c.L2, k.row.Calls)
	what := api.Timing{Call: call, Calls: k.row.Calls, Graph: p.Launch != Eager, Sets: k.row.Sets, Gap: microseconds(p.Gap)}
	if p.Launch == Gaps {
		if k.gaps, err = c.alone(ctx, timer, what); err != nil {
			return k.refused(err)
		}
	}
	if k.timed, err = timer.Time(ctx, what); err != nil {
		return k.refused(err)
	}
	return k, nil
}

func (k *course) refused(err error) (*course, error) {
	if !errors.Is(err, api.ErrRefused) {
		return nil, err
	}
	k.row.Refused = line(err)
	return k, nil
}

// line is an error on one line.
func line(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func microseconds(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }

// alone is each rank's median of the gaps without calls.
func (c *Config) alone(ctx context.Context, timer api.Timer, what api.Timing) ([]float64, error) {
	what.Work = api.WorkNothing
	m, err := timer.Time(ctx, what)
	if err != nil {
		return nil, err
	}
	k := &course{timed: m}
	err = errors.Join(c.sample(ctx, []*course{k}), m.Close())
	medians, _ := slowest(k.ranks)
	return medians, err
}

// sample warms up and takes samples, the sides by turns: each sample begins with
// another of them.
func (c *Config) sample(ctx context.Context, all []*course) error {
	var taking []*course
	for _, k := range all {
		if k.timed != nil {
			taking = append(taking, k)
		}
	}
	for n := range c.WarmUp + c.Samples {
		for i := range taking {
			k := taking[(i+n)%len(taking)]
			if err := k.timed.Prepare(ctx); err != nil {
				return fmt.Errorf("%s: %w", k.row.Spec, err)
			}
			took, err := k.timed.Sample(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", k.row.Spec, err)
			}
			if n >= c.WarmUp {
				k.keep(took)
			}
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// keep notes a sample: microseconds of all calls together.
func (k *course) keep(took []time.Duration) {
	if k.ranks == nil {
		k.ranks = make([][]float64, len(took))
	}
	for r, d := range took {
		k.ranks[r] = append(k.ranks[r], float64(d.Nanoseconds())/1e3)
	}
}

// finish makes the row of the samples.
func (k *course) finish() Row {
	row := k.row
	if row.Refused != "" {
		return row
	}
	for r, list := range k.ranks {
		var per []float64
		for _, us := range list {
			if k.gaps != nil {
				us -= k.gaps[r]
			}
			per = append(per, round(us/float64(row.Calls)))
		}
		row.RankSamples = append(row.RankSamples, per)
	}
	row.Summarise()
	if row.Us <= 0 {
		return Row{Point: row.Point, Spec: row.Spec, Calls: row.Calls, Sets: row.Sets, Refused: "its calls take no time, as on a virtual GPU"}
	}
	if k.gaps != nil {
		row.GapUs = k.gaps[0] / float64(row.Calls)
	}
	return row
}

// round keeps a tenth of a nanosecond, which no event tells.
func round(us float64) float64 { return math.Round(us*1e4) / 1e4 }

// Summarise computes what follows from the samples, of which each rank has at
// least one.
func (r *Row) Summarise() {
	medians, rank := slowest(r.RankSamples)
	samples := r.RankSamples[rank]
	r.RankUs, r.Us = medians, medians[rank]
	r.P10, r.P90 = percentile(samples, 10), percentile(samples, 90)
	r.Outliers = outliers(samples)
	if r.Us > 0 {
		r.BusGBs = r.wire() / r.Us / 1e3
	}
}
