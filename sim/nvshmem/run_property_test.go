package nvshmem_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
	"example.com/tandem/sim/nvshmem"
)

// check runs a property a number of hundred times, once a hundred under -short.
func check(t *testing.T, hundreds int, f func(*rapid.T)) {
	if testing.Short() {
		hundreds = 1
	}
	for range hundreds {
		rapid.Check(t, f)
	}
}

var specs = []string{
	"", "", "", "?nvls=off", "?max_ctas=64", "?max_ctas=3", "?reduce_algo=3", "?reduce_algo=4", "?reduce_recexch_kval=3",
	"?reduce_recexch_kval=5", "?reduce_scratch_size=4096", "?fcollect_ll_threshold=100000", "?reduce_nvls_threshold=0", "?rounding=rne", "?rounding=away",
	"?dir=adversarial&minmax=pr", "?fabric=nvswitch3&order=reverse", "?nvlink_domain=3&seed=7",
}

func drawVersion(rt *rapid.T) string {
	v := rapid.SampledFrom([]string{"2dca770", "pr131", "pr131-team", "pr131-tail", "3.4.5"}).Draw(rt, "version") + rapid.SampledFrom(specs).Draw(rt, "params")
	if v == "pr131" && rapid.Bool().Draw(rt, "reading") {
		v += "?rs_align=shifted"
	}
	return v
}

// drawCall makes any call of the family whose buffers take no more than a few
// MiB, its count near a threshold as often as not.
func drawCall(rt *rapid.T) api.Call {
	impl := nvshmem.Family{}.Implementations()[0]
	c := api.Call{
		Collective: rapid.SampledFrom(impl.Collectives).Draw(rt, "collective"),
		DType:      rapid.SampledFrom(impl.DTypes).Draw(rt, "dtype"),
		Ranks:      rapid.SampledFrom([]int{1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 17}).Draw(rt, "ranks"),
		Scope:      rapid.SampledFrom([]api.Scope{api.OnStream, api.OnStream, api.Block, api.Warp, api.Thread}).Draw(rt, "scope"),
		Team:       rapid.SampledFrom([]api.TeamKind{api.World, api.World, api.SubTeam}).Draw(rt, "team"),
		SrcOffset:  api.Offsets{rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 3, 4, 7, 8, 15}).Draw(rt, "src")},
		InPlace:    rapid.SampledFrom([]api.InPlace{api.OutOfPlace, api.OutOfPlace, api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart}).Draw(rt, "in-place"),
	}
	c.DstOffset = c.SrcOffset
	if c.InPlace == api.OutOfPlace && rapid.Bool().Draw(rt, "apart") {
		c.DstOffset = api.Offsets{rapid.Int64Range(0, 15).Draw(rt, "dst")}
	}
	if c.Collective.Reduces() {
		ops := []api.Op{api.Sum, api.Sum, api.Sum, api.Prod, api.Min, api.Max, api.And, api.Or, api.Xor}
		c.Op = rapid.SampledFrom(ops).Draw(rt, "op")
	}
	if c.Collective.Rooted() {
		c.Root = rapid.IntRange(0, c.Ranks-1).Draw(rt, "root")
	}
	c.Count = rapid.Int64Range(0, 5000).Draw(rt, "count")
	if near := impl.Thresholds(c); len(near) > 0 && rapid.Bool().Draw(rt, "near") {
		c.Count = max(0, rapid.SampledFrom(near).Draw(rt, "threshold")+rapid.Int64Range(-17, 40).Draw(rt, "by"))
	}
	if c.Validate() != nil || c.MemoryBytes() > 3<<20 {
		rt.Skip("no such call, or a large one")
	}
	return c
}

