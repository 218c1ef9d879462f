package matrix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/inputs"
)

// wide is some hundred cases of everything.
func wide(t *testing.T) []Case {
	l, r := conformance.Definition(), conformance.Definition()
	cases, _ := ExpandAll(For(l, r, Axes{Counts: []int64{0, 1, 5, 33}, Scopes: []api.Scope{api.OnStream}, Modes: []string{""},
		Inputs: []inputs.Input{{}, {Kind: inputs.Finite}, {Kind: inputs.Bits}}}), false)
	require.Greater(t, len(cases), 150)
	return cases
}

func TestAllAgree(t *testing.T) {
	b := &altered{after: func(api.Call, int, api.Memory) error { return nil }}
	cases := wide(t)
	for _, workers := range []int{1, 4} {
		res, err := Run(context.Background(), side(b), conformance.Definition(), cases, Options{Workers: workers})
		require.NoError(t, err)
		require.Equal(t, &Result{Calls: len(cases), Agree: len(cases)}, res)
		require.Equal(t, b.opened.Load(), b.closed.Load(), "every team is closed")
	}
}

// TestFailuresBecomeSmall: of each kind one case is left, and no part of it can
// be left out.
func TestFailuresBecomeSmall(t *testing.T) {
	l, r := sides(func(c api.Call, rank int, mem api.Memory) error {
		if c.Collective == api.Broadcast && c.Ranks >= 2 && rank == 1 && c.Count >= 6 && c.SrcOffset.At(1) >= 1 && c.InPlace == api.OutOfPlace {
			flip(mem)
		}
		if c.Collective == api.AllGatherMany && len(c.Many) > 1 && c.Many[1].Count > 3 {
			flip(mem)
		}
		return nil
	})
	res, err := Run(context.Background(), l, r, wide(t), Options{})
	require.NoError(t, err)
	small := map[string]int{}
	calls := 0
	for i, f := range res.Failures {
		require.Equal(t, api.CheckValue, f.Check)
		require.NotNil(t, f.Report)
		require.False(t, f.Report.Holds())
		require.Equal(t, f.First.Class(), f.Class)
		require.Equal(t, f.Small.Class(), f.Class)
		if i > 0 {
			require.Greater(t, f.Case, res.Failures[i-1].Case, "in the order of the matrix")
		}
		calls += f.Calls
		small[strings.ReplaceAll(f.Small.String(), f.Small.Call.DType.String(), "T")]++
	}
	require.Equal(t, res.Diverge, calls)
	require.Positive(t, res.Agree)
	for text := range small {
		plain := strings.Contains(text, "all_gather_many")
		if plain {
			require.Contains(t, text, "--ranks 1 ")
			require.Regexp(t, `--lanes 1,4( --in-place)? --input ones$`, text)
			continue
		}
		require.Equal(t, "--collective broadcast --dtype T --ranks 2 --count 6 --src-offset 1 --input ones", strings.ReplaceAll(text, " --team sub", ""))
	}
}

// TestMoreThanShrinkingFinds: failures beyond the limit are reported as found.
func TestMoreThanShrinkingFinds(t *testing.T) {
	l, r := sides(func(_ api.Call, rank int, mem api.Memory) error {
		flip(mem)
		return nil
	})
	res, err := Run(context.Background(), l, r, wide(t), Options{MaxShrunk: -1})
	require.NoError(t, err)
	require.Greater(t, len(res.Failures), 30)
	for _, f := range res.Failures {
		require.Equal(t, f.First, f.Small)
		require.NotNil(t, f.Report)
	}
}

// TestComesAndGoes: a failure that does not fail again is told, and is no error.
func TestComesAndGoes(t *testing.T) {
	var n atomic.Int64
	l, r := sides(func(_ api.Call, _ int, mem api.Memory) error {
		if n.Add(1) == 1 {
			flip(mem)
		}
		return nil
	})
	cases := []Case{{Call: api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 1, Count: 3}, Input: inputs.Input{Kind: inputs.Normal, Seed: 1}}}
	res, err := Run(context.Background(), l, r, cases, Options{})
	require.NoError(t, err)
	require.Len(t, res.Failures, 1)
	require.Equal(t, "it does not fail every time", res.Failures[0].Detail)
}

