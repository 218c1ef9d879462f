package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/term"
)

// world is a fake clock, and what moved it.
type world struct {
	now time.Duration
	log []string
}

// fakeTeam is a team whose calls take virtual time on a fake clock: preparing
// takes an hour, so that it shows wherever it is timed.
type fakeTeam struct {
	api.Team
	w    *world
	name string
	// us is what one call takes on each rank, in the n-th sample.
	us      func(t api.Timing, rank, n int) float64
	refuse  func(t api.Timing) error
	fail    int // the sample that fails; 0 is none
	samples int
	open    int
}

func (f *fakeTeam) Time(_ context.Context, t api.Timing) (api.Timed, error) {
	if f.refuse != nil {
		if err := f.refuse(t); err != nil {
			return nil, err
		}
	}
	f.open++
	return &fakeTimed{f, t, 0, false}, nil
}

type fakeTimed struct {
	f      *fakeTeam
	t      api.Timing
	n      int
	closed bool
}

func (m *fakeTimed) Prepare(context.Context) error {
	m.f.w.now += time.Hour
	m.f.w.log = append(m.f.w.log, m.f.name+" prepare")
	return nil
}

func (m *fakeTimed) Sample(context.Context) ([]time.Duration, error) {
	f := m.f
	f.w.log = append(f.w.log, f.name+" sample")
	if f.samples++; f.samples == f.fail {
		return nil, errors.New("it broke")
	}
	start := f.w.now
	var out []time.Duration
	for rank := range m.t.Call.Ranks {
		us := f.us(m.t, rank, m.n)
		if m.t.Work == api.WorkNothing {
			us = 0
		}
		took := time.Duration(float64(m.t.Calls) * (us*1000 + float64(m.t.Gap.Nanoseconds())))
		out = append(out, took)
		f.w.now = max(f.w.now, start+took)
	}
	m.n++
	return out, nil
}

func (m *fakeTimed) Close() error {
	if !m.closed {
		m.f.open--
	}
	m.closed = true
	return nil
}

func points(launch Launch, bytes ...int64) []Point {
	var out []Point
	for _, b := range bytes {
		p := Point{Collective: "all_gather", DType: "bf16", Ranks: 2, Bytes: b, Launch: launch}
		if launch == Gaps {
			p.Gap = 5
		}
		out = append(out, p)
	}
	return out
}

func always(us float64) func(api.Timing, int, int) float64 {
	return func(api.Timing, int, int) float64 { return us }
}

// checkLog says what is wrong with the order in which things were done.
func checkLog(log []string, names []string) error {
	if len(log)%(2*len(names)) != 0 {
		return fmt.Errorf("%d entries", len(log))
	}
	first := map[string]int{}
	for i := 0; i < len(log); i += 2 * len(names) {
		seen := map[string]bool{}
		for k := i; k < i+2*len(names); k += 2 {
			name, what, _ := strings.Cut(log[k], " ")
			if what != "prepare" || log[k+1] != name+" sample" {
				return fmt.Errorf("entries %d and %d: %s, %s", k, k+1, log[k], log[k+1])
			}
			if seen[name] {
				return fmt.Errorf("two samples of %s in one round", name)
			}
			seen[name] = true
			if k == i {
				first[name]++
			}
		}
	}
	for _, n := range names {
		if d := first[n] - first[names[0]]; d < -1 || d > 1 {
			return fmt.Errorf("%s was first %d times, %s %d", n, first[n], names[0], first[names[0]])
		}
	}
	return nil
}

