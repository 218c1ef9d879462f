package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/meter"
)

// timed is a sequence of calls between two events on every GPU, with device
// memory of its own; see api.Timed.
type timed struct {
	team   *Team
	what   api.Timing
	rig    *meter.Rig
	memory *timedMemory
	ready  []ready // a call for each set of buffers
	execs  []gpu.GraphExec
	start  []gpu.Event // of each GPU
	end    []gpu.Event
	dead   bool
}

var _ api.Timer = (*Team)(nil)

// Time makes a sequence ready. All that is allocated, loaded, captured and
// uploaded is before it returns.
func (t *Team) Time(ctx context.Context, what api.Timing) (api.Timed, error) {
	if err := t.checkTiming(&what); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.free(); err != nil {
		return nil, err
	}
	m := &timed{team: t, what: what}
	err := m.open(ctx)
	if err == nil {
		err = t.settle(ctx, t.limit(1))
	}
	if err != nil {
		return nil, errors.Join(err, m.release(t.poison != nil))
	}
	t.timed[m] = true
	return m, nil
}

func (t *Team) checkTiming(what *api.Timing) error {
	if what.Calls < 1 || what.Calls > maxTimed {
		return &api.InvalidError{Field: "calls", Value: fmt.Sprint(what.Calls), Reason: "out of range", Hint: fmt.Sprintf("1 to %d in a sequence", maxTimed)}
	}
	what.Sets = max(what.Sets, 1)
	if what.Sets > what.Calls {
		return &api.InvalidError{Field: "sets", Value: fmt.Sprint(what.Sets), Reason: fmt.Sprintf("there are %d calls to use them", what.Calls)}
	}
	if what.Gap < 0 {
		return &api.InvalidError{Field: "gap", Value: what.Gap.String(), Reason: "it is no time"}
	}
	if err := what.Call.Validate(); err != nil {
		return err
	}
	if what.Call.Ranks != len(t.members) {
		return &api.InvalidError{Field: "ranks", Value: fmt.Sprint(what.Call.Ranks), Reason: fmt.Sprintf("the team has %d", len(t.members))}
	}
	if what.Graph {
		for _, s := range t.streams {
			if _, ok := s.(gpu.EventNodes); !ok {
				return &api.Refused{Spec: t.spec, What: "the times of graphs", Reason: "its graphs cannot hold events", Hint: "time eager launches"}
			}
		}
	}
	return t.engine.Admit(&what.Call)
}

// maxTimed bounds the calls of a sequence.
const maxTimed = 1000

// free is why no sequence can be made or run now; t.mu is held.
func (t *Team) free() error {
	if err := t.refusal(0); err != nil {
		return err
	}
	if t.round != nil && !t.round.over() {
		return &api.Refused{Spec: t.spec, What: "timing", Reason: "a call is under way"}
	}
	return nil
}

func (m *timed) open(ctx context.Context) error {
	t := m.team
	arrive, progress := t.engine.Deadlines()
	var gpus []meter.GPU
	for i, g := range t.gpus {
		gpus = append(gpus, meter.GPU{Context: g.Context, Stream: t.streams[i], Function: g.Function, Free: func(p gpu.Ptr) error { return t.machine.Free(g, p) }})
	}
	var err error
	if m.rig, err = meter.New(ctx, t.clock, gpus, arrive+progress); err != nil {
		return err
	}
	for _, g := range t.gpus {
		for _, list := range []*[]gpu.Event{&m.start, &m.end} {
			e, err := g.Context.NewEvent(gpu.EventOptions{Timing: true})
			if err != nil {
				return err
			}
			*list = append(*list, e)
		}
	}
	if err := m.place(ctx); err != nil {
		return err
	}
	if m.what.Graph {
		return m.capture()
	}
	return nil
}