func TestChecks(t *testing.T) {
	call := api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 2, Count: 8}
	for _, c := range []struct {
		check api.Check
		after func(n int64) func(api.Call, int, api.Memory) error
		says  string
	}{
		{api.CheckRankAgreement, func(int64) func(api.Call, int, api.Memory) error {
			return func(_ api.Call, rank int, mem api.Memory) error {
				if rank == 1 {
					flip(mem)
				}
				return nil
			}
		}, "left: the ranks ended with different bits"},
		{api.CheckLiveness, func(int64) func(api.Call, int, api.Memory) error {
			return func(_ api.Call, rank int, _ api.Memory) error {
				return &api.Aborted{Rank: rank, Cause: 1, Reason: "it waited too long"}
			}
		}, "it waited too long"},
		{api.CheckSizeInvariance, func(int64) func(api.Call, int, api.Memory) error {
			return func(c api.Call, _ int, mem api.Memory) error {
				if c.Count == 17 || c.Count == 19 {
					mem[0].Dst.Payload()[0] ^= 1
				}
				return nil
			}
		}, "with a count of 19"},
		{api.CheckPlacementInvariance, func(int64) func(api.Call, int, api.Memory) error {
			return func(c api.Call, _ int, mem api.Memory) error {
				if !c.DstOffset.Uniform() {
					flip(mem)
				}
				return nil
			}
		}, "destination at +3,0"},
	} {
		l, r := sides(c.after(0))
		in := Case{Call: call, Input: inputs.Input{Kind: inputs.Normal, Seed: 1}}
		res, err := Run(context.Background(), l, r, []Case{in}, Options{Checks: []api.Check{c.check}, MaxShrunk: -1})
		require.NoError(t, err)
		require.Len(t, res.Failures, 1, c.check)
		require.Equal(t, c.check, res.Failures[0].Check)
		require.Contains(t, res.Failures[0].Detail, c.says)
		for _, other := range api.Checks() {
			if other == c.check || other == api.CheckValue {
				continue
			}
			res, err := Run(context.Background(), l, r, []Case{in}, Options{Checks: []api.Check{other}})
			require.NoError(t, err)
			require.Equal(t, 1, res.Agree, "%s does not see what breaks %s: %+v", other, c.check, res)
		}
	}
}

// TestRunToRun has the third execution give other bits.
func TestRunToRun(t *testing.T) {
	var n atomic.Int64
	l, r := sides(func(_ api.Call, _ int, mem api.Memory) error {
		if n.Add(1)%3 == 0 {
			flip(mem)
		}
		return nil
	})
	c := Case{Call: api.Call{Collective: api.Broadcast, DType: api.U8, Ranks: 1, Count: 3}, Input: inputs.Input{Kind: inputs.Bits, Seed: 1}}
	res, err := Run(context.Background(), l, r, []Case{c}, Options{Checks: []api.Check{api.CheckRunToRun}, MaxShrunk: -1, Repeats: 5})
	require.NoError(t, err)
	require.Equal(t, 1, res.Diverge)
}

// TestPromisedChecks: what a side does not promise is not asked of it.
func TestPromisedChecks(t *testing.T) {
	both := func(_ api.Call, rank int, mem api.Memory) error {
		if rank == 1 {
			flip(mem)
		}
		return nil
	}
	c := Case{Call: api.Call{Collective: api.AllReduce, DType: api.U8, Op: api.Xor, Ranks: 2, Count: 3}, Input: inputs.Input{Kind: inputs.Bits, Seed: 1}}
	for _, promised := range []bool{false, true} {
		a := &altered{after: both, promises: []api.Check{}}
		if promised {
			a.promises = api.Checks()
		}
		res, err := Run(context.Background(), side(a), side(a), []Case{c}, Options{})
		require.NoError(t, err)
		require.Equal(t, promised, res.Diverge == 1)
	}
}

func TestRefusalsAreCounted(t *testing.T) {
	l, r := sides(func(c api.Call, rank int, _ api.Memory) error {
		switch {
		case c.Count == 5:
			return &api.Refused{Spec: "x:y", What: fmt.Sprint(c.Ranks), Reason: "five is too odd"}
		case c.Count == 33:
			return &api.Unavailable{Spec: "x:y", Reason: "gone"}
		}
		return nil
	})
	cases := wide(t)
	res, err := Run(context.Background(), l, r, cases, Options{})
	require.NoError(t, err)
	require.Equal(t, len(cases), res.Calls)
	require.Equal(t, res.Calls, res.Agree+res.Refused)
	var reasons []string
	for _, f := range res.Refusals {
		reasons = append(reasons, f.Reason)
	}
	slices.Sort(reasons)
	require.Equal(t, []string{"x:y is not available here: gone", "x:y: five is too odd"}, reasons)
	require.Contains(t, res.Line(), "five is too odd")

	// Memory that there is not is one more reason, and no call is lost.
	res, err = Run(context.Background(), l, r, cases, Options{MaxMemory: 1000})
	require.NoError(t, err)
	require.Equal(t, res.Calls, res.Agree+res.Refused)
	require.Contains(t, res.Line(), "max-memory")
}

// unwritten is the definition that writes nothing.
type unwritten struct{ altered }

func (b *unwritten) Open(ctx context.Context, spec api.Spec, cfg api.TeamConfig) (api.Team, error) {
	t, err := b.altered.Open(ctx, spec, cfg)
	return &idleTeam{t}, err
}

type idleTeam struct{ api.Team }

func (t *idleTeam) Members() []api.Member {
	var out []api.Member
	for _, m := range t.Team.Members() {
		out = append(out, idleMember{m.Rank()})
	}
	return out
}

