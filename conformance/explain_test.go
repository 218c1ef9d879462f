package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/internal/exact"
)

// aSwitch is a side whose plan says that the switch adds, and that takes either
// neighbour of the exact sum, as a hash of the element has it.
func aSwitch(d api.DType, anyOrder ...api.AnyOrder) Side {
	p := ordered(anyOrder, false)
	p.value = func(_ *execution, _, _ int, i int64, in []uint64, _ uint64) uint64 {
		set := exact.NewSum(d).Set(in)
		if uint64(i+1)*0x9e3779b97f4a7c15>>63 == 1 {
			return set.Hi
		}
		return set.Lo
	}
	return p.side()
}

// TestFewElementsOfASwitch: on a handful of elements some order of rounded sums
// gives whatever the switch gave. What the plan says of it comes first.
func TestFewElementsOfASwitch(t *testing.T) {
	stepwise := (&fake{scheme: num.Scheme{Order: num.Balanced}}).side()
	diverged := 0
	for _, d := range []api.DType{api.BF16, api.F16, api.E4M3, api.E5M2} {
		sw := aSwitch(d)
		if d.Size() == 1 {
			sw = aSwitch(d, api.AnyOrder{Acc: api.F16})
		}
		for _, ranks := range []int{3, 4, 5, 8} {
			for _, count := range []int64{1, 3, 6, 17, 64} {
				for _, turned := range []bool{false, true} {
					l, r := stepwise, sw
					if turned {
						l, r = sw, stepwise
					}
					rep := run(t, &Runner{}, l, r, allReduce(d, ranks, count))
					what := fmt.Sprint(d, " ", ranks, " ranks x ", count, ": ", rep.Causes)
					if rep.Verdict == Agree {
						continue
					}
					diverged++
					require.Len(t, rep.Causes, 1, what)
					require.Equal(t, api.CauseAccumulator, rep.Causes[0].Class, what)
				}
			}
		}
	}
	require.Greater(t, diverged, 60)
}

// TestAStepwiseSwitch: a plan of sums in the element type itself says nothing
// against an order of them.
func TestAStepwiseSwitch(t *testing.T) {
	fold := []api.AnyOrder{{Acc: api.BF16}}
	rep := run(t, &Runner{Exact: true, Input: values(0x4380, 0x3F80, 0x3F80, 0x3F80)},
		ordered(fold, true, 3, 2, 1, 0).side(), ordered(fold, true, 0, 1, 2, 3).side(), allReduce(api.BF16, 4, 5))
	require.Equal(t, Diverge, rep.Verdict)
	require.Equal(t, map[api.Cause]int64{api.CauseOrder: 20}, classes(rep))
}

// TestRareOrdersComeLast: where an order that nobody uses and an exact
// accumulator explain as much, the accumulator does.
func TestRareOrdersComeLast(t *testing.T) {
	for count := int64(2); count < 40; count += 5 {
		rep := run(t, &Runner{}, (&fake{scheme: num.Scheme{Acc: num.AccExact}}).side(), (&fake{scheme: num.Scheme{Order: num.Balanced}}).side(), allReduce(api.F32, 4, count))
		if rep.Verdict == Diverge {
			require.Equal(t, map[api.Cause]int64{api.CauseAccumulator: rep.Differing.Elements}, classes(rep), "%d elements: %v", count, rep.Causes)
		}
	}
}
