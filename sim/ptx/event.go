package ptx

import (
	"time"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

// event is a point in a stream; in a capture, a point in that.
type event struct {
	c         *vcontext
	entry     *gpu.Entry
	timing    bool
	destroyed bool
	last      *record
	capture   *capture // that the last Record was part of
	from      *stream
	node      int
}

// record is one Record of an event.
type record struct {
	done  bool
	at    time.Duration
	known vm.Known
}

func (c *vcontext) NewEvent(o gpu.EventOptions) (gpu.Event, error) {
	leave, err := c.enter("cuEventCreate")
	if err != nil {
		return nil, err
	}
	defer leave()
	return &event{c: c, timing: o.Timing, entry: c.ledger.Add(gpu.KindEvent, nil)}, nil
}

func (d *driver) event(call string, e gpu.Event) (*event, error) {
	v, ok := e.(*event)
	switch {
	case !ok || v.c.d != d:
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "the event is another driver's")
	case v.destroyed:
		return nil, gpu.Refuse(call, gpu.ErrClosed, "the event was destroyed")
	}
	return v, nil
}

func (s *stream) Record(e gpu.Event) error {
	leave, err := s.enter("cuEventRecord")
	if err != nil {
		return err
	}
	defer leave()
	v, err := s.c.d.event("cuEventRecord", e)
	if err != nil {
		return err
	}
	v.capture, v.from = s.capture, s
	if s.capture != nil {
		v.node = s.capture.point(s)
		return nil
	}
	v.last = &record{}
	s.add(op{record: v.last})
	return nil
}

func (s *stream) WaitEvent(e gpu.Event) error {
	leave, err := s.enter("cuStreamWaitEvent")
	if err != nil {
		return err
	}
	defer leave()
	v, err := s.c.d.event("cuStreamWaitEvent", e)
	if err != nil {
		return err
	}
	switch k := v.capture; {
	case k != nil && k.ended:
	case k != nil && s.capture == nil:
		s.capture, s.tail, s.joins = k, -1, []int{v.node}
		k.open[s] = true
	case k != nil && s.capture != k:
		return &gpu.Error{Call: "cuStreamWaitEvent", Code: gpu.CaptureMerge}
	case k != nil:
		s.joins = append(s.joins, v.node)
		if v.from != s && v.from != k.origin {
			k.open[v.from] = v.node != k.point(v.from)
		}
	case s.capture != nil:
		return &gpu.Error{Call: "cuStreamWaitEvent", Code: gpu.CaptureIsolation}
	case v.last != nil:
		s.add(op{await: v.last})
	}
	return nil
}

func (v *event) Query() (bool, error) {
	leave, err := v.c.enter("cuEventQuery")
	if err != nil {
		return false, err
	}
	defer leave()
	if _, err := v.c.d.event("cuEventQuery", v); err != nil {
		return false, err
	}
	if v.capture != nil && !v.capture.ended {
		return false, &gpu.Error{Call: "cuEventQuery", Code: gpu.CapturedEvent}
	}
	v.c.d.advance()
	if v.last == nil {
		return true, nil
	}
	if v.last.done {
		v.c.d.known = v.c.d.known.Join(v.last.known)
	}
	return v.last.done, nil
}

func (v *event) Since(earlier gpu.Event) (time.Duration, error) {
	const call = "cuEventElapsedTime"
	leave, err := v.c.enter(call)
	if err != nil {
		return 0, err
	}
	defer leave()
	from, err := v.c.d.event(call, earlier)
	if err != nil {
		return 0, err
	}
	if !v.timing || !from.timing || v.last == nil || from.last == nil {
		return 0, gpu.Refuse(call, gpu.ErrInvalid, "an event without timing, or never recorded")
	}
	if !v.last.done || !from.last.done {
		return 0, &gpu.Error{Call: call, Code: gpu.NotReady}
	}
	return v.last.at - from.last.at, nil
}

func (v *event) Destroy() error {
	leave, err := v.c.release("cuEventDestroy")
	if err != nil {
		return err
	}
	defer leave()
	if _, err := v.c.d.event("cuEventDestroy", v); err != nil {
		return err
	}
	v.destroyed = true
	v.entry.Release()
	return nil
}
