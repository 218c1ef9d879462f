package figure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/bench"
)

// benchReport is a report with two specs, two collectives and two forms of launch;
// its rows are not in order.
func benchReport() *bench.Report {
	r := &bench.Report{Schema: bench.Schema, GPU: "NVIDIA H200", Ranks: 2, Specs: []string{"hw:tandem", "hw:nccl"}, Rows: []bench.Row{}}
	for _, n := range []int64{4096, 1024, 65536} {
		for i, spec := range r.Specs {
			for _, launch := range []bench.Launch{bench.Eager, bench.Graph} {
				for _, c := range []string{"all_gather", "all_reduce"} {
					p := bench.Point{Collective: c, DType: "bf16", Ranks: 2, Bytes: n, Launch: launch}
					if c == "all_reduce" {
						p.Op = "sum"
					}
					r.Rows = append(r.Rows, bench.Row{Point: p, Spec: spec, Us: float64(i+1) * (2 + float64(n)/1024)})
				}
			}
		}
	}
	return r
}

// whole gives the report's rows the samples that their times follow from.
func whole(r *bench.Report) *bench.Report {
	r.Samples = 1
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Calls, row.Sets, row.RankSamples = 1, 1, nil
		for range row.Ranks {
			row.RankSamples = append(row.RankSamples, []float64{row.Us})
		}
		row.Summarise()
		r.Ranks = row.Ranks
	}
	return r
}

func save(t *testing.T, r *bench.Report) string {
	b, err := json.Marshal(whole(r))
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(name, b, 0o600))
	return name
}

const rlText = `{"kind":"deterministic_collectives_benchmark","world_size":8,"dtype":"torch.bfloat16","gpu":"NVIDIA B200","torch":"2.9","cuda":"13.0","rows":[
 {"operation":"all_gather","input_bytes_per_rank":8192,"deterministic_us":70.7,"nccl_us":31.0},
 {"operation":"all_gather","input_bytes_per_rank":1024,"deterministic_us":46.8,"nccl_us":29.0},
 {"operation":"reduce_scatter","input_bytes_per_rank":1024,"deterministic_us":113,"nccl_us":30}]}`

// TestRealigned: rows are drawn by size, whatever order the file has them in.
func TestRealigned(t *testing.T) {
	list, err := Load(save(t, benchReport()), Select{})
	require.NoError(t, err)
	require.Len(t, list, 4)
	for _, s := range list {
		require.Equal(t, []int64{1024, 4096, 65536}, s.sizes())
		require.Equal(t, []Row{{1024, 3, 6}, {4096, 6, 12}, {65536, 66, 132}}, s.Rows)
		require.Equal(t, "hw:nccl", s.Reference)
	}
	name := filepath.Join(t.TempDir(), "rl.json")
	require.NoError(t, os.WriteFile(name, []byte(rlText), 0o600))
	list, err = Load(name, Select{})
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, Source{File: name, Collective: "all_gather", Launch: "eager", DType: "bf16", GPU: "NVIDIA B200", World: 8, Label: "RL-Kernel", Reference: "NCCL",
		Rows: []Row{{1024, 46.8, 29}, {8192, 70.7, 31}}}, list[0])
	require.Equal(t, int64(8*1024), list[1].Rows[0].Bytes, "a shard there, a whole source here")
}

