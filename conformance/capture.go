package conformance

import (
	"context"
	"errors"

	"example.com/tandem/api"
)

// ofMembers is the memory of each member of a team.
func (im *images) ofMembers(members []api.Member) []api.Memory {
	mem := make([]api.Memory, len(members))
	for i, m := range members {
		mem[i] = im.mem[m.Rank()]
	}
	return mem
}

// capture records a call and replays it once over sources that are the
// complement of the call's own, so that whatever is kept from one replay to the
// next shows. The recording is nil if there is nothing to replay again.
func (r *runs) capture(ctx context.Context, team api.Team, call *api.Call, im *images, poison byte, in *sources, obs *observation) (api.Captured, error) {
	if err := r.prepare(im, call, poison, func(rank int) func([]byte, int) error {
		fill := in.fill(rank)
		return func(dst []byte, lane int) error {
			err := fill(dst, lane)
			for i := range dst {
				dst[i] = ^dst[i]
			}
			return err
		}
	}); err != nil {
		return nil, err
	}
	captured, err := team.(api.Capturer).Capture(ctx, []api.Call{*call}, [][]api.Memory{im.ofMembers(team.Members())})
	if err != nil {
		return nil, err
	}
	if _, err := r.start(ctx, team, call, im, obs, replaying(captured, call)); err != nil || obs.fault != nil {
		return nil, errors.Join(err, captured.Close())
	}
	return captured, nil
}

// replaying runs what was captured. What stores reached is not known then.
func replaying(captured api.Captured, call *api.Call) launcher {
	return func(ctx context.Context, _ []api.Memory) ([]api.Outcome, error) {
		return make([]api.Outcome, call.Ranks), captured.Replay(ctx)
	}
}
