package conformance

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "go test -update writes it anew")
}

func text(t *testing.T, rep *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, rep.WriteText(&b, TextOptions{}))
	return b.Bytes()
}

// twoShot is two CTAs of NVSHMEM's two-shot all-reduce on two ranks: the first
// is even throughout, the second begins on an odd element and is lost.
func twoShot() *planned {
	f := &fake{name: "nvshmem@before", skip: func(_ *api.Call, _, _ int, i int64) bool { return i >= 4097 || i == 4096 }}
	return &planned{f, func(api.Call) (*api.Plan, error) {
		slice := func(rank int, start, count int64, w api.WordCount, holes ...api.Hole) api.Slice {
			s := api.Slice{Rank: rank, Start: start, Count: count, Words: w, Holes: holes}
			for _, h := range holes {
				s.Unwritten += h.Count
			}
			return s
		}
		return &api.Plan{
			Kernels: []api.Kernel{{CTAs: []api.CTA{
				{CTA: 0, Count: 4097, Algorithm: "two_shot", Why: "more than 2048 elements", Slices: []api.Slice{
					slice(0, 0, 2048, api.WordCount{W16: 256}), slice(1, 2048, 2049, api.WordCount{W16: 256}, api.Hole{Start: 4096, Count: 1, Cause: api.OddTail}),
				}},
				{CTA: 1, Start: 4097, Count: 4096, Algorithm: "two_shot", Why: "more than 2048 elements", Slices: []api.Slice{
					slice(0, 4097, 2048, api.WordCount{}, api.Hole{Start: 4097, Count: 2048, Cause: api.OddCTAStart}), slice(1, 6145, 2048, api.WordCount{}, api.Hole{Start: 6145, Count: 2048, Cause: api.OddCTAStart}),
				}},
			}}},
			Algorithms: map[string]api.Algorithm{"two_shot": {Evidence: api.Reported, Contract: api.Faithful}},
			Unwritten:  []int64{4097, 4097},
		}, nil
	}}
}

// TestTextForANewcomer is the report of lost outputs: how many, which CTA, which
// slices, which words, and why.
func TestTextForANewcomer(t *testing.T) {
	rep := run(t, &Runner{}, twoShot().side(), (&fake{name: "nvshmem@after"}).side(), allReduce(api.BF16, 2, 8193))
	require.Equal(t, map[api.Cause]int64{api.OddCTAStart: 8192, api.OddTail: 2}, classes(rep))
	golden(t, "lost.txt", text(t, rep))
}

func TestTextOfAgreement(t *testing.T) {
	rep := run(t, &Runner{}, (&fake{}).side(), (&fake{}).side(), call(api.AllToAll, api.U8, api.NoOp, 20, 3))
	golden(t, "agree.txt", text(t, rep))
}

func TestTextOfValues(t *testing.T) {
	rep := run(t, &Runner{}, nvls(&fake{order: ownFirst}).side(), nvls(exactly(num.TowardZero)).side(), allReduce(api.F16, 4, 4000))
	golden(t, "values.txt", text(t, rep))
}

func TestTextOfManyRanks(t *testing.T) {
	many := call(api.AllGatherMany, api.U16, api.NoOp, 20, 0)
	many.Many = []api.LaneShape{{Count: 3}, {DType: api.F32, Count: 2}}
	many.SrcOffset, many.DstOffset, many.Team = api.Offsets{1}, api.Offsets{2}, api.SubTeam
	f := &fake{skip: func(_ *api.Call, rank, lane int, i int64) bool { return lane == 0 && i < int64(rank) }}
	golden(t, "many.txt", text(t, run(t, &Runner{}, f.side(), Definition(), many)))
}

