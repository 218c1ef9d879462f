package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/conformance/matrix"
)

var reports = json.RawMessage(`{"schema":"tandem.report/1","verdict":"diverge","repro":"compare run"}`)

// sample is a result of a shard with a failure and a refusal.
func sample() *Result {
	return &Result{
		Schema: Schema, Identity: Identity{Left: "a", Right: "b", Matrix: "0123456789abcdef", Cases: 10, Shard: Shard{2, 3}},
		Calls: 3, Agree: 1, Diverge: 1, Refused: 1, Seconds: 1.5,
		Failures: []Failure{{FailureHead{Class: "x", Check: api.CheckValue, Cause: api.CauseOrder, Calls: 1, Case: 4, Found: "f", Again: "a"}, reports}},
		Refusals: []Refusal{{"no", 1, 7, "c"}},
	}
}

func TestResultsAreReadBack(t *testing.T) {
	b, err := json.MarshalIndent(sample(), "", "  ")
	require.NoError(t, err)
	got, err := ReadResult("x", bytes.NewReader(b))
	require.NoError(t, err)
	again, err := json.MarshalIndent(got.Result, "", "  ")
	require.NoError(t, err)
	require.Equal(t, string(b), string(again))
}

func TestCodes(t *testing.T) {
	r := sample()
	require.Equal(t, 1, r.Code())
	r.Known = &KnownReport{}
	require.Equal(t, 0, r.Code())
	r.Known.Missing = []string{"x"}
	require.Equal(t, 1, r.Code())
	r.Known, r.Diverge = nil, 0
	require.Equal(t, 0, r.Code())
	r.Agree = 0
	require.Equal(t, 2, r.Code())
}

// TestShardsPartition: every case is in exactly one shard, and the shards have
// as many as they say.
func TestShardsPartition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cases, of := rapid.IntRange(0, 200).Draw(rt, "cases"), rapid.IntRange(1, 40).Draw(rt, "of")
		total := 0
		for i := 1; i <= of; i++ {
			s, err := ParseShard(fmt.Sprintf("%d/%d", i, of))
			require.NoError(rt, err)
			n := 0
			for c := range cases {
				if s.Has(c) {
					n++
				}
			}
			require.Equal(rt, s.Count(cases), n)
			total += n
		}
		require.Equal(rt, cases, total)
	})
}

// TestMergeIsTheSum: results of any shards join to what the whole has.
func TestMergeIsTheSum(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cases := rapid.IntRange(1, 60).Draw(rt, "cases")
		kind := rapid.SliceOfN(rapid.IntRange(0, 4), cases, cases).Draw(rt, "outcomes")
		make := func(s Shard) Named {
			r := &Result{Schema: Schema, Identity: Identity{Left: "a", Right: "b", Matrix: "m", Cases: cases, Shard: s}, Failures: []Failure{}, Refusals: []Refusal{}}
			for c, k := range kind {
				if !s.Has(c) {
					continue
				}
				r.Calls++
				one := &Result{Failures: []Failure{}, Refusals: []Refusal{}}
				switch name := fmt.Sprint(k); {
				case k < 2:
					r.Agree++
				case k < 4:
					r.Diverge++
					one.Failures = []Failure{{FailureHead{Class: name, Check: api.CheckValue, Calls: 1, Case: c}, reports}}
				default:
					r.Refused++
					one.Refusals = []Refusal{{name, 1, c, ""}}
				}
				r.add(one)
			}
			return Named{s.String(), r}
		}
		of := rapid.IntRange(1, 5).Draw(rt, "of")
		var parts []Named
		for i := 1; i <= of; i++ {
			parts = append(parts, make(Shard{i, of}))
			require.Empty(rt, parts[i-1].unsound())
		}
		got, err := Merge(rapid.Permutation(parts).Draw(rt, "order"))
		require.NoError(rt, err)
		want := make(Whole)
		want.sortKinds()
		require.Equal(rt, want.Result, got)
	})
}

