package bench

import (
	"context"
	"errors"

	"example.com/tandem/api"
)

// Floors are taken over this many bytes a rank, and so many copies of them.
const (
	floorBytes  = 64 << 20
	floorCopies = 4
)

// floors measures next to nothing on the GPUs of a side: graphs where the side
// has timed graphs, otherwise eager launches.
func (c *Config) floors(ctx context.Context, s Side, p *Point) (*Floors, error) {
	timer, ok := s.Team.(api.Timer)
	if !ok {
		return nil, &api.Refused{Spec: s.Spec, What: "timing", Reason: "it runs on no device that tells the time", Hint: "hw: specs"}
	}
	f := &Floors{Launch: Graph, Bytes: floorBytes}
	call := api.Call{Collective: api.AllGather, DType: api.U8, Ranks: p.Ranks, Count: 1024}
	empty := api.Timing{Call: call, Work: api.WorkEmpty, Calls: c.Calls, Graph: true}
	var err error
	if f.F0, err = c.floor(ctx, timer, empty); errors.Is(err, api.ErrRefused) {
		f.Launch, empty.Graph = Eager, false
		f.F0, err = c.floor(ctx, timer, empty)
	}
	if err != nil {
		return nil, err
	}
	flag := empty
	flag.Work = api.WorkFlag
	if f.F1, err = c.floor(ctx, timer, flag); err != nil {
		return nil, err
	}
	if p.Ranks == 1 || f.Launch == Eager {
		return f, nil // a virtual GPU has no rates worth a name
	}
	call.Count = floorBytes
	for work, to := range map[api.Work]*float64{api.WorkCopy: &f.Copy, api.WorkPush: &f.Push, api.WorkPull: &f.Pull} {
		us, err := c.floor(ctx, timer, api.Timing{Call: call, Work: work, Calls: floorCopies, Graph: true, Sets: 2})
		if err != nil {
			return nil, err
		}
		*to = floorBytes / us / 1e3
	}
	f.B = max(f.Copy, f.Push, f.Pull)
	return f, nil
}

// floor is the time of one piece of work, of the slowest rank.
func (c *Config) floor(ctx context.Context, timer api.Timer, what api.Timing) (float64, error) {
	m, err := timer.Time(ctx, what)
	if err != nil {
		return 0, err
	}
	k := &course{timed: m}
	if err := errors.Join(c.sample(ctx, []*course{k}), m.Close()); err != nil {
		return 0, err
	}
	medians, rank := slowest(k.ranks)
	return medians[rank] / float64(what.Calls), nil
}
