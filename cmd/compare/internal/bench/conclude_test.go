package bench

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/term"
)

// byBytes makes times that follow the size of the call.
func byBytes(start, perByte float64) func(api.Timing, int, int) float64 {
	return func(t api.Timing, _, _ int) float64 {
		return start + perByte*float64(t.Call.Count*int64(t.Call.DType.Size()))
	}
}

func TestFloorsAndCrossover(t *testing.T) {
	floor := func(inner func(api.Timing, int, int) float64) func(api.Timing, int, int) float64 {
		return func(t api.Timing, r, n int) float64 {
			bytes := float64(t.Call.Count)
			switch t.Work {
			case api.WorkEmpty:
				return 1.5
			case api.WorkFlag:
				return 2.75
			case api.WorkCopy:
				return bytes / 300e3
			case api.WorkPush:
				return bytes / 380e3
			case api.WorkPull:
				return bytes / 360e3
			}
			return inner(t, r, n)
		}
	}
	a := &fakeTeam{w: &world{}, us: floor(byBytes(2, 0.001))}
	b := &fakeTeam{w: &world{}, us: byBytes(8, 0.0001)}
	r, err := Run(context.Background(), Config{Points: append(points(Graph, 1<<10, 4<<10, 16<<10, 64<<10), points(Eager, 1<<10, 64<<10)...), Samples: 5, Calls: 20, Floors: true}, []Side{{"a", a}, {"b", b}})
	require.NoError(t, err)
	require.InDelta(t, 1.5, r.Floors.F0, 1e-9)
	require.InDelta(t, 2.75, r.Floors.F1, 1e-9)
	require.InDelta(t, 380, r.Floors.B, 0.1)
	require.InDelta(t, r.Floors.Push, r.Floors.B, 0)
	require.InDelta(t, 2.75+16384/380e3, r.Rows[4].FloorUs, 1e-6)
	require.Len(t, r.Crossovers, 2)
	c := r.Crossovers[0]
	require.Equal(t, [2]string{"a", "b"}, [2]string{c.From, c.To})
	require.Equal(t, [2]int64{4 << 10, 16 << 10}, [2]int64{c.Below, c.Beyond})
	require.InDelta(t, 6667, float64(c.Bytes), 900, "where 2 + n/1000 is 8 + n/10000, between the sizes")
	text := r.Text(term.Style{})
	for _, says := range []string{"F0 1.50 us, F1 2.75 us, B 380 GB/s", "crossovers", "b is faster than a", "64 KiB", "all_gather, bf16, eager"} {
		require.Contains(t, text, says)
	}
}

func report(rows ...Row) *Report {
	return &Report{Schema: Schema, GPU: "H", Rows: rows}
}

func row(spec, collective string, bytes int64, us float64) Row {
	return Row{Point: Point{Collective: collective, DType: "bf16", Ranks: 2, Bytes: bytes, Launch: Graph}, Spec: spec, Us: us}
}

func TestAgainst(t *testing.T) {
	old := report(row("a", "all_gather", 1024, 10), row("a", "all_reduce", 1024, 10), row("b", "all_gather", 1024, 10))
	now := func() *Report {
		return report(row("a", "all_gather", 1024, 11), row("a", "all_reduce", 1024, 5), row("b", "all_gather", 2048, 10))
	}
	for name, c := range map[string]struct {
		a      Allowance
		broken bool
		err    string
	}{
		"nothing asked":        {Allowance{}, false, ""},
		"within":               {Allowance{[]string{"all_gather"}, 10.1}, false, ""},
		"slower":               {Allowance{[]string{"all_gather"}, 9.9}, true, ""},
		"faster is changed":    {Allowance{[]string{"all_reduce"}, 10}, true, ""},
		"by spec":              {Allowance{[]string{"a"}, 10.1}, true, ""},
		"a name for nothing":   {Allowance{[]string{"all_gather", "b"}, 99}, false, "no row that both reports have"},
		"a name of no meaning": {Allowance{[]string{"all_gaher"}, 99}, false, "all_gaher"},
	} {
		r := now()
		err := r.Against(old, c.a)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Len(t, r.Changes, 2, name)
		require.Equal(t, c.broken, r.Broken(), name)
	}
	require.ErrorContains(t, now().Against(report(row("c", "all_gather", 1024, 1)), Allowance{}), "no row of that report")
	other := report(row("a", "all_gather", 1024, 10))
	other.GPU = "B"
	require.ErrorContains(t, now().Against(other, Allowance{}), "another GPU")
	r := now()
	require.NoError(t, r.Against(old, Allowance{[]string{"all_gather"}, 5}))
	require.Contains(t, r.Text(term.Style{}), "+10.0 %")
	require.Contains(t, r.Text(term.Style{}), "beyond what was allowed")
}