// values makes inputs by a seed: small integers, or any pattern.
func values(c *api.Call, seed uint64, any bool) func(int, int64) uint64 {
	return func(r int, i int64) uint64 {
		x := mix(mix(seed*256+uint64(r)) + uint64(i))
		if !any && !c.DType.Float() {
			return x % 7
		}
		if any {
			return x & c.DType.Mask()
		}
		return input("normal", c.DType, seed, r, i)
	}
}

// A run ends as its plan says: in the plan's fault, refused, or with every
// element written that is in no hole, and no other.
func TestRunsDoWhatPlansSay(t *testing.T) {
	check(t, 5, func(rt *rapid.T) {
		version, call := drawVersion(rt), drawCall(rt)
		spec, err := api.ParseSpec("sim:nvshmem@" + version)
		require.NoError(rt, err)
		plan, planErr := nvshmem.Family{}.Plan(spec, call)
		mem := memory(&call, values(&call, 1, false))
		outcomes, err := run(t, version, call, mem)
		switch {
		case planErr != nil:
			require.Equal(rt, planErr.Error(), err.Error())
			return
		case plan.Fault != nil:
			require.Equal(rt, plan.Fault, err)
			return
		case plan.Unknown != "":
			require.ErrorIs(rt, err, api.ErrRefused)
			return
		}
		require.NoError(rt, err)
		for r := range outcomes {
			requireHoles(rt, plan, r, outcomes[r].Written, mem[r][0])
		}
	})
}

func requireHoles(t require.TestingT, plan *api.Plan, rank int, written []api.Interval, lane api.Lane) {
	call := &plan.Call
	size := int64(call.DType.Size())
	reached := make([]bool, call.DstElems(0))
	for _, w := range written {
		require.Zero(t, w.Start%size)
		require.Zero(t, w.End%size)
		for i := w.Start / size; i < w.End/size; i++ {
			if reached[i] {
				require.Fail(t, "intervals overlap")
			}
			reached[i] = true
		}
	}
	hole := make([]bool, len(reached))
	for _, h := range plan.Holes(0, rank) {
		if h.Cause.Unwritten() {
			for i := h.Start; i < h.Start+h.Count; i++ {
				hole[i] = true
			}
		}
	}
	left := int64(0)
	for i := range reached {
		if call.InPlace != api.OutOfPlace && call.OwnPlace(0, rank, int64(i)) {
			continue
		}
		if hole[i] == reached[i] {
			require.Fail(t, "the plan says otherwise", "%v: rank %d, element %d, written %v", call, rank, i, reached[i])
		}
		if hole[i] {
			left++
		}
	}
	require.Equal(t, plan.Unwritten[rank], left)
	if call.InPlace != api.OutOfPlace {
		return // the guards of the smaller image lie in the larger
	}
	for i := range 64 {
		require.EqualValues(t, 0xFF, lane.Dst.Bytes[i], "guard")
		require.EqualValues(t, 0xFF, lane.Dst.Bytes[len(lane.Dst.Bytes)-1-i], "guard")
	}
}

