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

// Queryer is a stream or an event.
type Queryer interface {
	// Query reports, without waiting, whether all is done. An error is that
	// of the work: a fault of a kernel shows here.
	Query() (bool, error)
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
			clk.Sleep(0)
		case limit > 0:
			clk.Sleep(min(pause, left))
			pause = min(2*pause, pollLongest)
		default:
			clk.Sleep(pause)
			pause = min(2*pause, pollLongest)
		}
	}
}

// Wait polls until all of the streams and events are done, as Poll does. The
// first error that any of them shows ends it at once, also while another still
// runs: a fault on one rank leaves the others waiting for it.
func Wait(ctx context.Context, clk Clock, limit time.Duration, all ...Queryer) error {
	left := slices.Clone(all)
	return Poll(ctx, clk, limit, func() (bool, error) {
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
}
