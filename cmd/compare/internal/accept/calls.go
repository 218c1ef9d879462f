package accept

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/hw/nvls"
)

// directions are the last roundings that the emulated form has, over calls that
// the rows do not have, and where there is no limit over the rows and the same
// on eight ranks.
func (s *Summary) directions(ctx context.Context, r *runners, o Options) error {
	if o.form() == "native" {
		return nil // the switch has a direction of its own
	}
	small := o.Most > 0
	base := o
	for k, dir := range []string{"rz", "rne", "away", "seeded&seed=5"} {
		o.Params, o.Model = join(base.Params, "dir="+dir), join(base.Model, "dir="+dir)
		for n, version := range []string{"2dca770", "pr131", "pr131-team", "pr131-tail"} {
			if small && n != k {
				continue
			}
			for _, call := range s.directed(small, n < 2) {
				got, want, err := pair(ctx, r, &o, "cascade@"+version, "nvshmem@"+version, call)
				if err != nil {
					return err
				}
				s.check("dir="+dir+" "+version, call, got, want)
				s.Directions++
			}
		}
	}
	return nil
}

// directed are the calls made in every direction, those of few ranks first.
func (s *Summary) directed(small, rows bool) []api.Call {
	out := eights(small)
	if small || !rows {
		return out
	}
	for _, r := range s.Rows {
		call := r.Call
		out = append(out, call)
		if call.Ranks != 8 {
			call.Ranks = 8
			out = append(out, call)
		}
	}
	slices.SortStableFunc(out, func(a, b api.Call) int { return a.Ranks - b.Ranks })
	return out
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "&" + b
}

// nvls is tandem-nvls: every collective and type on some ranks, and without a
// limit sampled calls on 1 to 16.
func (s *Summary) nvls(ctx context.Context, r *runners, b *bundle, o *Options) error {
	if !slices.ContainsFunc(o.Sim.Implementations(), func(i api.Implementation) bool { return i.Name == "tandem-nvls" }) {
		return errors.New("the simulator has no tandem-nvls")
	}
	most := 16
	if o.Most > 0 {
		most = 4
	}
	if o.form() == "native" {
		most = min(most, len(o.Driver.Devices()))
	}
	for ranks := 1; ranks <= most; ranks++ {
		var calls []api.Call
		if slices.Contains([]int{2, 4, 8}, ranks) {
			calls = typed(ranks, o.Most > 0)
		}
		if o.Most == 0 {
			rng := rand.New(rand.NewPCG(uint64(ranks), 1))
			for n := range 40 {
				calls = append(calls, sampled(rng, ranks, n))
			}
		}
		for _, call := range calls {
			got, want, err := pair(ctx, r, o, "tandem-nvls", "tandem-nvls", call)
			if err != nil {
				return err
			}
			s.check("tandem-nvls", call, got, want)
			if err := b.add("tandem-nvls", "tandem-nvls", got); err != nil {
				return err
			}
			s.Nvls++
		}
	}
	return nil
}

// typed is every collective of some types, with another offset on every rank.
func typed(ranks int, small bool) (out []api.Call) {
	for n, d := range []api.DType{api.BF16, api.F16, api.F32, api.F64, api.U32, api.I64, api.U8} {
		if small && n%2 == 1 {
			continue
		}
		for _, c := range []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather} {
			call := api.Call{Collective: c, DType: d, Op: api.Sum, Ranks: ranks, Count: int64(1000 + 37*n)}
			if !small {
				call.Count *= 50
			}
			if !c.Reduces() {
				call.Op = api.NoOp
			}
			for r := range ranks {
				call.SrcOffset = append(call.SrcOffset, int64((r+n)%8))
				call.DstOffset = append(call.DstOffset, int64((3*r+n)%8))
			}
			out = append(out, call)
		}
	}
	return out
}

// cell is a type and an operation.
type cell struct {
	d  api.DType
	op api.Op
}

// cells are those that the switch can do.
func cells() (out []cell) {
	for _, d := range api.DTypes() {
		for _, op := range num.Ops() {
			call := api.Call{Collective: api.AllReduce, DType: d, Op: op, Ranks: 2, Count: 1 << 20}
			if op.ValidFor(d) && nvls.OffSwitch(&call) == 0 {
				out = append(out, cell{d, op})
			}
		}
	}
	return out
}

// sampled is the nth call of any kind that the switch has: around the words that
// a row of ranks shares, at other offsets on every rank, in place or not.
func sampled(rng *rand.Rand, ranks, n int) api.Call {
	all := cells()
	c := all[rng.IntN(len(all))]
	if n%2 == 0 {
		c = cell{[]api.DType{api.BF16, api.F16}[n/2%2], api.Sum}
	}
	row := 16 * ranks / c.d.Size()
	counts := []int{0, 1, row - 1, row, row + 1, 5*row - 1, 5*row + 3, 4096 - rng.IntN(50), rng.IntN(1000), 256 * 16 / c.d.Size()}
	call := api.Call{Collective: []api.Collective{api.AllReduce, api.AllReduce, api.ReduceScatter, api.AllGather}[rng.IntN(4)], DType: c.d, Op: c.op, Ranks: ranks, Count: int64(counts[(n+ranks)%len(counts)] / (1 + ranks/8))}
	if !call.Collective.Reduces() {
		call.Op = api.NoOp
	}
	for range ranks {
		call.SrcOffset = append(call.SrcOffset, rng.Int64N(8))
		call.DstOffset = append(call.DstOffset, rng.Int64N(8))
	}
	if rng.IntN(3) == 0 {
		call.InPlace, call.DstOffset = api.InPlaceOwn, call.SrcOffset
		if call.Collective == api.ReduceScatter && rng.IntN(2) == 0 {
			call.InPlace = api.InPlaceStart
		}
	}
	return call
}
