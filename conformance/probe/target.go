package probe

import (
	"context"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// Target gives outputs for inputs and tells nothing else.
type Target interface {
	// Reduce performs one all-reduce of count elements, input(rank, i) being
	// element i of a rank, and gives the outputs by rank.
	Reduce(ctx context.Context, d api.DType, op api.Op, ranks int, count int64, input func(rank int, i int64) uint64) ([][]uint64, error)
}

// Backend is a Target that makes calls on an implementation.
type Backend struct {
	Backend api.Backend
	Spec    api.Spec
}

// Reduce opens a team for the one call, so that nothing is remembered.
func (b Backend) Reduce(ctx context.Context, d api.DType, op api.Op, ranks int, count int64, input func(int, int64) uint64) ([][]uint64, error) {
	team, err := b.Backend.Open(ctx, b.Spec, api.TeamConfig{Ranks: ranks})
	if err != nil {
		return nil, err
	}
	out, err := reduce(ctx, team, d, op, ranks, count, input)
	if closed := team.Close(context.WithoutCancel(ctx)); err == nil {
		err = closed
	}
	return out, err
}

func reduce(ctx context.Context, team api.Team, d api.DType, op api.Op, ranks int, count int64, input func(int, int64) uint64) ([][]uint64, error) {
	if len(team.Members()) != ranks {
		return nil, &api.Unavailable{Spec: "probe", Reason: fmt.Sprintf("this process holds %d of %d ranks", len(team.Members()), ranks), Hint: "a probe needs all of them"}
	}
	call := api.Call{Collective: api.AllReduce, DType: d, Op: op, Ranks: ranks, Count: count}
	size := int64(d.Size())
	mem := make([]api.Memory, ranks)
	for r := range mem {
		src, dst := make([]byte, count*size), make([]byte, count*size)
		for i := range count {
			num.Store(d, src[i*size:], input(r, i))
		}
		srcAt, dstAt := call.Addrs(0, r)
		mem[r] = api.Memory{{Src: api.Image{Bytes: src, Addr: srcAt}, Dst: api.Image{Bytes: dst, Addr: dstAt}}}
	}
	if _, err := api.Run(ctx, team, call, mem); err != nil {
		return nil, err
	}
	out := make([][]uint64, ranks)
	for r := range out {
		out[r] = make([]uint64, count)
		for i := range out[r] {
			out[r][i] = num.Load(d, mem[r][0].Dst.Bytes[int64(i)*size:])
		}
	}
	return out, nil
}
