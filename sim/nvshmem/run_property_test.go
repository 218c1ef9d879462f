package nvshmem_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/arith"
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
}

func drawVersion(rt *rapid.T) string {
	v := rapid.SampledFrom([]string{"2dca770", "pr131", "3.4.5"}).Draw(rt, "version") + rapid.SampledFrom(specs).Draw(rt, "params")
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
	m := machine.New(machine.Config{Ranks: plan.Call.Ranks, Reduce: arith.Reduce})
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

// reference gives values by the description's formulas.
type reference struct {
	plan *api.Plan
	p    nvshmem.Params
	src  [][]uint64
}

// value is what element index of rank's destination must be; false where no
// store reaches it or it is stale.
func (f reference) value(rank int, index int64) (uint64, string, bool) {
	call := &f.plan.Call
	place, ok := f.plan.Locate(0, rank, index)
	if !ok {
		return 0, "", false
	}
	for _, h := range f.plan.Holes(0, rank) {
		if index >= h.Start && index < h.Start+h.Count && h.Cause != api.CauseOffset {
			return 0, "", false
		}
	}
	inputs := make([]uint64, call.Ranks)
	at := func(i int64) []uint64 {
		for r := range inputs {
			inputs[r] = f.src[r][i]
		}
		return inputs
	}
	n := call.Count
	switch alg := place.Algorithm; alg {
	case "one_shot", "two_shot":
		return f.inSwitch(at(index)), alg, true
	case "recexch":
		return f.exchange(at(index))[rank], alg, true
	case "segment":
		in := at(index)
		order := []uint64{in[rank]}
		for i := 1; i < call.Ranks; i++ {
			order = append(order, in[(rank-i+call.Ranks)%call.Ranks])
		}
		return f.fold(order...), alg, true
	case "ll":
		in := at(index)
		v := in[0]
		for i := 1; i < len(in); i++ {
			if i == 1 {
				v = f.fold(v, in[i])
			} else {
				v = f.fold(in[i], v)
			}
		}
		return v, alg, true
	case "linear":
		return f.fold(at(int64(rank)*place.CTA.Count + index - place.CTA.Start)...), alg, true
	case "nvls":
		if call.Collective == api.ReduceScatter {
			if !call.DType.Float() && (call.Op == api.Sum || call.Op == api.Min || call.Op == api.Max) {
				return 0, "", false // words of other widths than the type: section 10.12
			}
			return f.inSwitch(at(int64(rank)*n + index)), alg, true
		}
	}
	in := call.Inputs(nil, 0, rank, index)
	return f.src[in[0].Rank][in[0].Index], place.Algorithm, true
}

func (f reference) fold(in ...uint64) uint64 {
	return num.Eval(f.plan.Call.DType, num.Scheme{Op: f.plan.Call.Op, MinMax: num.Ternary}, in)
}

func (f reference) inSwitch(in []uint64) uint64 {
	d, s := f.plan.Call.DType, num.Scheme{Op: f.plan.Call.Op}
	if d.Float() {
		s.Acc, s.Last = num.AccExact, f.p.Rounding(d)
	}
	return num.Eval(d, s, in)
}

// exchange is recursive exchange on one element of all ranks.
func (f reference) exchange(in []uint64) []uint64 {
	ranks := len(in)
	k := f.p.Radix(ranks)
	power := 1
	for power*k <= ranks {
		power *= k
	}
	rest := ranks - power
	folded := rest * k / (k - 1)
	var hyper []int // ranks of step 2
	back := map[int][]int{}
	v := slices.Clone(in)
	for r := range ranks {
		if r < folded && r%k != k-1 {
			continue
		}
		first := r
		if r < folded {
			first = r - k + 1
		} else if r == folded {
			first = r - folded%k
		}
		for j := r - 1; j >= first; j-- {
			v[r] = f.fold(v[r], in[j])
			back[r] = append(back[r], j)
		}
		hyper = append(hyper, r)
	}
	for w := 1; w < power; w *= k {
		before := slices.Clone(v)
		for place, r := range hyper {
			own := place / w % k
			for digit := range k {
				if digit != own {
					v[r] = f.fold(v[r], before[hyper[place+(digit-own)*w]])
				}
			}
		}
	}
	for r, js := range back {
		for _, j := range js {
			v[j] = v[r]
		}
	}
	return v
}

func TestErrorsOfRunsAreTyped(t *testing.T) {
	call := allReduce(api.BF16, api.Avg, 2, 8)
	_, err := run(t, "3.4.5", call, normal(&call, 1))
	var refused *api.Refused
	require.True(t, errors.As(err, &refused))
}