func TestTextOfAFault(t *testing.T) {
	f := &fake{fault: &api.Fault{Kind: api.FaultMisaligned, Rank: 1, CTA: 4, Detail: "a store of 4 bytes at 0x2"}}
	c := allReduce(api.F32, 2, 3)
	c.InPlace = api.InPlaceOwn
	faulted := string(text(t, run(t, &Runner{}, f.side(), (&fake{scheme: num.Scheme{Order: num.Balanced}}).side(), allReduce(api.BF16, 4, 640))))
	require.Contains(t, faulted, "not faithful    left not known, right", "nobody judged what a fault left")
	golden(t, "fault.txt", text(t, run(t, &Runner{Environment: map[string]string{"driver": "x"}}, f.side(), (&fake{}).side(), c)))
}

func TestColourOnlyIfAsked(t *testing.T) {
	rep := run(t, &Runner{}, (&fake{}).side(), (&fake{}).side(), allReduce(api.F32, 2, 3))
	require.NotContains(t, string(text(t, rep)), "\x1b")
	var b bytes.Buffer
	require.NoError(t, rep.WriteText(&b, TextOptions{Color: true}))
	require.Contains(t, b.String(), "\x1b[32mAGREE\x1b[0m")
	require.Equal(t, string(text(t, rep)), strings.NewReplacer("\x1b[32m", "", "\x1b[1m", "", "\x1b[0m", "").Replace(b.String()))
}

// TestReportJSON has every field name and where null stands. The Go version is
// of the machine.
func TestReportJSON(t *testing.T) {
	for name, rep := range map[string]*Report{
		"lost.json":  run(t, &Runner{}, twoShot().side(), (&fake{name: "nvshmem@after"}).side(), allReduce(api.BF16, 2, 8193)),
		"fault.json": run(t, &Runner{}, (&fake{fault: &api.Fault{Kind: api.FaultHang, Rank: 1, CTA: 2, Detail: "d"}}).side(), (&fake{}).side(), call(api.ReduceScatter, api.I16, api.Sum, 2, 3)),
		"values.json": run(t, &Runner{Input: values(0x4380, 0x3f80, 0x3f80, 0x3f80)}, (&fake{order: turned}).side(), (&fake{}).side(),
			allReduce(api.BF16, 4, 2)),
	} {
		rep.Environment = map[string]string{"go": "go1", "goarch": "any"}
		b, err := json.MarshalIndent(rep, "", " ")
		require.NoError(t, err)
		golden(t, name, append(b, '\n'))
	}
}

// TestReportsAreReproducible: two runs give the same bytes.
func TestReportsAreReproducible(t *testing.T) {
	var first []byte
	for _, workers := range []int{1, 2, 7, 2} {
		rep := run(t, &Runner{Workers: workers}, (&fake{order: ownFirst}).side(), Definition(), allReduce(api.BF16, 5, 3000))
		b, err := json.Marshal(rep)
		require.NoError(t, err)
		if first == nil {
			first = b
		}
		require.Equal(t, string(first), string(b), "%d workers", workers)
	}
}

func TestRangesAreBounded(t *testing.T) {
	f := &fake{value: func(_ *execution, _, _ int, i int64, _ []uint64, v uint64) uint64 { return v + uint64(i*i)%3 }}
	rep := run(t, &Runner{}, f.side(), (&fake{}).side(), allReduce(api.U32, 2, 9000))
	require.LessOrEqual(t, len(rep.Ranges), maxRanges)
	require.Positive(t, rep.RangesLeftOut)
	require.Contains(t, string(text(t, rep)), "at least")
}

func TestReproIsSafeInAShell(t *testing.T) {
	side := Side{&fake{}, api.Spec{Backend: "sim", Implementation: "nvshmem", Version: "3.4.5", Params: map[string]string{"nvls": "off"}}}
	rep := run(t, &Runner{Input: values(1, 2)}, side, Side{&fake{}, api.Spec{Backend: "file", Path: "it's here"}}, allReduce(api.I32, 2, 3))
	require.Equal(t, `compare run --left 'sim:nvshmem@3.4.5?nvls=off' --right 'file:it'\''s here' --collective all_reduce --dtype i32 --op sum --ranks 2 --count 3 --values 0x1,0x2`, rep.Repro)
	require.Equal(t, `--input 'file:a b'`, quoteFlags("--input file:a b"))
}
