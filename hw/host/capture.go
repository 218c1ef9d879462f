package host

import (
	"context"
	"errors"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// Captured is a sequence of calls recorded as one graph for each GPU, with
// device memory of its own.
type Captured struct {
	team   *Team
	calls  []*api.Call
	arenas []*Arena
	execs  []gpu.GraphExec
	dead   bool
}

// Capture records calls. All graphs are instantiated and uploaded before it
// returns, since nothing may be loaded while a kernel waits.
func (t *Team) Capture(ctx context.Context, calls []api.Call, mem [][]api.Memory) (api.Captured, error) {
	if len(calls) == 0 || len(mem) != len(calls) {
		return nil, &api.InvalidError{Field: "calls", Value: fmt.Sprint(len(calls)), Reason: fmt.Sprintf("%d calls with memory for %d cannot be captured", len(calls), len(mem))}
	}
	c := &Captured{team: t, arenas: t.newArenas()}
	for k := range calls {
		if len(mem[k]) != len(t.members) {
			return nil, &api.InvalidError{Field: "memory", Value: fmt.Sprint(len(mem[k])), Reason: "one Memory per member is needed"}
		}
		for rank, m := range mem[k] {
			if err := t.check(&calls[k], rank, m); err != nil {
				return nil, err
			}
		}
		c.calls = append(c.calls, &calls[k])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refusal(0); err != nil {
		return nil, err
	}
	if t.round != nil && !t.round.over() {
		return nil, &api.Refused{Spec: t.spec, What: "a capture", Reason: "a call is under way"}
	}
	bound, err := t.bind(c.arenas, c.calls, mem)
	if err == nil {
		err = c.record(bound)
	}
	if err == nil {
		err = t.settle(ctx, t.limit(1))
	}
	if err != nil {
		return nil, errors.Join(err, c.free())
	}
	t.captured[c] = true
	return c, nil
}

func (c *Captured) record(bound []ready) error {
	t := c.team
	graphs, err := t.captureAll(func() error {
		for _, b := range bound {
			if err := t.launch(b); err != nil {
				return err
			}
		}
		return nil
	})
	errs := []error{err}
	for i, g := range graphs {
		if errors.Join(errs...) == nil {
			e, err := g.Instantiate()
			errs = append(errs, err)
			if err == nil {
				c.execs = append(c.execs, e)
				errs = append(errs, e.Upload(t.streams[i]))
			}
		}
		errs = append(errs, g.Destroy())
	}
	return errors.Join(errs...)
}

// captureAll captures what is queued on the streams, a graph for each. The graphs
// are the caller's to destroy, those of a failed capture too.
func (t *Team) captureAll(queue func() error) ([]gpu.Graph, error) {
	for _, s := range t.streams {
		if err := s.BeginCapture(); err != nil {
			t.abandonCaptures()
			return nil, err
		}
	}
	if err := queue(); err != nil {
		t.abandonCaptures()
		return nil, err
	}
	var graphs []gpu.Graph
	var errs []error
	for _, s := range t.streams {
		g, err := s.EndCapture()
		errs = append(errs, err)
		if err == nil {
			graphs = append(graphs, g)
		}
	}
	return graphs, errors.Join(errs...)
}

// abandonCaptures ends the captures of all streams and throws them away.
func (t *Team) abandonCaptures() {
	for _, s := range t.streams {
		if g, err := s.EndCapture(); err == nil {
			_ = g.Destroy()
		}
	}
}

// Replay copies the images in, launches the graphs, waits and copies out.
func (c *Captured) Replay(ctx context.Context) error {
	t := c.team
	t.mu.Lock()
	err := t.refusal(0)
	if err == nil && c.dead {
		err = &api.InvalidError{Field: "graph", Reason: "it was closed"}
	}
	if err == nil && t.round != nil && !t.round.over() {
		err = &api.Refused{Spec: t.spec, What: "a replay", Reason: "a call is under way"}
	}
	t.mu.Unlock()
	if err != nil {
		return err
	}
	for _, err := range t.run(ctx, c.calls[0], len(c.calls), c.Enqueue, c.arenas) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Enqueue launches the graphs on what is in device memory, and does not wait.
func (c *Captured) Enqueue() error {
	for i, e := range c.execs {
		if err := e.Launch(c.team.streams[i]); err != nil {
			return err
		}
	}
	return nil
}

// Close releases the recording.
func (c *Captured) Close() error {
	c.team.mu.Lock()
	defer c.team.mu.Unlock()
	delete(c.team.captured, c)
	return c.free()
}

// free releases the recording, unless its GPUs were given up with all there is.
func (c *Captured) free() error {
	if c.dead || c.team.lost() {
		c.dead = true
		return nil
	}
	c.dead = true
	var errs []error
	for _, e := range c.execs {
		errs = append(errs, e.Destroy())
	}
	errs = append(errs, c.team.releaseArenas(c.arenas))
	return errors.Join(errs...)
}
