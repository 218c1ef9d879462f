package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/hw"
	"example.com/tandem/hw/kernels"
	"example.com/tandem/sim/ptx"
)

// fenceCall is what ranks of two blocks each do on one team.
type fenceCall struct {
	params string
	calls  []api.Call
}

// fenceTeams force every path.
var fenceTeams = []struct {
	ranks  int
	params string
}{
	{2, "?ctas=2"}, {2, "?ctas=2&path=direct"}, {2, "?ctas=2&path=two_shot"}, {2, "?ctas=2&buffers=staged&stage=262144"}, {2, "?ctas=2&gpus=1"},
	{3, "?ctas=2"}, {3, "?ctas=2&path=direct"}, {3, "?ctas=2&path=two_shot"},
}

// fenceKinds are calls that are executed by different instructions, large enough
// for both blocks.
func fenceKinds(ranks int) (out []api.Call) {
	add := func(c api.Collective, d api.DType, o api.Op, form api.InPlace) {
		call := api.Call{Collective: c, DType: d, Op: o, Ranks: ranks, Count: 2400, InPlace: form}
		if api.IsMany(c) {
			call.Count, call.Many = 0, []api.LaneShape{{Count: 2400}, {Count: 7}}
		}
		out = append(out, call)
	}
	for _, c := range api.Collectives() {
		for _, d := range []api.DType{api.BF16, api.F16, api.F32, api.F64, api.I32, api.U8, api.E4M3} {
			if !c.Reduces() {
				if d == api.BF16 || d == api.U8 {
					add(c, d, api.NoOp, api.OutOfPlace)
				}
				continue
			}
			for _, o := range []api.Op{api.Sum, api.Max} {
				add(c, d, o, api.OutOfPlace)
			}
			if d == api.BF16 && !api.IsMany(c) {
				add(c, d, api.Sum, api.InPlaceOwn)
			}
		}
	}
	return out
}

// run executes the calls, telling of each that it begins, and says how that went
// wrong; "" if it did not.
func (c *fenceCall) run(ctx context.Context, model conformance.Side, o ptx.Options, begin func(k int)) (string, error) {
	o.Devices, o.Info = c.calls[0].Ranks, smallGPU
	d := ptx.Open(o)
	h := hw.New("ptx", reusing{d})
	spec, err := api.ParseSpec("ptx:tandem" + c.params)
	if err != nil {
		return "", err
	}
	r := conformance.Runner{Exact: true}
	for k, call := range c.calls {
		begin(k)
		rep, err := r.Run(ctx, model, conformance.Side{Backend: h, Spec: spec}, call)
		switch f := faultOf(rep, err); {
		case f != nil:
			return f.Detail, nil
		case err != nil:
			return "", err
		case rep.Verdict != conformance.Agree:
			return "other bits", nil
		}
	}
	return "", r.Close(ctx)
}

// fence is one in the PTX.
type fence struct {
	kernel string
	line   int // from 1
	calls  []int
	found  string
}

// fences lists those of tandem's kernels.
func fences(lines []string) (out []*fence) {
	kernel := ""
	for i, text := range lines {
		if name, ok := strings.CutPrefix(text, ".visible .entry "); ok {
			kernel = strings.TrimSuffix(name, "(")
		}
		if strings.Contains(text, "fence.") {
			out = append(out, &fence{kernel: kernel, line: i + 1})
		}
	}
	return out
}

// without looks whether the absence of the fence is seen, under some schedules.
func (f *fence) without(ctx context.Context, lines []string, calls []fenceCall, model conformance.Side) error {
	edited := slices.Clone(lines)
	edited[f.line-1] = ""
	text := []byte(strings.Join(edited, "\n"))
	edit := func(old []byte) []byte {
		if bytes.Equal(bytes.TrimRight(old, "\x00"), kernels.Tandem) {
			return text
		}
		return old
	}
	for seed := range uint64(2) {
		for _, k := range thinned(f.calls, 3) {
			what, err := calls[k].run(ctx, model, ptx.Options{Seed: seed, Edit: edit}, func(int) {})
			if f.found = what; err != nil || what != "" {
				return err
			}
		}
	}
	return nil
}

// TestPTXFences takes out each fence of tandem's kernels alone and looks whether
// that is seen, on two and three ranks of two blocks. It logs those whose absence nothing
// shows, and those that are not reached. Whether a race is found depends on
// which writes the strong reads of a schedule see, not on the order of anything
// else: so one seed finds most, and the absence of a race under a few is not a
// proof.
func TestPTXFences(t *testing.T) {
	withoutRaceDetector(t)
	if os.Getenv("TANDEM_EXHAUSTIVE") == "" {
		t.Skip("a run for every fence takes many minutes; with TANDEM_EXHAUSTIVE=1 it runs")
	}
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	var calls []fenceCall
	var reached []map[int]bool // lines, by call
	work := new(errgroup.Group)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for _, team := range fenceTeams {
		first := len(calls)
		for _, call := range fenceKinds(team.ranks) {
			calls, reached = append(calls, fenceCall{team.params, []api.Call{call}}), append(reached, map[int]bool{})
		}
		list, lines := calls[first:], reached[first:]
		work.Go(func() error {
			at := 0
			all := fenceCall{params: team.params}
			for _, c := range list {
				all.calls = append(all.calls, c.calls...)
			}
			what, err := all.run(t.Context(), model, ptx.Options{Seed: 1, Fenced: func(module string, line int) { lines[at][line] = true }}, func(k int) { at = k })
			if what != "" {
				err = fmt.Errorf("%s: %s", team.params, what)
			}
			return err
		})
	}
	require.NoError(t, work.Wait())
	lines := strings.Split(string(kernels.Tandem), "\n")
	all := fences(lines)
	for _, f := range all {
		for i := range calls {
			if reached[i][f.line] {
				f.calls = append(f.calls, i)
			}
		}
		if f.calls != nil {
			work.Go(func() error {
				err := f.without(t.Context(), lines, calls, model)
				t.Logf("%s, line %d, reached by %d calls: %.60s", f.kernel, f.line, len(f.calls), cmp.Or(f.found, "nothing is seen without it"))
				return err
			})
		}
	}
	require.NoError(t, work.Wait())
	needed, counts := 0, map[string]int{}
	for _, f := range all {
		switch {
		case f.calls == nil:
			counts["not reached"]++
			t.Logf("%s, line %d, is not reached", f.kernel, f.line)
		case f.found == "":
			counts["harmless"]++
		default:
			require.Contains(t, f.found, "race: ", "%s, line %d", f.kernel, f.line)
			needed++
		}
	}
	t.Logf("%d fences: %d needed; without %d no race was seen; %d are not reached by 2 or 3 ranks of 2 blocks", len(all), needed, counts["harmless"], counts["not reached"])
	require.Positive(t, needed)
}