type idleMember struct{ rank int }

func (m idleMember) Rank() int                                       { return m.rank }
func (m idleMember) Start(api.Call, api.Memory) (api.Pending, error) { return m, nil }
func (m idleMember) Wait(context.Context) (api.Outcome, error) {
	return api.Outcome{Written: []api.Interval{}}, nil
}

// TestIdlenessIsNoAgreement: two sides that write nothing are not compared, but
// for calls in which there is nothing to write.
func TestIdlenessIsNoAgreement(t *testing.T) {
	def := conformance.Definition()
	idle := conformance.Side{Backend: &unwritten{altered{Backend: def.Backend}}, Spec: def.Spec}
	var cases []Case
	for _, n := range []int64{0, 1, 5} {
		cases = append(cases, Case{Call: api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 2, Count: n}, Input: inputs.Input{Kind: inputs.Normal, Seed: 1}})
	}
	res, err := Run(context.Background(), idle, idle, cases, Options{Checks: []api.Check{api.CheckValue}})
	require.NoError(t, err)
	require.Equal(t, []int{1, 0, 2}, []int{res.Agree, res.Diverge, res.Refused})
	require.Contains(t, res.Line(), "left every output unwritten")
	res, err = Run(context.Background(), idle, idle, cases, Options{})
	require.NoError(t, err)
	require.Equal(t, 2, res.Diverge, "coverage is promised")
}

// TestErrorsEndTheRun: what is no answer to a call ends the run, with its name.
func TestErrorsEndTheRun(t *testing.T) {
	boom := errors.New("boom")
	l, r := sides(func(c api.Call, _ int, _ api.Memory) error {
		if c.Count == 33 {
			return boom
		}
		return nil
	})
	_, err := Run(context.Background(), l, r, wide(t), Options{})
	require.ErrorIs(t, err, boom)
	var at *CaseError
	require.ErrorAs(t, err, &at)
	require.Equal(t, int64(33), at.Case.Call.Lane(0).Count)

	_, err = Run(context.Background(), l, r, wide(t), Options{Done: func(Outcome) error { return boom }})
	require.ErrorIs(t, err, boom)

	ctx, cancel := context.WithCancel(context.Background())
	l, r = sides(func(api.Call, int, api.Memory) error { return nil })
	n := 0
	_, err = Execute(ctx, l, r, wide(t), Options{Workers: 2, Done: func(Outcome) error {
		if n++; n == 5 {
			cancel()
		}
		return nil
	}})
	require.ErrorIs(t, err, context.Canceled)
}

// TestSkipAndGoOn: what was known before and what is run now make the whole.
func TestSkipAndGoOn(t *testing.T) {
	l, r := sides(func(c api.Call, _ int, mem api.Memory) error {
		if c.DType == api.I16 {
			flip(mem)
		}
		return nil
	})
	cases := wide(t)
	whole, err := Run(context.Background(), l, r, cases, Options{})
	require.NoError(t, err)
	var parts []Outcome
	for _, odd := range []bool{true, false} {
		done, err := Execute(context.Background(), l, r, cases, Options{Skip: func(i int) bool { return (i%2 == 1) == odd }})
		require.NoError(t, err)
		parts = append(parts, done...)
	}
	joined, err := Explain(context.Background(), l, r, cases, parts, Options{})
	require.NoError(t, err)
	require.Equal(t, whole.Line(), joined.Line())
	require.Equal(t, len(whole.Failures), len(joined.Failures))
	for i := range whole.Failures {
		require.Equal(t, whole.Failures[i].Small, joined.Failures[i].Small)
	}
}

// recorder is a test that may fail.
type recorder struct{ errors, log []string }

func (*recorder) Helper()                     {}
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, fmt.Sprintf(f, a...)) }
func (r *recorder) Logf(f string, a ...any)   { r.log = append(r.log, fmt.Sprintf(f, a...)) }

func TestTest(t *testing.T) {
	l, r := sides(func(api.Call, int, api.Memory) error { return nil })
	tb := &recorder{}
	Test(context.Background(), tb, l, r, wide(t), Options{})
	require.Empty(t, tb.errors)
	require.Contains(t, tb.log[len(tb.log)-1], " 0 diverge, 0 refused")
	Test(context.Background(), tb, l, r, nil, Options{})
	require.Contains(t, strings.Join(tb.errors, "\n"), "nothing was compared")

	l, r = sides(func(c api.Call, _ int, mem api.Memory) error { flip(mem); return nil })
	tb = &recorder{}
	Test(context.Background(), tb, l, r, wide(t)[:20], Options{})
	require.NotEmpty(t, tb.errors)
	require.Contains(t, tb.errors[0], "again: compare run ")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tb = &recorder{}
	Test(ctx, tb, l, r, wide(t), Options{})
	require.Contains(t, tb.errors[0], "context canceled")
}