func TestReadWrite(t *testing.T) {
	r, err := Run(context.Background(), Config{Points: points(Graph, 1024), Samples: 3, Calls: 2}, []Side{{"a", &fakeTeam{w: &world{}, us: always(1)}}})
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "r.json")
	f, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, r.Write(f))
	require.NoError(t, f.Close())
	back, err := Read(name)
	require.NoError(t, err)
	require.Equal(t, r, back)
	for text, says := range map[string]string{"": "EOF", "{}": "schema", `{"schema":"tandem.bench/1","x":1}`: "unknown field", "[]": "cannot be read"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		_, err := Read(name)
		require.ErrorIs(t, err, api.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	for _, rows := range [][]Row{nil, {{Us: -1}}, {{Us: 0}}, {{Us: 1, Point: Point{Bytes: -5}}}} {
		text, err := json.Marshal(report(rows...))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, text, 0o600))
		_, err = Read(name)
		require.ErrorIs(t, err, api.ErrInvalid)
	}
	_, err = Read(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, api.ErrInvalid)
}

// TestTune: each size gets its fastest candidate, but a table does not change its
// mind for less than it is worth, and a candidate is not taken beyond its size.
func TestTune(t *testing.T) {
	all := []Candidate{{Params: map[string]string{"path": "direct"}}, {Params: map[string]string{"path": "push"}, MaxBytes: 4096}, {Params: map[string]string{"path": "odd"}}}
	r := &Report{GPU: "H", Ranks: 2, Specs: []string{"d", "p", "o"}, Floors: &Floors{B: 380}}
	for _, c := range []struct {
		bytes int64
		us    [3]float64
	}{{1024, [3]float64{5, 2, 9}}, {2048, [3]float64{5, 5.05, 9}}, {4096, [3]float64{5, 5.5, 4.99}}, {8192, [3]float64{6, 1, 5.9}}, {16384, [3]float64{7, 1, 6}}} {
		for i, us := range c.us {
			x := row(r.Specs[i], "all_gather", c.bytes, us)
			x.Refused = LeaveOut(all)(i, &x.Point)
			r.Rows = append(r.Rows, x)
		}
	}
	for i, us := range []float64{3, 2, 1} {
		r.Rows = append(r.Rows, row(r.Specs[i], "all_reduce", 1024, us))
	}
	got, err := Tune(r, api.Spec{Backend: "hw", Implementation: "tandem"}, all)
	require.NoError(t, err)
	require.Equal(t, []TableEntry{
		{"all_gather", 1024, all[1].Params, 2}, {"all_gather", 4096, all[0].Params, 5}, {"all_gather", 16384, all[2].Params, 6},
		{"all_reduce", 1024, all[2].Params, 1},
	}, got.Entries)
	require.Equal(t, [3]any{"H", 380.0, "bf16"}, [3]any{got.GPU, got.LinkGBs, got.DType})
	var b strings.Builder
	require.NoError(t, got.Write(&b))
	require.Contains(t, b.String(), `"from_bytes": 4096`)
	_, err = Tune(r, api.Spec{}, all[:2])
	require.ErrorIs(t, err, api.ErrInvalid)
	for i := range r.Rows {
		r.Rows[i].Refused = "no"
	}
	_, err = Tune(r, api.Spec{}, all)
	require.ErrorIs(t, err, api.ErrRefused)
}

// FuzzRead: whatever a file holds, it reads as a report that can be told, or is
// refused.
func FuzzRead(f *testing.F) {
	r, err := Run(context.Background(), Config{Points: points(Gaps, 1024, 2048), Samples: 2, Calls: 2}, []Side{{"a", &fakeTeam{w: &world{}, us: always(1)}}, {"b", &fakeTeam{w: &world{}, us: always(2)}}})
	require.NoError(f, err)
	var b strings.Builder
	require.NoError(f, r.Write(&b))
	f.Add(b.String())
	f.Add(`{"schema":"tandem.bench/1","specs":["a"],"rows":[{"spec":"a","us":1}]}`)
	f.Add(`{"schema":"tandem.bench/1","rows":[{"outliers":[1]},{"ratio":{}}],"floors":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(t.TempDir(), "f.json")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		r, err := Read(name)
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalid)
			return
		}
		_ = r.Text(term.Style{})
		_ = r.Against(r, Allowance{Names: []string{"a"}})
	})
}
