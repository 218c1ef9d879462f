package matrix

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
)

// Options say how cases are run. The zero Options are ready to use.
type Options struct {
	// Checks are asked of both sides. nil asks for values, and of each side for
	// what it promises of coverage, rank agreement and liveness; the other
	// checks execute a call several times and must be named.
	Checks []api.Check
	// Repeats is how often run_to_run executes a call again; 0 is 2.
	Repeats int
	// Exact holds every element to equal bits, whatever the plans say.
	Exact bool
	// MaxMemory bounds the buffers of all calls under way together, in bytes; 0
	// is conformance.DefaultMaxMemory. A call that needs more is refused.
	MaxMemory int64
	// Workers is the number of calls under way at a time, each on teams of its
	// own. 0 is GOMAXPROCS, or 1 where a side is neither a planner nor a
	// recording: a device is not for several teams at a time.
	Workers int
	// Arrive and Progress are the deadlines that teams are opened with.
	Arrive, Progress time.Duration
	// Skip has cases that are not run: those of other shards, and those whose
	// outcome is known.
	Skip func(i int) bool
	// Done is told every outcome as it comes, from one goroutine at a time. Its
	// error ends the run.
	Done func(Outcome) error
	// MaxShrunk is how many kinds of failure are made small; 0 is 100, less
	// than 0 none.
	MaxShrunk int
}

// Run runs cases on two sides. Divergence is a Result, not an error: errors say
// what kept the cases from being run, as the end of the context does. Refused
// calls are counted, with the reasons.
func Run(ctx context.Context, left, right conformance.Side, cases []Case, opt Options) (*Result, error) {
	outcomes, err := Execute(ctx, left, right, cases, opt)
	if err != nil {
		return nil, err
	}
	return Explain(ctx, left, right, cases, outcomes, opt)
}

// Execute runs cases and says what became of each, in their order.
func Execute(ctx context.Context, left, right conformance.Side, cases []Case, opt Options) ([]Outcome, error) {
	pool := newPool(left, right, opt)
	var todo []int
	for i := range cases {
		if opt.Skip == nil || !opt.Skip(i) {
			todo = append(todo, i)
		}
	}
	outcomes := make([]Outcome, len(todo))
	var done sync.Mutex
	err := pool.each(ctx, len(todo), func(ctx context.Context, w *worker, k int) error {
		o, err := w.outcome(ctx, cases, todo[k])
		if err != nil {
			return err
		}
		outcomes[k] = o
		if opt.Done == nil {
			return nil
		}
		done.Lock()
		defer done.Unlock()
		return opt.Done(o)
	})
	return outcomes, err
}

// Explain counts outcomes by kind and makes one case of each kind of failure as
// small as it goes on failing.
func Explain(ctx context.Context, left, right conformance.Side, cases []Case, outcomes []Outcome, opt Options) (*Result, error) {
	sortOutcomes(outcomes)
	res := tally(cases, outcomes)
	limit := opt.MaxShrunk
	if limit == 0 {
		limit = 100
	}
	err := newPool(left, right, opt).each(ctx, len(res.Failures), func(ctx context.Context, w *worker, i int) error {
		return w.explain(ctx, &res.Failures[i], i < limit)
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// pool makes workers.
type pool struct {
	left, right conformance.Side
	opt         Options
	checks      checks
	memory      *semaphore.Weighted
	limit       int64
}

func newPool(left, right conformance.Side, opt Options) *pool {
	p := &pool{left: left, right: right, opt: opt, checks: wanted(left, right, opt.Checks), limit: opt.MaxMemory}
	if p.limit == 0 {
		p.limit = conformance.DefaultMaxMemory
	}
	p.memory = semaphore.NewWeighted(p.limit)
	if p.opt.Workers == 0 {
		p.opt.Workers = runtime.GOMAXPROCS(0)
		for _, s := range []conformance.Side{left, right} {
			if s.Alone() {
				p.opt.Workers = 1
			}
		}
	}
	if p.opt.Repeats == 0 {
		p.opt.Repeats = 2
	}
	return p
}

// each calls f with 0 to n-1, in this order, on as many workers as there may be.
func (p *pool) each(ctx context.Context, n int, f func(ctx context.Context, w *worker, i int) error) error {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(p.opt.Workers, n) {
		g.Go(func() (err error) {
			w := p.worker()
			defer func() { err = errors.Join(err, w.runner.Close(context.WithoutCancel(ctx))) }()
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := f(ctx, w, i); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// worker runs one case at a time.
type worker struct {
	*pool
	runner  conformance.Runner
	repeats int
}

func (p *pool) worker() *worker {
	inner := 1
	if p.opt.Workers == 1 {
		inner = 0 // all cores for the one call under way
	}
	return &worker{pool: p, repeats: p.opt.Repeats, runner: conformance.Runner{
		Exact: p.opt.Exact, MaxMemory: p.limit, Workers: inner, Arrive: p.opt.Arrive, Progress: p.opt.Progress,
	}}
}

// run compares one case once there is memory for it.
func (w *worker) run(ctx context.Context, c Case) (*conformance.Report, error) {
	need := w.limit
	if n := c.Call.MemoryBytes(); n < w.limit/4 {
		need = 4 * n // sources twice, and a destination a side or two
	}
	if err := w.memory.Acquire(ctx, need); err != nil {
		return nil, err
	}
	defer w.memory.Release(need)
	w.runner.Input, w.runner.Graph = c.Input, c.Graph
	return w.runner.Run(ctx, w.left, w.right, c.Call)
}

// outcome runs a case.
func (w *worker) outcome(ctx context.Context, cases []Case, i int) (Outcome, error) {
	f, _, err := w.judge(ctx, cases[i])
	switch {
	case err == nil && f == nil:
		return Outcome{Case: i, Status: Agree}, nil
	case err == nil:
		return Outcome{Case: i, Status: Diverge, Check: f.check, Cause: f.cause}, nil
	}
	if reason, ok := refusal(err); ok && ctx.Err() == nil {
		return Outcome{Case: i, Status: Refused, Reason: reason}, nil
	}
	return Outcome{}, &CaseError{cases[i], err}
}

// CaseError is what kept a case from being run, and all that would have
// followed.
type CaseError struct {
	Case Case
	Err  error
}

// Error is one line: the case, and what went wrong.
func (e *CaseError) Error() string { return e.Case.String() + ": " + e.Err.Error() }

// Unwrap is what went wrong.
func (e *CaseError) Unwrap() error { return e.Err }
