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

// fenceCall is what two ranks of two blocks each do, twice, on one team.
type fenceCall struct {
	params string
	calls  []api.Call
}

// fenceCalls reach every fence that two ranks of two blocks can reach: every
// collective on every path, large enough for both blocks, and then another one
// in the same boxes.
func fenceCalls() (out []fenceCall) {
	for _, params := range []string{"?ctas=2", "?ctas=2&path=direct", "?ctas=2&path=two_shot", "?ctas=2&buffers=staged&stage=262144", "?ctas=2&path=push", "?ctas=2&gpus=1"} {
		for _, c := range []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.Broadcast, api.AllToAll} {
			call := api.Call{Collective: c, DType: api.BF16, Ranks: 2, Count: 8 * 300}
			if c.Reduces() {
				call.Op = api.Sum
			}
			other := call
			other.Count, other.SrcOffset, other.DstOffset = 37, api.Offsets{1}, api.Offsets{3}
			out = append(out, fenceCall{params, []api.Call{call, other}})
		}
	}
	return out
}

// run executes the calls and says how that went wrong; "" if it did not.
func (c *fenceCall) run(ctx context.Context, model conformance.Side, o ptx.Options) (string, error) {
	o.Devices, o.Info = 2, smallGPU
	d := ptx.Open(o)
	h := hw.New("ptx", d)
	spec, err := api.ParseSpec("ptx:tandem" + c.params)
	if err != nil {
		return "", err
	}
	r := conformance.Runner{Exact: true}
	for _, call := range c.calls {
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
	for seed := range uint64(3) {
		for _, k := range thinned(f.calls, 5) {
			what, err := calls[k].run(ctx, model, ptx.Options{Seed: seed, Edit: edit})
			if f.found = what; err != nil || what != "" {
				return err
			}
		}
	}
	return nil
}

// TestPTXFences takes out each fence of tandem's kernels alone and looks whether
// that is seen, on two ranks of two blocks. It logs those whose absence nothing
// shows, and those that are not reached. Whether a race is found depends on
// which writes the strong reads of a schedule see, not on the order of anything
// else: so one seed finds most, and the absence of a race under a few is not a
// proof.
func TestPTXFences(t *testing.T) {
	if os.Getenv("TANDEM_EXHAUSTIVE") == "" {
		t.Skip("a run for every fence takes many minutes; with TANDEM_EXHAUSTIVE=1 it runs")
	}
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	calls := fenceCalls()
	reached := make([]map[int]bool, len(calls)) // lines, by call
	work := new(errgroup.Group)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i := range calls {
		reached[i] = map[int]bool{}
		work.Go(func() error {
			what, err := calls[i].run(t.Context(), model, ptx.Options{Seed: 1, Fenced: func(module string, line int) { reached[i][line] = true }})
			if what != "" {
				err = fmt.Errorf("%+v: %s", calls[i], what)
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
		case f.found == "":
			counts["harmless"]++
		default:
			require.Contains(t, f.found, "race: ", "%s, line %d", f.kernel, f.line)
			needed++
		}
	}
	t.Logf("%d fences: %d needed; without %d no race was seen; %d are not reached by 2 ranks of 2 blocks", len(all), needed, counts["harmless"], counts["not reached"])
	require.Positive(t, needed)
}
