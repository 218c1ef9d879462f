package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/vectors"
)

// RowSource is implemented by backends that serve recordings: two recordings are
// compared row by row, hashes included, where executing could use whole outputs
// only. A call that the recording does not hold is an *api.Refused.
type RowSource interface {
	Recorded
	Row(spec api.Spec, call api.Call, input inputs.Input) (*vectors.Row, error)
}

// Replay executes every row of a recording on a side and compares. See
// Runner.Replay.
func Replay(ctx context.Context, rows *vectors.Reader, side Side) (*ReplayReport, error) {
	var r Runner
	return r.Replay(ctx, rows, side)
}

// Replay executes every row of a recording on a side, several rows at a time,
// each worker with teams of its own, and compares what is recorded. What keeps
// one row from being checked is a refusal in the report; an error ends the
// replay, and the report holds what was done until then.
func (r *Runner) Replay(ctx context.Context, rows *vectors.Reader, side Side) (*ReplayReport, error) {
	if err := side.check("replaying"); err != nil {
		return &ReplayReport{Schema: ReplaySchema, Failures: []ReplayFailure{}}, err
	}
	p := &replay{
		Runner: r, side: side, header: rows.Header, memory: semaphore.NewWeighted(r.limit()),
		report: ReplayReport{Schema: ReplaySchema, Failures: []ReplayFailure{}},
	}
	feed := make(chan *vectors.Row)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(feed)
		return p.read(ctx, rows, feed)
	})
	for range r.workers() {
		g.Go(func() error { return p.work(ctx, feed) })
	}
	err := errors.Join(g.Wait(), p.gaveUp)
	p.report.Failures = firstLines(p.report.Failures, 0, (*ReplayFailure).line)
	p.report.Refusals = firstLines(p.report.Refusals, 0, (*ReplayRefusal).line)
	return &p.report, err
}

// replay is one Replay.
type replay struct {
	*Runner
	side   Side
	header vectors.Header
	memory *semaphore.Weighted // bytes of images of all workers
	mu     sync.Mutex
	report ReplayReport
	gaveUp error // why the file was not read to its end
}

// firstLines keeps the first MaxKept of a list, by line, once it is longer than
// that by slack. Workers end in any order: what is kept does not depend on it.
func firstLines[T any](list []T, slack int, line func(*T) int) []T {
	if len(list) <= MaxKept+slack && slack > 0 {
		return list
	}
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(line(&a), line(&b)) })
	if len(list) > MaxKept {
		clear(list[MaxKept:])
		list = list[:MaxKept]
	}
	return list
}

