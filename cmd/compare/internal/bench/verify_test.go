package bench

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// measured is a report of two specs whose times cross, with everything in it that
// a report can have.
func measured(t *testing.T) *Report {
	rng := rand.New(rand.NewPCG(3, 4))
	noisy := func(us func(bytes int64) float64) func(api.Timing, int, int) float64 {
		return func(x api.Timing, rank, _ int) float64 {
			return us(x.Call.SrcElems(0)*2) * (1 + 0.05*rng.Float64()) * float64(rank+1)
		}
	}
	sides := []Side{
		{"a", &fakeTeam{w: &world{}, us: noisy(func(n int64) float64 { return 2 + float64(n)/1024 })}},
		{"b", &fakeTeam{w: &world{}, us: noisy(func(n int64) float64 { return 5 + float64(n)/4096 })}},
	}
	p := append(points(Graph, 1024, 4096, 16384), points(Gaps, 1024, 4096)...)
	r, err := Run(context.Background(), Config{Points: p, Samples: 30, Calls: 4, Floors: true}, sides)
	require.NoError(t, err)
	r.GPU = "G"
	old := *r
	require.NoError(t, r.Against(&old, Allowance{Names: []string{"a"}, Within: 1}))
	require.NotEmpty(t, r.Crossovers)
	require.NotNil(t, r.Rows[1].Ratio)
	require.NotZero(t, r.Rows[0].FloorUs)
	require.Len(t, r.Changes, len(r.Rows))
	return r
}

// TestFiguresFollowFromSamples changes one figure of a report at a time, by as
// little as shows, and each report is refused; the one that was measured is not.
func TestFiguresFollowFromSamples(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.json")
	read := func(r *Report) error {
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, text, 0o600))
		_, err = Read(name)
		return err
	}
	good, err := json.Marshal(measured(t))
	require.NoError(t, err)
	fresh := func() *Report {
		var r Report
		require.NoError(t, json.Unmarshal(good, &r))
		return &r
	}
	require.NoError(t, read(fresh()))
	for what, c := range map[string]struct {
		change func(*Report)
		says   string
	}{
		"us":             {func(r *Report) { r.Rows[3].Us *= 1 + 1e-6 }, "us is"},
		"us of the best": {func(r *Report) { r.Rows[0].Us = r.Rows[0].RankUs[0] }, "us is"},
		"rank us":        {func(r *Report) { r.Rows[2].RankUs[0] *= 0.999 }, "rank_us is"},
		"p10":            {func(r *Report) { r.Rows[2].P10 *= 0.999 }, "p10_us"},
		"p90":            {func(r *Report) { r.Rows[2].P90 *= 1.001 }, "p90_us"},
		"bandwidth":      {func(r *Report) { r.Rows[2].BusGBs *= 2 }, "bus_gb_s"},
		"outliers":       {func(r *Report) { r.Rows[2].Outliers = []int{1} }, "outliers are [1]"},
		"a sample":       {func(r *Report) { r.Rows[1].RankSamples[1][7] = 0 }, "by its samples"},
		"samples": {func(r *Report) { r.Rows[1].RankSamples[1] = r.Rows[1].RankSamples[1][1:] },
			"29 samples of rank 1, not 30"},
		"samples of all": {func(r *Report) { r.Samples = 31 }, "30 samples of rank 0, not 31"},
		"no samples":     {func(r *Report) { r.Rows[1].RankSamples = nil }, "samples of 0 ranks, not of 2"},
		"empty samples":  {func(r *Report) { r.Samples, r.Rows[0].RankSamples = 0, [][]float64{{}, {}} }, "0 samples of rank 0"},
		"ranks":          {func(r *Report) { r.Ranks = 1e9 }, "1000000000 ranks are no team (1 to 1024)"},
		"ranks of a row": {func(r *Report) { r.Rows[1].Ranks = 3 }, "it has 3 ranks, the report 2"},
		"all ranks": {func(r *Report) {
			r.Ranks = 3
			for i := range r.Rows {
				r.Rows[i].Ranks = 3
			}
		}, "samples of 2 ranks, not of 3"},
		"bytes":          {func(r *Report) { r.Rows[1].Bytes = 1025 }, "there is no such call"},
		"no bytes":       {func(r *Report) { r.Rows[1].Bytes = -2 }, "there is no such call"},
		"dtype":          {func(r *Report) { r.Rows[1].DType = "b16" }, "there is no such call"},
		"launch":         {func(r *Report) { r.Rows[1].Launch = "lazy" }, "known launches are [eager graph gap]"},
		"spec":           {func(r *Report) { r.Rows[1].Spec = "c" }, "the report's specs are [a b]"},
		"calls":          {func(r *Report) { r.Rows[1].Calls = 0 }, "no sample"},
		"sets":           {func(r *Report) { r.Rows[1].Sets = 0 }, "no sample"},
		"ratio":          {func(r *Report) { r.Rows[1].Ratio.Value *= 1.001 }, "its ratio to"},
		"ratio to":       {func(r *Report) { r.Rows[1].Ratio.To = "b" }, "its ratio to"},
		"interval":       {func(r *Report) { r.Rows[1].Ratio.Low = r.Rows[1].Ratio.High * 2 }, "its ratio to"},
		"low end":        {func(r *Report) { r.Rows[1].Ratio.Low = 0 }, "its ratio to"},
		"ratio of first": {func(r *Report) { r.Rows[0].Ratio = &Ratio{To: "a", Value: 1, Low: 1, High: 1} }, "its ratio to"},
		"floor":          {func(r *Report) { r.Rows[1].FloorUs *= 1.001 }, "floor_us"},
		"no floors":      {func(r *Report) { r.Floors = nil }, "floor_us"},
		"rate":           {func(r *Report) { r.Floors.B *= 2 }, "b_gb_s"},
		"negative floor": {func(r *Report) { r.Floors.F0 = -1 }, "its floors have -1"},
		"crossover":      {func(r *Report) { r.Crossovers[0].Bytes += 2 }, "crossovers"},
		"no crossover":   {func(r *Report) { r.Crossovers = nil }, "crossovers"},
		"change":         {func(r *Report) { r.Changes[0].Percent += 1 }, "change from"},
		"change from":    {func(r *Report) { r.Changes[0].OldUs = 0 }, "change from"},
		"change to":      {func(r *Report) { r.Changes[0].NewUs++ }, "change from"},
		"change of none": {func(r *Report) { r.Changes[0].Spec = "c" }, "change from"},
	} {
		r := fresh()
		c.change(r)
		err := read(r)
		require.ErrorIs(t, err, api.ErrInvalid, what)
		require.ErrorContains(t, err, c.says, what)
	}
	r := fresh()
	r.Crossovers[0].Bytes++
	require.NoError(t, read(r), "logarithms differ between processors")
}
