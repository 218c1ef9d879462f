package gpu

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stepClock is virtual: it moves by what it is asked to sleep, and by a
// nanosecond for each yield.
type stepClock struct {
	now    time.Duration
	sleeps int
	jump   time.Duration // added at the next sleep
}

func (c *stepClock) Now() time.Duration { return c.now }

func (c *stepClock) Sleep(d time.Duration) {
	c.now += max(d, time.Nanosecond) + c.jump
	c.jump = 0
	c.sleeps++
}

// work is done at a time of the clock.
type work struct {
	c   *stepClock
	at  time.Duration
	err error
	n   int
}

func (w *work) Query() (bool, error) {
	w.n++
	return w.c.now >= w.at && w.err == nil, map[bool]error{true: w.err}[w.c.now >= w.at]
}

func TestPoll(t *testing.T) {
	bg := context.Background()
	for name, c := range map[string]struct {
		at, limit time.Duration
		want      error
		sleeps    int // at most
	}{
		"done already":              {0, time.Second, nil, 0},
		"while yielding":            {100, time.Second, nil, 100},
		"after a while":             {3 * time.Millisecond, time.Second, nil, 230},
		"after a long while":        {30 * time.Second, 0, nil, 31000},
		"at the last moment":        {time.Second, time.Second, nil, 1300},
		"too late":                  {time.Second + time.Microsecond, time.Second, ErrDeadline, 1300},
		"never":                     {1 << 62, 10 * time.Millisecond, ErrDeadline, 300},
		"a limit below the rhythm":  {1 << 62, 150, ErrDeadline, 200},
		"no limit is not the limit": {5 * time.Second, -1, nil, 5500},
	} {
		clk := &stepClock{}
		err := Wait(bg, clk, c.limit, &work{c: clk, at: c.at})
		require.ErrorIs(t, err, c.want, name)
		require.LessOrEqual(t, clk.sleeps, c.sleeps, name)
		if c.limit > 0 {
			require.LessOrEqual(t, clk.now, c.limit+2, name)
		}
	}

	// Time jumps over the deadline, and with it what was waited for.
	clk := &stepClock{jump: time.Hour}
	require.NoError(t, Wait(bg, clk, time.Second, &work{c: clk, at: time.Minute}))

	boom := errors.New("boom")
	require.ErrorIs(t, Poll(bg, clk, 0, func() (bool, error) { return false, boom }), boom)
	ctx, cancel := context.WithCancelCause(bg)
	cancel(boom)
	require.ErrorIs(t, Wait(ctx, clk, 0, &work{c: clk, at: 1 << 62}), boom)
	require.NoError(t, Wait(ctx, clk, 0, &work{c: clk}), "what is done is done")
	require.EqualError(t, Wait(bg, clk, time.Millisecond, &work{c: clk, at: 1 << 62}), "wait: deadline passed: not done after 1ms")
}

func TestWaitMany(t *testing.T) {
	clk := &stepClock{}
	fault := &Error{Call: "cuStreamQuery", Code: IllegalAddress}
	first := &work{c: clk, at: 50}
	hung := &work{c: clk, at: 1 << 62}
	faulty := &work{c: clk, at: time.Millisecond, err: fault}
	err := Wait(context.Background(), clk, time.Minute, first, hung, faulty)
	require.ErrorIs(t, err, ErrContextLost, "a fault is not kept back by what still runs")
	require.Less(t, clk.now, 3*time.Millisecond)
	require.Less(t, first.n, hung.n, "what is done is not asked again")
	require.NoError(t, Wait(context.Background(), clk, time.Minute))
}

func TestWallClock(t *testing.T) {
	c := WallClock()
	before := c.Now()
	c.Sleep(0)
	c.Sleep(-1)
	c.Sleep(2 * time.Millisecond)
	require.GreaterOrEqual(t, c.Now()-before, 2*time.Millisecond)
}

// contextClock ends sleeps with their context.
type contextClock struct {
	stepClock
	ended int
}

func (c *contextClock) SleepContext(ctx context.Context, d time.Duration) {
	c.Sleep(d)
	if ctx.Err() != nil {
		c.ended++
	}
}

// stopping is work that can be interrupted.
type stopping struct {
	work
	cancel      func()
	interrupted int
}

func (s *stopping) Query() (bool, error) {
	if s.n == 300 && s.cancel != nil {
		s.cancel()
	}
	return s.work.Query()
}

func (s *stopping) Interrupt() { s.interrupted++ }

// TestWaitInterrupts: the context reaches a clock that takes it, and what still
// runs at its end is interrupted, once; what ended or failed is not.
func TestWaitInterrupts(t *testing.T) {
	clk := &contextClock{}
	ctx, cancel := context.WithCancel(t.Context())
	early := &stopping{work: work{c: &clk.stepClock, at: 50}}
	late := &stopping{work: work{c: &clk.stepClock, at: 1 << 62}, cancel: cancel}
	require.ErrorIs(t, Wait(ctx, clk, 0, early, late), context.Canceled)
	require.Equal(t, []int{0, 1, 0}, []int{early.interrupted, late.interrupted, clk.ended})

	late = &stopping{work: work{c: &clk.stepClock, at: 1 << 62}}
	require.ErrorIs(t, Wait(t.Context(), clk, time.Millisecond, late), ErrDeadline)
	require.Zero(t, late.interrupted, "a deadline is the caller's to judge")
}
