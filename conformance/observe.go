package conformance

import (
	"context"
	"errors"
	"fmt"

	"example.com/tandem/api"
)

// observation is what one side's execution of a call left behind. All slices
// are by rank, and those of bitsets by lane within it.
type observation struct {
	side     Side
	plan     *api.Plan
	promise  api.Contract // of every output, where there is no plan
	evidence map[string]api.Evidence
	fault    *api.Fault

	out [][][]byte
	// unwritten has the elements that no store reached; nil where that is not
	// known.
	unwritten [][]bitset
	// unreduced has, in place and where unwritten is not known, the elements
	// that are still what they were although the right result differs.
	unreduced [][]bitset
	// unstable has the elements that a second run gave other bits.
	unstable  [][]bitset
	guardHits []int64
	changed   []int64 // source bytes
}

// runs executes calls on one side.
type runs struct {
	session
	src, dst, again *arena
	workers         int
	graph           bool
}

// observe executes a call and looks at what it left. A fault is an observation;
// everything else that keeps the call from ending is an error.
func (r *runs) observe(ctx context.Context, call *api.Call, in *sources) (*observation, error) {
	obs, err := r.begin(call)
	if err != nil {
		return nil, err
	}
	im := newImages(call, r.src, r.dst)
	written, err := r.execute(ctx, call, im, poison1, in, obs)
	if err != nil || obs.fault != nil {
		return obs, err
	}
	obs.out = make([][][]byte, call.Ranks)
	for rank := range obs.out {
		obs.out[rank] = im.outputs(rank)
	}
	r.inspect(im, poison1, in, obs)
	_, recorded := r.side.Backend.(Recorded)
	switch {
	case written != nil:
		obs.unwritten, err = fromIntervals(call, written)
		if err != nil {
			err = fmt.Errorf("%s: %w", r.side, err)
		}
		return obs, err
	case recorded:
		return obs, nil
	}
	return obs, r.repeat(ctx, call, in, obs)
}

// begin plans the call.
func (r *runs) begin(call *api.Call) (*observation, error) {
	obs := &observation{side: r.side}
	var err error
	if obs.plan, err = r.side.plan(call); err != nil {
		return nil, err
	}
	if obs.plan != nil {
		obs.evidence = obs.plan.Evidence()
	} else if m := r.side.implementation(); m != nil {
		obs.promise, obs.evidence = m.Contract, m.Evidence
	}
	return obs, nil
}

// execute runs the call once. It gives the intervals of each rank, or nil if
// one of the ranks does not know them.
func (r *runs) execute(ctx context.Context, call *api.Call, im *images, poison byte, in *sources, obs *observation) ([][]api.Interval, error) {
	team, err := r.team(ctx, call)
	if err != nil {
		return nil, err
	}
	if p, ok := team.(Promiser); ok && obs.plan == nil {
		obs.promise, obs.evidence = p.Promise()
	}
	launch := startWith(team, call)
	if _, ok := team.(api.Capturer); ok && r.graph {
		captured, err := r.capture(ctx, team, call, im, poison, in, obs)
		if captured == nil {
			return nil, err
		}
		defer captured.Close()
		launch = replaying(captured, call)
	}
	if err := r.prepare(im, call, poison, in.fill); err != nil {
		return nil, err
	}
	return r.start(ctx, team, call, im, obs, launch)
}

// prepare fills the images of every rank.
func (r *runs) prepare(im *images, call *api.Call, poison byte, fill func(rank int) func(dst []byte, lane int) error) error {
	return parallel(r.workers, call.Ranks, func(rank int) error {
		return im.prepare(rank, poison, fill(rank))
	})
}

// launcher runs a call on what the images hold.
type launcher func(ctx context.Context, mem []api.Memory) ([]api.Outcome, error)

func startWith(team api.Team, call *api.Call) launcher {
	return func(ctx context.Context, mem []api.Memory) ([]api.Outcome, error) {
		return api.Run(ctx, team, *call, mem)
	}
}

// start hands the images to the team and waits.
func (r *runs) start(ctx context.Context, team api.Team, call *api.Call, im *images, obs *observation, launch launcher) ([][]api.Interval, error) {
	members := team.Members()
	outcomes, err := launch(ctx, im.ofMembers(members))
	if err != nil {
		obs.fault = asFault(err)
		if errors.Is(err, api.ErrRefused) || errors.Is(err, api.ErrInvalid) {
			return nil, err // nothing was started, the team is as it was
		}
		// The call may be stuck, and the images with it: the team is closed,
		// and what it could still write to is not used again.
		r.forget()
		closeErr := r.drop(context.WithoutCancel(ctx), teamKey{call.Ranks, call.Team})
		if stopped := context.Cause(ctx); stopped != nil && obs.fault != nil && obs.fault.Kind == api.FaultAborted {
			// It is the caller who stopped, which says nothing of the backend.
			obs.fault, err = nil, errors.Join(stopped, err)
		}
		if obs.fault == nil {
			return nil, errors.Join(err, closeErr)
		}
		return nil, nil
	}
	written := make([][]api.Interval, call.Ranks)
	for i, m := range members {
		if outcomes[i].Written == nil {
			return nil, nil
		}
		written[m.Rank()] = outcomes[i].Written
	}
	return written, nil
}

// forget leaves the arenas to whoever may still write to them.
func (r *runs) forget() {
	*r.src, *r.dst, *r.again = arena{}, arena{}, arena{}
}

// asFault is the fault that an error is; nil if it is none.
func asFault(err error) *api.Fault {
	var f *api.Fault
	if errors.As(err, &f) {
		return f
	}
	var a *api.Aborted
	if errors.As(err, &a) {
		return &api.Fault{Kind: api.FaultAborted, Rank: a.Rank, CTA: -1, Detail: a.Error()}
	}
	return nil
}

// inspect counts damage to guards and sources, the worst of all runs.
func (r *runs) inspect(im *images, poison byte, in *sources, obs *observation) {
	if obs.guardHits == nil {
		obs.guardHits, obs.changed = make([]int64, im.call.Ranks), make([]int64, im.call.Ranks)
	}
	_ = parallel(r.workers, im.call.Ranks, func(rank int) error {
		obs.guardHits[rank] = max(obs.guardHits[rank], im.guardHits(rank, poison))
		if in != nil {
			obs.changed[rank] = max(obs.changed[rank], im.sourceChanged(rank, in.data[rank]))
		}
		return nil
	})
}

// repeat runs the call a second time over another poison, to learn what a
// backend that knows no intervals has written.
func (r *runs) repeat(ctx context.Context, call *api.Call, in *sources, obs *observation) error {
	im := newImages(call, r.src, r.again)
	if _, err := r.execute(ctx, call, im, poison2, in, obs); err != nil || obs.fault != nil {
		return err
	}
	r.inspect(im, poison2, in, obs)
	obs.unstable = make([][]bitset, call.Ranks)
	coverage := make([][]bitset, call.Ranks)
	err := parallel(r.workers, call.Ranks, func(rank int) error {
		second := im.outputs(rank)
		for l, first := range obs.out[rank] {
			un, moved := twoRuns(first, second[l], call.Lane(l).DType.Size())
			coverage[rank] = append(coverage[rank], un)
			obs.unstable[rank] = append(obs.unstable[rank], moved)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if call.InPlace == api.OutOfPlace {
		obs.unwritten = coverage
		return nil
	}
	obs.unreduced = coverage
	return parallel(r.workers, call.Ranks, func(rank int) error {
		for l, set := range coverage[rank] {
			markUnreduced(set, in, obs.out[rank][l], l, rank)
		}
		return nil
	})
}
