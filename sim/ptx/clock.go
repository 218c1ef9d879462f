package ptx

import (
	"context"
	"fmt"
	"time"

	"example.com/tandem/sim/ptx/vm"
)

// stillFor is the virtual time after which kernels that wait for memory without
// a look at the clock, while nobody writes, are taken to be deadlocked.
const stillFor = 100 * time.Second

// burst is how many instructions run between two looks at the streams, and
// busy how many may run in one Sleep before time passes nevertheless; stopping is
// how many are left to kernels of an interrupted stream.
const (
	burst    = 1 << 14
	busy     = 1 << 30
	stopping = 1 << 17
)

// clock is virtual time.
type clock driver

func (c *clock) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.Now()
}

// Sleep runs the machine. Others may call the driver between two bursts.
func (c *clock) Sleep(dur time.Duration) { c.SleepContext(context.Background(), dur) }

// SleepContext is Sleep that ends with ctx, between two bursts.
func (c *clock) SleepContext(ctx context.Context, dur time.Duration) {
	d := (*driver)(c)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.m.Touched() // the host may have written to pinned memory
	if dur <= 0 {
		d.step()
		return
	}
	wake := d.m.Now() + dur
	d.sleeps++
	me := d.sleeps
	d.sleepers[me] = wake
	defer delete(d.sleepers, me)
	start := d.m.Steps
	for d.m.Now() < wake {
		if ctx.Err() != nil {
			return
		}
		if waiting := d.step(); waiting || d.m.Steps-start > busy {
			d.jump()
			start = d.m.Steps
		}
		d.mu.Unlock()
		d.mu.Lock()
	}
}

// step runs a burst, and says whether all that is left waits. The lock is held.
func (d *driver) step() (waiting bool) {
	moved := d.advance()
	waiting = d.m.Run(burst)
	d.exhausted()
	return !d.advance() && !moved && waiting
}

// exhausted ends kernels that have had all the instructions they may have.
func (d *driver) exhausted() {
	switch {
	case !d.m.Running():
		d.idleAt = d.m.Steps
	case d.opts.MaxSteps > 0 && d.m.Steps-d.idleAt > d.opts.MaxSteps:
		d.kill(d.m.Endless(fmt.Sprintf("still running after %d instructions", d.opts.MaxSteps)))
	}
	for _, s := range d.streams {
		if s != nil && s.last > 0 && d.m.Steps > s.last {
			d.m.Kill(s.c.dev.ordinal, d.m.Endless("still running when nobody waits any more"))
		}
	}
}

// Interrupt leaves the stream's kernels some instructions more.
func (s *stream) Interrupt() {
	d := s.c.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(s.queue) > 0 && s.last == 0 {
		s.last = d.m.Steps + stopping
	}
}

// kill ends all kernels.
func (d *driver) kill(why *vm.Fault) {
	for _, v := range d.devices {
		d.m.Kill(v.Ordinal(), why)
	}
}

// deadlocked ends kernels that wait for each other, with who waits for whom.
func (d *driver) deadlocked() bool {
	f := d.m.Barred()
	if f == nil {
		if a := d.m.Acts(); a != d.acts || !d.m.Quiet() {
			d.acts, d.moved = a, d.m.Now()
			return false
		}
		if d.m.Now()-d.moved < stillFor {
			return false
		}
		f = d.m.Stuck()
	}
	d.kill(f)
	return true
}

// jump moves time to the next moment at which anybody wakes. The lock is held.
func (d *driver) jump() {
	if d.deadlocked() {
		return
	}
	next, ok := d.m.Deadline()
	for _, at := range d.sleepers {
		if !ok || at < next {
			next, ok = at, true
		}
	}
	if ok {
		d.m.Jump(next)
	}
}