func TestSelect(t *testing.T) {
	name := save(t, benchReport())
	list, err := Load(name, Select{Collectives: []string{"all_reduce"}, Launches: []string{"graph"}, Spec: "hw:nccl"})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "", list[0].Reference, "no reference to itself")
	require.Equal(t, 6.0, list[0].Rows[0].Us)
	for says, sel := range map[string]Select{"hw:other": {Spec: "hw:other"}, "the reference": {Reference: "hw:x"}, "no row that was asked for": {Launches: []string{"gap"}},
		"it has all_gather eager; all_gather graph; all_reduce eager sum; all_reduce graph sum": {Launches: []string{"egar"}}} {
		_, err := Load(name, sel)
		require.ErrorIs(t, err, api.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
}

// TestMismatches changes one thing at a time in a report that matches itself. Each
// is refused, whichever side it is on, and an unchanged one is not.
func TestMismatches(t *testing.T) {
	load := func(r *bench.Report) []Source {
		list, err := Load(save(t, r), Select{})
		require.NoError(t, err)
		return list
	}
	good := load(benchReport())
	pairs, err := Pairs([][]Source{good}, [][]Source{load(benchReport())})
	require.NoError(t, err)
	require.Len(t, pairs, 4)
	each := func(f func(*bench.Row)) func(*bench.Report) {
		return func(r *bench.Report) {
			for i := range r.Rows {
				f(&r.Rows[i])
			}
		}
	}
	for what, mutate := range map[string]func(*bench.Report){
		"world size": each(func(r *bench.Row) { r.Ranks = 4 }),
		"dtype":      each(func(r *bench.Row) { r.DType = "f16" }),
		"GPU":        func(r *bench.Report) { r.GPU = "NVIDIA B200" },
		"sizes":      each(func(r *bench.Row) { r.Bytes *= 2 }),
		"sizes ": func(r *bench.Report) {
			r.Rows = slices.DeleteFunc(r.Rows, func(x bench.Row) bool { return x.Bytes == 1024 })
		},
		"collective and launch": each(func(r *bench.Row) {
			if r.Launch == bench.Eager {
				r.Launch = bench.Gaps
			}
		}),
		"collective and launch ": each(func(r *bench.Row) {
			if r.Collective == "all_reduce" {
				r.Collective = "reduce_scatter"
			}
		}),
		"collective and launch  ": func(r *bench.Report) {
			r.Rows = slices.DeleteFunc(r.Rows, func(x bench.Row) bool { return x.Launch == bench.Eager })
		},
		"collective and launch   ": each(func(r *bench.Row) { r.InPlace = true }),
	} {
		r := benchReport()
		mutate(r)
		bad := load(r)
		for _, sides := range [][2][]Source{{good, bad}, {bad, good}} {
			_, err := Pairs([][]Source{good, sides[0]}, [][]Source{good, sides[1]})
			require.ErrorIs(t, err, api.ErrInvalid, what)
			require.ErrorContains(t, err, "its "+strings.TrimSpace(what)+":")
		}
	}
	_, err = Pairs([][]Source{good, good}, [][]Source{good})
	require.ErrorContains(t, err, "2 reports before, 1 after")
	_, err = Pairs(nil, nil)
	require.ErrorIs(t, err, api.ErrInvalid)
	// The fields that the key has too are compared by themselves as well.
	for _, f := range []func(*Source){func(s *Source) { s.Launch = "x" }, func(s *Source) { s.Collective = "x" }} {
		b, a := good[0], good[0]
		f(&a)
		require.Error(t, matched(&b, &a))
	}
}

func TestBadReports(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bad.json")
	for text, says := range map[string]string{
		"":                            "cannot be read",
		"{}":                          "it is no report",
		`{"kind":"something"}`:        "it is no report",
		`{"schema":"tandem.bench/2"}`: "it is no report",
		strings.Replace(rlText, "torch.bfloat16", "int8", 1):                           "none that the benchmark has",
		strings.Replace(rlText, `:8,`, `:0,`, 1):                                       "world size 0",
		strings.Replace(rlText, "8192", "1024", 1):                                     "two rows of 1024 bytes",
		strings.Replace(rlText, "70.7", "0", 1):                                        "logarithmic",
		strings.Replace(rlText, "70.7", "1e308", 1):                                    "logarithmic",
		strings.Replace(rlText, "70.7", "-1", 1):                                       "logarithmic",
		strings.Replace(rlText, `"all_gather"`, `7`, 1):                                "cannot be read",
		`{"kind":"deterministic_collectives_benchmark","world_size":2,"dtype":"bf16"}`: "no row that was asked for",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		_, err := Load(name, Select{})
		require.ErrorIs(t, err, api.ErrInvalid, text)
		require.ErrorContains(t, err, says)
	}
	_, err := Load(filepath.Join(t.TempDir(), "none"), Select{})
	require.ErrorIs(t, err, api.ErrInvalid)
}

// TestDraw: the figure is what its name says, and the same each time.
func TestDraw(t *testing.T) {
	list, err := Load(save(t, benchReport()), Select{})
	require.NoError(t, err)
	pairs, err := Pairs([][]Source{list}, [][]Source{list})
	require.NoError(t, err)
	one := []Pair{{list[0], list[0]}}
	one[0].Before.Rows, one[0].After.Rows = []Row{{1, 1, 1}}, []Row{{1, 1, 0}}
	for _, p := range [][]Pair{pairs, one} {
		for _, name := range []string{"a.png", "a.svg"} {
			var first, second bytes.Buffer
			require.NoError(t, Draw(&first, name, p))
			require.NoError(t, Draw(&second, name, p))
			require.Equal(t, first.Bytes(), second.Bytes())
			if name == "a.png" {
				img, err := png.Decode(&first)
				require.NoError(t, err)
				require.Greater(t, img.Bounds().Dx(), 300)
				continue
			}
			for _, says := range []string{"<svg", "before", "after", "all_gather", "NVIDIA H200", "eager"} {
				require.Contains(t, first.String(), says)
			}
		}
	}
	require.ErrorContains(t, Draw(new(bytes.Buffer), "a.pdf", pairs), ".png or .svg")
}

func TestTicks(t *testing.T) {
	var labels []string
	for _, tick := range byteTicks(1024, 64<<20) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	require.Equal(t, "1 KiB 4 KiB 16 KiB 64 KiB 256 KiB 1 MiB 4 MiB 16 MiB 64 MiB", strings.Join(labels, " "))
	labels = nil
	for _, tick := range timeTicks(1.5, 60) {
		labels = append(labels, tick.Label)
	}
	require.Equal(t, "[2 5 10 20 50]", fmt.Sprint(labels))
}

func FuzzLoad(f *testing.F) {
	f.Add(rlText)
	b, _ := json.Marshal(whole(benchReport()))
	f.Add(string(b))
	f.Add(`{"schema":"tandem.bench/1","rows":[{"bytes":-1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(t.TempDir(), "f.json")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		list, err := Load(name, Select{})
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalid)
			return
		}
		_, err = Pairs([][]Source{list}, [][]Source{list})
		require.NoError(t, err)
	})
}
