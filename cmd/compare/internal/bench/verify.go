package bench

import (
	"fmt"
	"math"
	"slices"

	"example.com/tandem/api"
)

// verify says what in a report does not follow from its samples: a figure that
// somebody changed, or rows that are of no call.
func (r *Report) verify() error {
	if len(r.Rows) > 0 && (r.Ranks < 1 || r.Ranks > api.MaxRanks) {
		return fmt.Errorf("%d ranks are no team (1 to %d)", r.Ranks, api.MaxRanks)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if err := r.verifyRow(row); err != nil {
			return fmt.Errorf("%s of %d bytes, %s, %s: %w", row.Collective, row.Bytes, row.Launch, row.Spec, err)
		}
	}
	if err := r.verifyFloors(); err != nil {
		return err
	}
	for _, g := range r.groups() {
		if err := r.verifyRatios(g); err != nil {
			return err
		}
	}
	if !slices.EqualFunc(r.Crossovers, r.crossovers(r.groups()), sameCrossover) {
		return fmt.Errorf("its crossovers do not follow from its times")
	}
	return r.verifyChanges()
}

// verifyRow holds one row to its call and its samples.
func (r *Report) verifyRow(row *Row) error {
	if !slices.Contains(r.Specs, row.Spec) {
		return fmt.Errorf("the report's specs are %v", r.Specs)
	}
	if row.Ranks != r.Ranks {
		return fmt.Errorf("it has %d ranks, the report %d", row.Ranks, r.Ranks)
	}
	if !slices.Contains(Launches(), row.Launch) {
		return fmt.Errorf("known launches are %v", Launches())
	}
	if fitted := row.Point; fitted.Fit() != nil || fitted.Bytes != row.Bytes {
		return fmt.Errorf("there is no such call")
	}
	if row.Refused != "" {
		return nil
	}
	if row.Calls < 1 || row.Sets < 1 {
		return fmt.Errorf("%d calls on %d sets of buffers are no sample", row.Calls, row.Sets)
	}
	if len(row.RankSamples) != row.Ranks {
		return fmt.Errorf("it has samples of %d ranks, not of %d", len(row.RankSamples), row.Ranks)
	}
	for rank, samples := range row.RankSamples {
		if len(samples) != r.Samples || len(samples) == 0 {
			return fmt.Errorf("it has %d samples of rank %d, not %d", len(samples), rank, r.Samples)
		}
	}
	again := Row{Point: row.Point, RankSamples: row.RankSamples}
	again.Summarise()
	for _, f := range []struct {
		name      string
		said, got float64
	}{{"us", row.Us, again.Us}, {"p10_us", row.P10, again.P10}, {"p90_us", row.P90, again.P90}, {"bus_gb_s", row.BusGBs, again.BusGBs}} {
		if !near(f.said, f.got) {
			return fmt.Errorf("%s is %v, and by its samples %v", f.name, f.said, f.got)
		}
	}
	if !slices.EqualFunc(row.RankUs, again.RankUs, near) {
		return fmt.Errorf("rank_us is %v, and by its samples %v", row.RankUs, again.RankUs)
	}
	if !slices.Equal(row.Outliers, again.Outliers) {
		return fmt.Errorf("outliers are %v, and by its samples %v", row.Outliers, again.Outliers)
	}
	return nil
}

func (r *Report) verifyFloors() error {
	f := r.Floors
	if f == nil {
		return nil
	}
	for _, v := range []float64{f.F0, f.F1, f.Copy, f.Push, f.Pull} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("its floors have %v", v)
		}
	}
	if !near(f.B, max(f.Copy, f.Push, f.Pull)) {
		return fmt.Errorf("its floors have b_gb_s of %v, which is not the best of %v, %v and %v", f.B, f.Copy, f.Push, f.Pull)
	}
	return nil
}

// verifyRatios holds ratios and floors of one point to its times. Intervals come
// of draws and are only looked at.
func (r *Report) verifyRatios(g group) error {
	first := &r.Rows[g.rows[0]]
	for _, i := range g.rows {
		row := &r.Rows[i]
		if q := row.Ratio; q != nil {
			if row.Refused != "" || i == g.rows[0] || q.To != first.Spec || first.Refused != "" || !near(q.Value, row.Us/first.Us) || !(0 < q.Low && q.Low <= q.High) || math.IsInf(q.High, 0) {
				return fmt.Errorf("%s of %d bytes, %s, %s: its ratio to %q is %v (%v to %v), and by its times another", row.Collective, row.Bytes, row.Launch, row.Spec, q.To, q.Value, q.Low, q.High)
			}
		}
		if row.FloorUs != 0 && (r.Floors == nil || !near(row.FloorUs, r.Floors.F1+row.wire()/r.Floors.B/1e3)) {
			return fmt.Errorf("%s of %d bytes, %s, %s: floor_us of %v does not follow from the floors", row.Collective, row.Bytes, row.Launch, row.Spec, row.FloorUs)
		}
	}
	return nil
}

func (r *Report) verifyChanges() error {
	for _, c := range r.Changes {
		i := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Point == c.Point && row.Spec == c.Spec })
		if i < 0 || r.Rows[i].Us != c.NewUs || !(c.OldUs > 0) || !near(c.Percent, 100*(c.NewUs/c.OldUs-1)) {
			return fmt.Errorf("%s of %d bytes, %s, %s: the change from %v to %v us by %v %% does not follow from the times", c.Collective, c.Bytes, c.Launch, c.Spec, c.OldUs, c.NewUs, c.Percent)
		}
	}
	return nil
}

// near is equality but for what different orders of rounding leave.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1)
}

// sameCrossover allows for logarithms that differ between processors.
func sameCrossover(a, b Crossover) bool {
	bytes := a.Bytes - b.Bytes
	a.Bytes = b.Bytes
	return a == b && bytes >= -1 && bytes <= 1
}