func TestJournalsAreReadBack(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.part")
	h := Header{Identity: Identity{Left: "a", Cases: 9, Shard: Whole}, Request: json.RawMessage(`{"left":"a"}`)}
	j, err := CreateJournal(name, h)
	require.NoError(t, err)
	want := map[int]matrix.Outcome{
		0: {Case: 0, Status: matrix.Agree},
		3: {Case: 3, Status: matrix.Diverge, Check: api.CheckValue, Cause: api.OddTail},
		8: {Case: 8, Status: matrix.Refused, Reason: "no\n\"really\""},
	}
	for _, o := range want {
		require.NoError(t, j.Add(o))
	}
	require.NoError(t, j.Close())
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	for cut := range len(whole) { // whatever is left of it can be gone on with
		require.NoError(t, os.WriteFile(name, whole[:cut], 0o644))
		j, err := ResumeJournal(name)
		if !bytes.Contains(whole[:cut], []byte("\n")) {
			require.ErrorContains(t, err, "not even a header")
			continue
		}
		require.NoError(t, err)
		require.Len(t, j.Outcomes, bytes.Count(whole[:cut], []byte("\n"))-1)
		require.NoError(t, j.Add(matrix.Outcome{Case: 1, Status: matrix.Agree}))
		require.NoError(t, j.Close())
		j, err = ResumeJournal(name)
		require.NoError(t, err)
		require.Contains(t, j.Outcomes, 1)
		require.NoError(t, j.Close())
	}
	_, err = CreateJournal(name, h)
	require.ErrorContains(t, err, "unfinished")
	require.NoError(t, os.WriteFile(name, whole, 0o644))
	j, err = ResumeJournal(name)
	require.NoError(t, err)
	require.Equal(t, want, j.Outcomes)
	require.NoError(t, j.Close())
}

func TestKnownIsReadBack(t *testing.T) {
	k := KnownOf(sample())
	k[Kind{"all_gather u8", api.CheckCoverage, ""}] = 7
	var b bytes.Buffer
	require.NoError(t, k.Write(&b, "a", "b"))
	got, err := ReadKnown("x", &b)
	require.NoError(t, err)
	require.Equal(t, k, got)
	rep := got.Against(sample())
	require.Equal(t, 1, rep.Listed)
	require.Empty(t, rep.Unlisted)
	require.Equal(t, []string{"7 calls: coverage, -, all_gather u8"}, rep.Missing)
}

func FuzzReadJournal(f *testing.F) {
	f.Add([]byte(`{"schema":"tandem.sweep_part/1","left":"a","right":"b","matrix":"x","cases":10,"shard":"1/2","request":{}}` + "\n" + `{"case":2,"status":"agree"}` + "\n{"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, end, err := ReadJournal("x", bytes.NewReader(b))
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalid)
			return
		}
		require.LessOrEqual(t, end, int64(len(b)))
		again, end2, err := ReadJournal("x", bytes.NewReader(b[:end]))
		require.NoError(t, err)
		require.Equal(t, end, end2)
		require.Equal(t, j.Outcomes, again.Outcomes)
	})
}

func FuzzReadResult(f *testing.F) {
	b, err := json.Marshal(sample())
	require.NoError(f, err)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ReadResult("x", bytes.NewReader(b))
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalid)
			return
		}
		if _, err := Merge([]Named{r}); err != nil {
			require.ErrorIs(t, err, api.ErrInvalid)
		}
		out, err := json.Marshal(r.Result)
		require.NoError(t, err)
		_, err = ReadResult("x", bytes.NewReader(out))
		require.NoError(t, err)
	})
}

func FuzzReadKnown(f *testing.F) {
	f.Add("# tandem.known/1 x\n3\tvalue\torder\tall_reduce\n")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ReadKnown("x", strings.NewReader(text))
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalid)
			return
		}
		var b bytes.Buffer
		require.NoError(t, k.Write(&b, "a", "b"))
		again, err := ReadKnown("x", &b)
		require.NoError(t, err)
		require.Equal(t, k, again)
	})
}