// read feeds the workers. A line that cannot be read is reported and passed
// over.
func (p *replay) read(ctx context.Context, rows *vectors.Reader, feed chan<- *vectors.Row) error {
	for {
		row, err := rows.Next()
		if ctx.Err() != nil {
			return ctx.Err() // what a pipe that was let go of gives is no line
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		var bad *vectors.LineError
		if errors.As(err, &bad) {
			p.mu.Lock()
			if p.report.UnreadableLines++; len(p.report.Unreadable) < MaxKept {
				p.report.Unreadable = append(p.report.Unreadable, ReplayRefusal{Line: bad.Line, Reason: shortReason(bad.Err)})
			}
			p.mu.Unlock()
			continue
		}
		if err != nil {
			p.gaveUp = err // the rows before it are still checked
			return nil
		}
		select {
		case feed <- row:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// maxReason bounds a reason, in bytes: parts of it may be a line's own, and that
// can be long.
const maxReason = 600

func shortReason(err error) string {
	text := err.Error()
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + ".."
	}
	return text
}

// work checks rows until there are none left.
func (p *replay) work(ctx context.Context, feed <-chan *vectors.Row) error {
	w := &replayer{replay: p, runs: &runs{
		session: session{side: p.side, arrive: p.Arrive, progress: p.Progress},
		src:     new(arena), dst: new(arena), again: new(arena), workers: 1,
	}}
	err := func() error {
		for row := range feed {
			failure, err := w.check(ctx, row)
			if err := p.count(ctx, row, failure, err); err != nil {
				return err
			}
		}
		return nil
	}()
	return errors.Join(err, w.runs.close(context.WithoutCancel(ctx)))
}

// count adds the outcome of a row to the report. Errors that are not about the
// row end the replay.
func (p *replay) count(ctx context.Context, row *vectors.Row, failure *ReplayFailure, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	refused := errors.Is(err, api.ErrRefused) || errors.Is(err, api.ErrInvalid) || errors.Is(err, api.ErrUnavailable)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case refused:
		p.report.Refused++
		p.report.Refusals = firstLines(append(p.report.Refusals, ReplayRefusal{row.Line, &CallReport{row.Call, row.Input}, shortReason(err)}), MaxKept, (*ReplayRefusal).line)
	case err != nil:
		return fmt.Errorf("line %d: %w", row.Line, err)
	case failure != nil:
		p.report.Failed++
		p.report.Failures = firstLines(append(p.report.Failures, *failure), MaxKept, (*ReplayFailure).line)
	default:
		p.report.Passed++
	}
	return nil
}

// replayer is one worker of a replay.
type replayer struct {
	*replay
	runs     *runs
	pristine arena
}

// check executes a row and compares; nil and nil is a row that passed.
func (w *replayer) check(ctx context.Context, row *vectors.Row) (*ReplayFailure, error) {
	if s, ok := w.side.Backend.(RowSource); ok {
		return w.checkRecorded(s, row)
	}
	call := &row.Call
	need := memoryNeed(call, 1, 1) // a failure looks at its sources once more
	if err := w.allow(need); err != nil {
		return nil, err
	}
	if err := w.memory.Acquire(ctx, need); err != nil {
		return nil, err
	}
	defer w.memory.Release(need)
	defer w.trim()
	obs, faithful, err := w.contracts(row)
	if err != nil {
		return nil, err
	}
	if err := w.execute(ctx, row, obs); err != nil {
		return nil, err
	}
	switch {
	case obs.fault != nil && row.Fault != nil && obs.fault.Kind == row.Fault.Kind:
		return nil, nil
	case obs.fault != nil || row.Fault != nil:
		return faultFailure(row, obs.fault), nil
	}
	return w.compare(row, obs, faithful)
}

// trim lets go of what a large row left.
func (w *replayer) trim() {
	for _, a := range []*arena{w.runs.src, w.runs.dst, w.runs.again, &w.pristine} {
		a.trim()
	}
}

// contracts says which elements of a row are not exact. Such a row is checked
// only where the whole output is recorded.
func (w *replayer) contracts(row *vectors.Row) (*observation, [][]bitset, error) {
	obs := &observation{side: w.side}
	if !anyFloatSum(&row.Call) {
		return obs, nil, nil // nothing here depends on the plan, and planning is for failures
	}
	obs, err := w.runs.begin(&row.Call)
	if err != nil {
		return nil, nil, err
	}
	if obs.plan == nil && w.header.NVLS {
		obs.promise = api.Faithful
	}
	if w.Exact {
		return obs, nil, nil
	}
	faithful := faithfulElements(&row.Call, obs)
	var weak int64
	for _, lanes := range faithful {
		for _, set := range lanes {
			weak += set.count()
		}
	}
	if weak == 0 {
		return obs, nil, nil
	}
	if row.Fault == nil && !row.HasOutput() {
		return nil, nil, &api.Refused{
			Spec: w.side.String(), What: row.Call.String(),
			Reason: fmt.Sprintf("%d outputs have no exact contract, and the row does not hold the whole output to check them against", weak),
			Hint:   "record it anew: outputs of faithful calls up to 1 Mi elements are kept in full",
		}
	}
	return obs, faithful, nil
}

// execute runs a row over its own poison, once.
func (w *replayer) execute(ctx context.Context, row *vectors.Row, obs *observation) error {
	call := &row.Call
	gen, err := row.Input.Open(call)
	if err != nil {
		return err
	}
	team, err := w.runs.team(ctx, call)
	if err != nil {
		return err
	}
	im := newImages(call, w.runs.src, w.runs.dst)
	for rank := range call.Ranks {
		fill := func(dst []byte, lane int) error { return gen.Fill(dst, lane, rank, 0) }
		if err := im.prepare(rank, row.Poison, fill); err != nil {
			return err
		}
	}
	written, err := w.runs.start(ctx, team, call, im, obs, startWith(team, call))
	if err != nil || obs.fault != nil {
		return err
	}
	for rank := range call.Ranks {
		obs.out = append(obs.out, im.outputs(rank))
	}
	w.runs.inspect(im, row.Poison, nil, obs)
	if written != nil {
		if obs.unwritten, err = fromIntervals(call, written); err != nil {
			return fmt.Errorf("%s: %w", w.side, err)
		}
	}
	return nil
}

func faultFailure(row *vectors.Row, got *api.Fault) *ReplayFailure {
	why := fmt.Sprintf("%v; the recording has results", got)
	switch {
	case got == nil:
		why = fmt.Sprintf("the recording ends in %v; the side has results", row.Fault)
	case row.Fault != nil:
		why = fmt.Sprintf("%v; the recording ends in %v", got, row.Fault)
	}
	f := &ReplayFailure{Line: row.Line, Call: CallReport{row.Call, row.Input}, Blocks: []int64{}, Cause: api.CauseFault, Why: why}
	for rank := range row.Call.Ranks {
		f.Ranks = append(f.Ranks, rank)
	}
	return f
}
