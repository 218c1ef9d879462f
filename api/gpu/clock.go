package gpu

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Clock is the time that deadlines are counted in: wall time on a real driver,
// virtual time on a virtual one.
type Clock interface {
	// Now is the time since some fixed moment.
	Now() time.Duration
	// Sleep lets d pass, and a virtual GPU run for that long. Sleep(0) yields:
	// others may run, and a virtual GPU takes some steps without time passing
	// beyond what those steps take.
	Sleep(d time.Duration)
}

// ContextClock is implemented by clocks whose Sleep can take far longer than the
// time that passes on them, as where a virtual GPU has much to do in it.
type ContextClock interface {
	Clock
	// SleepContext is Sleep, but ends within 100 ms of the wall clock once ctx
	// has ended, whatever time it is then.
	SleepContext(ctx context.Context, d time.Duration)
}

// Queryer is a stream or an event.
type Queryer interface {
	// Query reports, without waiting, whether all is done. An error is that
	// of the work: a fault of a kernel shows here.
	Query() (bool, error)
}

// Interrupter is implemented by streams whose kernels can be ended from outside,
// as only a virtual GPU's can.
type Interrupter interface {
	Queryer
	// Interrupt says that nobody waits for the stream any more: its kernels may
	// still do what they do when they are told to stop, but those that go on
	// for longer are ended as by a fault.
	Interrupt()
}

// WallClock counts wall time from now on.
func WallClock() Clock { return wallClock{time.Now()} }

type wallClock struct{ start time.Time }

func (c wallClock) Now() time.Duration { return time.Since(c.start) }

func (c wallClock) Sleep(d time.Duration) {
	if d <= 0 {
		runtime.Gosched()
		return
	}
	time.Sleep(d)
}

// Poll rhythm: a collective of a few microseconds is caught while yielding, a
// long wait costs next to no CPU.
const (
	pollYields   = 200
	pollFirst    = 20 * time.Microsecond
	pollLongest  = time.Millisecond
	pollLastCall = 2 // polls after the deadline, as time may have jumped
)

// Poll calls done until it reports true or an error, the limit has passed on
// the clock (ErrDeadline), or ctx has ended (its error). A limit of zero or
// less is none.
func Poll(ctx context.Context, clk Clock, limit time.Duration, done func() (bool, error)) error {
	start, pause, late := clk.Now(), pollFirst, 0
	sleep := clk.Sleep
	if c, ok := clk.(ContextClock); ok {
		sleep = func(d time.Duration) { c.SleepContext(ctx, d) }
	}
	for i := 0; ; i++ {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("waiting for the GPU: %w", err)
		}
		left := limit - (clk.Now() - start)
		if limit > 0 && left <= 0 {
			if late++; late == pollLastCall {
				return Refuse("wait", ErrDeadline, "not done after %v", limit)
			}
			left = 0
		}
		switch {
		case i < pollYields || late > 0:
			sleep(0)
		case limit > 0:
			sleep(min(pause, left))
			pause = min(2*pause, pollLongest)
		default:
			sleep(pause)
			pause = min(2*pause, pollLongest)
		}
	}
}

// Wait polls until all of the streams and events are done, as Poll does. The
// first error that any of them shows ends it at once, also while another still
// runs: a fault on one rank leaves the others waiting for it. Where ctx ends first,
// streams that can be are interrupted.
func Wait(ctx context.Context, clk Clock, limit time.Duration, all ...Queryer) error {
	left := slices.Clone(all)
	err := Poll(ctx, clk, limit, func() (bool, error) {
		var fault error
		left = slices.DeleteFunc(left, func(q Queryer) bool {
			if fault != nil {
				return false
			}
			ok, err := q.Query()
			fault = err
			return ok
		})
		return len(left) == 0, fault
	})
	for _, q := range left {
		if i, ok := q.(Interrupter); ok && err != nil && ctx.Err() != nil {
			i.Interrupt()
		}
	}
	return err
}
