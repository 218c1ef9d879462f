package host

import (
	"context"
	"errors"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// Rehearsed is the part of an Engine that a rehearsal needs.
type Rehearsed interface {
	Verdicts(call *api.Call) []error
	Stop()
	Deadlines() (arrive, progress time.Duration)
}

// Rehearse makes an empty call, so that nothing is loaded when one is made in
// earnest, and waits for its end.
func Rehearse(ctx context.Context, clock gpu.Clock, e Rehearsed, call *api.Call, b Bound, streams []gpu.Stream) error {
	if err := b.launch(streams); err != nil {
		return err
	}
	var q []gpu.Queryer
	for _, s := range streams {
		q = append(q, s)
	}
	arrive, _ := e.Deadlines()
	if err := gpu.Wait(ctx, clock, arrive+SetupLimit, q...); err != nil {
		e.Stop()
		return err
	}
	return errors.Join(e.Verdicts(call)...)
}

// launch queues the steps on all GPUs, each step everywhere first.
func (b Bound) launch(streams []gpu.Stream) error {
	for _, step := range b {
		for i, l := range step {
			if l.Function == nil {
				continue
			}
			if err := streams[i].Launch(l); err != nil {
				return err
			}
		}
	}
	return nil
}