// queue puts the sequence on the streams: a barrier, an event, the calls, an
// event. In a capture the events are nodes.
func (m *timed) queue() error {
	streams := m.team.streams
	record := func(list []gpu.Event) error {
		for i, s := range streams {
			err := error(nil)
			if n, ok := s.(gpu.EventNodes); ok && m.what.Graph {
				err = n.RecordNode(list[i])
			} else {
				err = s.Record(list[i])
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for i := range streams {
		if err := m.rig.Barrier(i); err != nil {
			return err
		}
	}
	if err := record(m.start); err != nil {
		return err
	}
	for k := range m.what.Calls {
		if err := m.work(k); err != nil {
			return err
		}
		for i := range streams {
			if m.what.Gap > 0 {
				if err := m.rig.Spin(i, m.what.Gap); err != nil {
					return err
				}
			}
		}
	}
	return record(m.end)
}

// work queues the k-th call, or what stands in its place.
func (m *timed) work(k int) error {
	if m.what.Work == api.WorkCalls {
		return m.team.launch(m.ready[k%len(m.ready)])
	}
	for i, s := range m.team.streams {
		next := (i + 1) % len(m.team.streams)
		here, there, bytes := m.memory.piece(i, k), m.memory.piece(next, k), m.memory.bytes
		var err error
		switch m.what.Work {
		case api.WorkNothing:
		case api.WorkEmpty:
			err = m.rig.Empty(i)
		case api.WorkFlag:
			err = m.rig.Flag(i, k)
		case api.WorkCopy:
			err = s.Copy(there.Add(bytes), here, bytes)
		case api.WorkPush:
			err = m.rig.Copy(i, there.Add(bytes), here, bytes)
		case api.WorkPull:
			err = m.rig.Copy(i, here.Add(bytes), there, bytes)
		default:
			err = &api.InvalidError{Field: "work", Value: fmt.Sprint(uint8(m.what.Work)), Reason: "unknown"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *timed) capture() error {
	t := m.team
	graphs, err := t.captureAll(m.queue)
	for i, g := range graphs {
		if err == nil {
			var x gpu.GraphExec
			if x, err = g.Instantiate(); err == nil {
				m.execs = append(m.execs, x)
				err = x.Upload(t.streams[i])
			}
		}
		err = errors.Join(err, g.Destroy())
	}
	return err
}

// Prepare writes all sources anew and waits.
func (m *timed) Prepare(ctx context.Context) error {
	if err := m.usable(); err != nil {
		return err
	}
	t := m.team
	err := m.memory.refill(t.streams)
	if e := t.settle(ctx, t.limit(1)); err == nil {
		err = e
	}
	if err != nil {
		t.poisonAll(err)
	}
	return err
}

func (m *timed) usable() error {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	if m.dead {
		return &api.InvalidError{Field: "timing", Reason: "it was closed"}
	}
	return m.team.free()
}

// Sample runs the sequence once.
func (m *timed) Sample(ctx context.Context) ([]time.Duration, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	t := m.team
	var err error
	if m.what.Graph {
		for i, x := range m.execs {
			if err == nil {
				err = x.Launch(t.streams[i])
			}
		}
	} else {
		err = m.queue()
	}
	if err != nil {
		t.engine.Stop()
	}
	err = errors.Join(err, t.settle(ctx, t.limit(m.what.Calls)+time.Duration(m.what.Calls)*m.what.Gap), m.rig.Late())
	if verdicts := t.engine.Verdicts(&m.what.Call); err == nil && verdicts != nil {
		err = verdicts[slices.IndexFunc(verdicts, func(e error) bool { return e != nil })]
	}
	if err != nil {
		t.poisonAll(err)
		return nil, err
	}
	out := make([]time.Duration, len(t.place))
	for r, i := range t.place {
		if out[r], err = m.end[i].Since(m.start[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Close releases the sequence.
func (m *timed) Close() error {
	m.team.mu.Lock()
	defer m.team.mu.Unlock()
	delete(m.team.timed, m)
	return m.release(m.team.poison != nil)
}

// release frees what there is; the team's lock is held.
func (m *timed) release(poisoned bool) error {
	if m.dead || m.team.lost() {
		m.dead = true
		return nil
	}
	m.dead = true
	var errs []error
	for _, x := range m.execs {
		errs = append(errs, x.Destroy())
	}
	for _, e := range slices.Concat(m.start, m.end) {
		errs = append(errs, e.Destroy())
	}
	if m.memory != nil {
		errs = append(errs, m.memory.release(poisoned))
	}
	if m.rig != nil {
		errs = append(errs, m.rig.Close())
	}
	return errors.Join(errs...)
}