// The machine finds a race in the steps exactly where the plan names one, and
// nothing else ends a run.
func TestTheMachineFindsTheRacesOfPlans(t *testing.T) {
	races := 0
	check(t, 5, func(rt *rapid.T) {
		version, call := drawVersion(rt), drawCall(rt)
		spec, err := api.ParseSpec("sim:nvshmem@" + version)
		require.NoError(rt, err)
		plan, err := nvshmem.Family{}.Plan(spec, call)
		if err != nil || plan.Fault != nil {
			rt.Skip("not run")
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		_, err = execute(t, version, plan, memory(&call, values(&call, 1, false)), machine.Options{Seeded: seed%2 == 1, Seed: seed})
		var race *machine.Race
		if plan.Unknown == "" {
			require.NoError(rt, err, "%v", call)
			return
		}
		require.ErrorAs(rt, err, &race, "%v: %s", call, plan.Unknown)
		races++
	})
	t.Logf("%d races", races)
}

func execute(t testing.TB, version string, plan *api.Plan, mem []api.Memory, opt machine.Options) (*machine.Result, error) {
	m := machine.New(machine.Config{Ranks: plan.Call.Ranks})
	return m.Run(program(t, version, plan), mem, opt)
}

// Whatever the schedule, a run ends with the same bits and the same coverage.
func TestSchedulesDoNotMatter(t *testing.T) {
	check(t, 2, func(rt *rapid.T) {
		version, call := drawVersion(rt), drawCall(rt)
		spec, err := api.ParseSpec("sim:nvshmem@" + version)
		require.NoError(rt, err)
		plan, err := nvshmem.Family{}.Plan(spec, call)
		if err != nil || plan.Fault != nil || plan.Unknown != "" {
			rt.Skip("not run")
		}
		value := values(&call, 5, call.DType.Float())
		mem := memory(&call, value)
		want, err := execute(t, version, plan, mem, machine.Options{})
		require.NoError(rt, err)
		for seed := range uint64(2) {
			again := memory(&call, value)
			got, err := execute(t, version, plan, again, machine.Options{Seeded: true, Seed: seed})
			require.NoError(rt, err)
			require.Equal(rt, want.Written, got.Written)
			require.Equal(rt, want.Steps, got.Steps)
			for r := range mem {
				require.Equal(rt, mem[r][0].Dst.Bytes, again[r][0].Dst.Bytes)
				require.Equal(rt, mem[r][0].Src.Bytes, again[r][0].Src.Bytes)
			}
		}
	})
}

// Out of place, every element is what the description's order of operations
// makes of the inputs, evaluated one at a time.
func TestValuesAgainstTheOrdersOfTheDescription(t *testing.T) {
	seen := map[string]int{}
	check(t, 6, func(rt *rapid.T) {
		version, call := drawVersion(rt), drawCall(rt)
		call.InPlace = api.OutOfPlace
		spec, err := api.ParseSpec("sim:nvshmem@" + version)
		require.NoError(rt, err)
		plan, err := nvshmem.Family{}.Plan(spec, call)
		if err != nil || plan.Fault != nil || plan.Unknown != "" || call.Count == 0 {
			rt.Skip("not run")
		}
		mem := memory(&call, values(&call, rapid.Uint64Range(0, 99).Draw(rt, "seed"), call.DType.Float() && rapid.Bool().Draw(rt, "bits")))
		src := sources(&call, mem)
		if _, err := run(t, version, call, mem); err != nil {
			require.ErrorIs(rt, err, api.ErrRefused)
			rt.Skip("sums of f32 patterns")
		}
		p, err := nvshmem.ParseParams(spec)
		require.NoError(rt, err)
		ref := reference{plan, p, src}
		for r := range mem {
			got := elems(call.DType, mem[r][0].Dst)
			for _, i := range someOf(int64(len(got)), uint64(r)) {
				want, alg, ok := ref.value(r, i)
				if !ok {
					continue
				}
				seen[alg]++
				require.Equal(rt, want, got[i], "%s, %v, %s: rank %d, element %d", version, call, alg, r, i)
			}
		}
	})
	t.Log(seen)
	if !testing.Short() {
		for _, alg := range []string{"one_shot", "two_shot", "recexch", "segment", "ll", "linear", "nvls", "ll8", "copy", "tree", "put_signal"} {
			require.Positive(t, seen[alg], alg)
		}
	}
}

// someOf is the ends and some of the middle of n elements.
func someOf(n int64, seed uint64) []int64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := []int64{0, n - 1, n / 2}
	for range 12 {
		out = append(out, rng.Int64N(n))
	}
	return out
}

func TestErrorsOfRunsAreTyped(t *testing.T) {
	call := allReduce(api.BF16, api.Avg, 2, 8)
	_, err := run(t, "3.4.5", call, normal(&call, 1))
	var refused *api.Refused
	require.True(t, errors.As(err, &refused))
}
