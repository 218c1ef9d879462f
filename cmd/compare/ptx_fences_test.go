package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
			for _, dtype := range []api.DType{api.BF16, api.I64} {
				call := api.Call{Collective: c, DType: dtype, Ranks: 2, Count: 8 * 300}
				if c.Reduces() {
					call.Op = api.Sum
				}
				other := call
				other.Count, other.SrcOffset, other.DstOffset = 37, api.Offsets{1}, api.Offsets{3}
				out = append(out, fenceCall{params, []api.Call{call, other, call}})
			}
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

// TestPTXFences takes out each fence of tandem's kernels alone and looks whether
// that is seen, on two ranks of two blocks. It logs those whose absence nothing
// shows, and those that are not reached. Whether a race is found depends on
// which writes the strong reads of a schedule see, not on the order of anything
// else: so one seed finds most, and the absence of a race under all of them is
// not a proof.
func TestPTXFences(t *testing.T) {
	if os.Getenv("TANDEM_EXHAUSTIVE") == "" {
		t.Skip("a run for every fence takes many minutes; with TANDEM_EXHAUSTIVE=1 it runs")
	}
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	calls := fenceCalls()
	reached := map[int][]int{} // calls by line
	for i := range calls {
		seen := map[int]bool{}
		what, err := calls[i].run(t.Context(), model, ptx.Options{Seed: 1, Fenced: func(module string, line int) { seen[line] = true }})
		require.NoError(t, err)
		require.Empty(t, what, "%+v", calls[i])
		for line := range seen {
			reached[line] = append(reached[line], i)
		}
	}
	lines := strings.Split(string(kernels.Tandem), "\n")
	kernel, needed, seeds := "", 0, uint64(12)
	var harmless, unreached []string
	for i, text := range lines {
		if name, ok := strings.CutPrefix(text, ".visible .entry "); ok {
			kernel = strings.TrimSuffix(name, "(")
		}
		if !strings.Contains(text, "fence.") {
			continue
		}
		place := fmt.Sprintf("%s, line %d", kernel, i+1)
		if reached[i+1] == nil {
			unreached = append(unreached, place)
			continue
		}
		without := slices.Clone(lines)
		without[i] = ""
		edited := []byte(strings.Join(without, "\n"))
		edit := func(old []byte) []byte {
			if bytes.Equal(bytes.TrimRight(old, "\x00"), kernels.Tandem) {
				return edited
			}
			return old
		}
		found := false
		for seed := uint64(0); seed < seeds && !found; seed++ {
			for _, k := range reached[i+1] {
				what, err := calls[k].run(t.Context(), model, ptx.Options{Seed: seed, Edit: edit})
				require.NoError(t, err)
				if found = what != ""; found {
					require.Contains(t, what, "race: ", place)
					break
				}
			}
		}
		if found {
			needed++
		} else {
			harmless = append(harmless, place)
		}
	}
	t.Logf("%d fences are needed; of %d reached lines no race was seen without %d: %s", needed, len(slices.Collect(maps.Keys(reached))), len(harmless), strings.Join(harmless, "; "))
	t.Logf("not reached by 2 ranks of 2 blocks: %d: %s", len(unreached), strings.Join(unreached, "; "))
	require.Positive(t, needed)
}