// TestOrder: every sample is prepared, the specs alternate, and nobody is always
// first. The check catches logs in which that is not so.
func TestOrder(t *testing.T) {
	w := &world{}
	var sides []Side
	names := []string{"a", "b", "c"}
	for _, n := range names {
		sides = append(sides, Side{n, &fakeTeam{w: w, name: n, us: always(3)}})
	}
	r, err := Run(context.Background(), Config{Points: points(Graph, 1024, 4096), Samples: 10, WarmUp: 5, Calls: 20}, sides)
	require.NoError(t, err)
	require.NoError(t, checkLog(w.log[:len(w.log)/2], names))
	require.NoError(t, checkLog(w.log[len(w.log)/2:], names))
	require.Len(t, w.log, 2*2*3*15)
	for _, row := range r.Rows {
		require.InDelta(t, 3, row.Us, 1e-9, "neither the preparation nor the warm-up is in it")
		require.Len(t, row.RankSamples[0], 10)
	}

	good := slices.Clone(w.log[:2*3*15])
	for name, mutate := range map[string]func([]string) []string{
		"a sample that was not prepared": func(l []string) []string { return slices.Delete(l, 12, 13) },
		"prepared once for all":          func(l []string) []string { l[6], l[8] = l[7], l[9]; return l },
		"one spec after the other": func(l []string) []string {
			slices.SortStableFunc(l, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
			return l
		},
		"always the same first": func(l []string) []string {
			for i := 0; i < len(l); i += 6 {
				slices.SortStableFunc(l[i:i+6], func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
			}
			return l
		},
	} {
		require.Error(t, checkLog(mutate(slices.Clone(good)), names), name)
	}
}

// TestSlowestRank: the time is the maximum of the medians. The samples are chosen
// so that the median of the maxima, the mean, the last rank and the best sample
// all differ from it.
func TestSlowestRank(t *testing.T) {
	rank0 := []float64{1, 9, 2, 9, 3, 4, 4}
	rank1 := []float64{9, 1, 5, 1, 5, 5, 10}
	us := func(_ api.Timing, rank, n int) float64 { return [][]float64{rank0, rank1}[rank][n] }
	r, err := Run(context.Background(), Config{Points: points(Eager, 1024), Samples: 7, Calls: 20}, []Side{{"a", &fakeTeam{w: &world{}, us: us}}})
	require.NoError(t, err)
	row := r.Rows[0]
	require.Equal(t, []float64{4, 5}, row.RankUs)
	require.Equal(t, 5.0, row.Us)
	require.Equal(t, 1, row.Calls, "an eager sample is one call")
	var maxima []float64
	sum := 0.0
	for i := range rank0 {
		maxima = append(maxima, max(rank0[i], rank1[i]))
		sum += rank1[i]
	}
	for name, wrong := range map[string]float64{"median of maxima": median(maxima), "mean": sum / 7, "the first rank": median(rank0), "the best": slices.Min(rank1), "minimum of medians": min(median(rank0), median(rank1))} {
		require.NotEqual(t, wrong, row.Us, name)
	}
	require.Equal(t, 1.0, row.P10)
	require.Equal(t, 10.0, row.P90)
	require.InDelta(t, 1024/5.0/1e3, row.BusGBs, 1e-12)
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
}

// TestGaps: what the gaps take by themselves is measured, and taken off.
func TestGaps(t *testing.T) {
	f := &fakeTeam{w: &world{}, name: "a", us: always(2)}
	r, err := Run(context.Background(), Config{Points: points(Gaps, 1024), Samples: 9, WarmUp: 1, Calls: 20}, []Side{{"a", f}})
	require.NoError(t, err)
	require.InDelta(t, 2, r.Rows[0].Us, 1e-9)
	require.InDelta(t, 5, r.Rows[0].GapUs, 1e-9)
	require.Equal(t, 20, r.Rows[0].Calls)
	require.Zero(t, f.open, "all were closed")
}

func TestRatioAndInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noisy := func(mean float64) func(api.Timing, int, int) float64 {
		return func(api.Timing, int, int) float64 { return mean * (1 + 0.05*rng.NormFloat64()) }
	}
	r, err := Run(context.Background(), Config{Points: points(Graph, 1<<20), Samples: 100, Calls: 4}, []Side{{"a", &fakeTeam{w: &world{}, us: noisy(10)}}, {"b", &fakeTeam{w: &world{}, us: noisy(30)}}})
	require.NoError(t, err)
	require.Nil(t, r.Rows[0].Ratio)
	q := r.Rows[1].Ratio
	require.Equal(t, "a", q.To)
	require.InDelta(t, 3, q.Value, 0.1)
	require.Less(t, q.Low, q.Value)
	require.Greater(t, q.High, q.Value)
	require.Less(t, q.High-q.Low, 0.2)
	again := *r
	again.Rows = slices.Clone(r.Rows)
	again.conclude()
	require.Equal(t, q, again.Rows[1].Ratio, "the same samples, the same interval")
}

func TestOutliersAreStarred(t *testing.T) {
	us := func(_ api.Timing, _, n int) float64 {
		if n%10 == 3 {
			return 400
		}
		return 10 + float64(n%3)
	}
	r, err := Run(context.Background(), Config{Points: points(Graph, 1024), Samples: 50, Calls: 1}, []Side{{"a", &fakeTeam{w: &world{}, us: us}}})
	require.NoError(t, err)
	require.Equal(t, []int{3, 13, 23, 33, 43}, r.Rows[0].Outliers)
	require.Contains(t, r.Text(term.Style{}), "11.00*")
	require.Empty(t, outliers([]float64{1, 2, 3, 2, 1, 2}))
}

func TestRefusedAndBroken(t *testing.T) {
	no := &fakeTeam{w: &world{}, us: always(1), refuse: func(api.Timing) error { return &api.Refused{Spec: "b", What: "this", Reason: "so"} }}
	r, err := Run(context.Background(), Config{Points: points(Graph, 1024), Samples: 3, Calls: 2}, []Side{{"a", &fakeTeam{w: &world{}, us: always(1)}}, {"b", no}})
	require.NoError(t, err)
	require.Contains(t, r.Rows[1].Refused, "so")
	require.Nil(t, r.Rows[1].Ratio)
	require.Contains(t, r.Text(term.Style{}), "refused")

	f := &fakeTeam{w: &world{}, us: always(1), fail: 5}
	r, err = Run(context.Background(), Config{Points: points(Graph, 1024, 2048), Samples: 4, Calls: 2}, []Side{{"a", f}})
	require.ErrorContains(t, err, "all_gather of 2048 bytes, graph: a: it broke")
	require.Len(t, r.Rows, 1, "what was measured is there")
	require.Equal(t, err.Error(), r.Incomplete)
	require.Zero(t, f.open)

	r, err = Run(context.Background(), Config{Points: points(Graph, 1024), Samples: 3, Calls: 2}, []Side{{"a", no}, {"still", &fakeTeam{w: &world{}, us: always(0)}}})
	require.ErrorIs(t, err, api.ErrRefused, "no row has a time")
	require.Contains(t, r.Rows[1].Refused, "no time")

	_, err = Run(context.Background(), Config{Points: points(Graph, 1024), Samples: 1}, []Side{{"sim", struct{ api.Team }{}}})
	require.ErrorIs(t, err, api.ErrRefused)
	_, err = Run(context.Background(), Config{Samples: 1}, []Side{{"a", f}})
	require.ErrorIs(t, err, api.ErrInvalid)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Run(ctx, Config{Points: points(Graph, 1024), Samples: 1}, []Side{{"a", &fakeTeam{w: &world{}, us: always(1)}}})
	require.ErrorIs(t, err, context.Canceled)
}

// TestCalls: bytes are those of a rank's source, and become counts.
func TestCalls(t *testing.T) {
	for _, c := range []struct {
		p     Point
		count int64
		wire  float64
	}{
		{Point{Collective: "all_gather", DType: "bf16", Ranks: 4, Bytes: 1024}, 512, 3072},
		{Point{Collective: "all_reduce", DType: "f32", Op: "sum", Ranks: 4, Bytes: 1024}, 256, 1536},
		{Point{Collective: "reduce_scatter", DType: "bf16", Op: "sum", Ranks: 4, Bytes: 1024}, 128, 768},
		{Point{Collective: "all_to_all", DType: "u8", Ranks: 2, Bytes: 1023}, 511, 511},
		{Point{Collective: "broadcast", DType: "u8", Ranks: 2, Bytes: 1000}, 1000, 1000},
		{Point{Collective: "all_gather_many", DType: "bf16", Ranks: 2, Bytes: 1 << 15, Lanes: 8}, 2048, 1 << 15},
		{Point{Collective: "all_reduce", DType: "u8", Op: "max", Ranks: 1, Bytes: 7}, 7, 0},
	} {
		call, err := c.p.call()
		require.NoError(t, err)
		require.Equal(t, c.count, call.Lane(0).Count, c.p.Collective)
		require.Equal(t, c.wire, c.p.wire(), c.p.Collective)
		require.Equal(t, c.p.Bytes, (call.SrcElems(0)*int64(call.DType.Size()))*int64(call.Lanes()), "what the row says is what is given")
	}
	for says, p := range map[string]Point{
		"8 or more":  {Collective: "reduce_scatter", DType: "bf16", Op: "sum", Ranks: 4, Bytes: 7},
		"1 to 4096":  {Collective: "all_gather_many", DType: "bf16", Ranks: 2, Bytes: 7},
		"known are":  {Collective: "gather", DType: "bf16", Ranks: 2, Bytes: 7},
		"dtype":      {Collective: "all_gather", DType: "b16", Ranks: 2, Bytes: 7},
		"takes no":   {Collective: "all_gather", DType: "bf16", Op: "sum", Ranks: 2, Bytes: 70},
		"1 to 1024":  {Collective: "all_gather", DType: "bf16", Bytes: 7},
		"known are ": {Collective: "all_reduce", DType: "bf16", Op: "plus", Ranks: 2, Bytes: 7},
	} {
		_, err := p.call()
		require.ErrorIs(t, err, api.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
}

// TestSets: small calls stay where they are, large ones come round only after
// twice the L2.
func TestSets(t *testing.T) {
	const l2 = 50 << 20
	for bytes, want := range map[int64]int{1 << 10: 1, 1 << 20: 1, 1 << 21: 20, 4 << 20: 14, 64 << 20: 2} {
		call := api.Call{Collective: api.AllReduce, DType: api.U8, Op: api.Sum, Ranks: 2, Count: bytes}
		got := sets(&call, l2, 20)
		require.Equal(t, want, got, "%d", bytes)
		if got > 1 && got < 20 {
			require.Greater(t, int64(got)*footprint(&call), int64(2*l2))
		}
	}
	call := api.Call{Collective: api.AllReduce, DType: api.U8, Op: api.Sum, Ranks: 2, Count: 1 << 21}
	require.Equal(t, 4, sets(&call, l2, 4), "no more than calls")
}
