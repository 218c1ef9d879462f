package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime"
	"strings"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// DefaultMaxMemory bounds the buffers of a call where a Runner does not say
// otherwise, in bytes.
const DefaultMaxMemory = 8 << 30

// Run executes a call on two sides, on the default input, and compares what they
// left behind. A broken contract is a Report, not an error: errors say why
// nothing could be compared, and wrap the sentinels of package api. A call that
// gave no output to compare is a *NothingCompared.
func Run(ctx context.Context, left, right Side, call api.Call) (*Report, error) {
	var r Runner
	rep, err := r.Run(ctx, left, right, call)
	if err := errors.Join(err, r.Close(ctx)); err != nil {
		return nil, err
	}
	if err := rep.Nothing(); err != nil {
		return nil, err
	}
	return rep, nil
}

// Runner runs many calls, and keeps teams and buffers from one to the next. The
// zero Runner is ready to use. It is not for several goroutines at a time.
type Runner struct {
	// Input makes the sources; the zero Input is inputs.Default of each call.
	Input inputs.Input
	// Exact holds every element to equal bits, whatever the plans say.
	Exact bool
	// MaxMemory bounds the buffers of a call, in bytes; 0 is DefaultMaxMemory.
	// A call that needs more is an *api.InvalidError that says how much.
	MaxMemory int64
	// Workers is the number of goroutines; 0 is GOMAXPROCS.
	Workers int
	// Graph launches calls as captured ones, where a team is an api.Capturer:
	// prepared once, launched over other data, and then over the call's own. A
	// team that is none starts them as always.
	Graph bool
	// Arrive and Progress are the deadlines teams are opened with.
	Arrive, Progress time.Duration
	// Environment is added to that of every report.
	Environment map[string]string

	pristine arena
	src      arena
	again    arena
	sides    [2]*runs
}

func (r *Runner) workers() int {
	if r.Workers > 0 {
		return r.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Run executes one call on both sides. See the function Run, but for this: a
// call that gave no output to compare is a Report too, since guards and sources
// were looked at, and Report.Nothing says so.
func (r *Runner) Run(ctx context.Context, leftSide, rightSide Side, call api.Call) (*Report, error) {
	if err := errors.Join(leftSide.check(sideName(left)), rightSide.check(sideName(right))); err != nil {
		return nil, err
	}
	c, gen, err := r.prepare(&call, leftSide, rightSide)
	if err != nil {
		return nil, err
	}
	defer r.trim()
	for s, side := range []Side{leftSide, rightSide} {
		runs, err := r.side(ctx, s, side)
		if err != nil {
			return nil, err
		}
		runs.graph = r.Graph
		if c.obs[s], err = runs.observe(ctx, c.call, c.in); err != nil {
			return nil, err
		}
	}
	if l, r := c.obs[left].fault, c.obs[right].fault; l != nil && r != nil {
		return nil, &NothingCompared{Left: l, Right: r}
	}
	if !c.orderFree && !r.Exact {
		c.faithful = faithfulElements(c.call, c.obs[left], c.obs[right])
	}
	out := outsiders(c.in, c.workers, c.obs[left], c.obs[right])
	c.outside = [2][][]bitset{out[left], out[right]}
	rep := c.build(gen.Input())
	maps.Copy(rep.Environment, r.Environment)
	rep.Repro = r.reproOf(leftSide, rightSide, rep.Call)
	return rep, nil
}

// prepare checks the call, asks for its memory and makes its sources.
func (r *Runner) prepare(call *api.Call, sides ...Side) (*comparison, *inputs.Generator, error) {
	if err := call.Validate(); err != nil {
		return nil, nil, err
	}
	sets := int64(len(sides))
	for _, s := range sides {
		if s.Alone() {
			sets = int64(len(sides)) + 1 // to run it twice
		}
	}
	if err := r.allow(memoryNeed(call, 1, sets)); err != nil {
		return nil, nil, err
	}
	gen, err := r.Input.Open(call)
	if err != nil {
		return nil, nil, err
	}
	c := &comparison{call: call, workers: r.workers(), orderFree: gen.Input().Kind == inputs.OrderFree}
	c.in, err = newSources(call, gen, &r.pristine, r.workers())
	return c, gen, err
}

// allow refuses a call that needs more memory than may be used.
func (r *Runner) allow(need int64) error {
	limit := r.limit()
	if need <= limit {
		return nil
	}
	text := sizeText(need)
	if need == math.MaxInt64 {
		text = "more than " + text
	}
	return &api.InvalidError{
		Field: "max-memory", Value: sizeText(limit), Reason: fmt.Sprintf("the buffers of this call need %s", text),
		Hint: "allow more, or give a smaller count; explain needs no memory",
	}
}

// limit is the memory that may be used, in bytes.
func (r *Runner) limit() int64 {
	if r.MaxMemory == 0 {
		return DefaultMaxMemory
	}
	return r.MaxMemory
}

// sizeText is a number of bytes, rounded up so that it suffices.
func sizeText(n int64) string {
	for _, u := range []struct {
		unit  string
		shift int
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n >= 1<<u.shift {
			tenths := uint64(n)/(1<<u.shift)*10 + (uint64(n)%(1<<u.shift)*10+1<<u.shift-1)>>u.shift
			if tenths%10 == 0 {
				return fmt.Sprintf("%d%s", tenths/10, u.unit)
			}
			return fmt.Sprintf("%d.%d%s", tenths/10, tenths%10, u.unit)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// side is the session of one side, a new one if it is not what it was.
func (r *Runner) side(ctx context.Context, s int, side Side) (*runs, error) {
	if old := r.sides[s]; old != nil {
		if sameBackend(old.side.Backend, side.Backend) && old.side.String() == side.String() {
			return old, nil
		}
		r.sides[s] = nil
		if err := old.close(ctx); err != nil {
			return nil, err
		}
	}
	r.sides[s] = &runs{
		session: session{side: side, arrive: r.Arrive, progress: r.Progress},
		src:     &r.src, dst: new(arena), again: &r.again, workers: r.workers(),
	}
	return r.sides[s], nil
}

// sameBackend reports whether two backends are one; those that cannot be
// compared never are.
func sameBackend(a, b api.Backend) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// trim keeps a large call's buffers from staying for ever.
func (r *Runner) trim() {
	for _, a := range []*arena{&r.pristine, &r.src, &r.again} {
		a.trim()
	}
	for _, s := range r.sides {
		if s != nil {
			s.dst.trim()
		}
	}
}

// Close closes the teams.
func (r *Runner) Close(ctx context.Context) error {
	var err error
	for s, side := range r.sides {
		if side != nil {
			err = errors.Join(err, side.close(ctx))
			r.sides[s] = nil
		}
	}
	return err
}

// Repro is the command line of compare that gives the report of a call.
func (r *Runner) Repro(leftSide, rightSide Side, call api.Call) string {
	return r.reproOf(leftSide, rightSide, CallReport{call, r.Input.Resolve(&call)})
}

func (r *Runner) reproOf(leftSide, rightSide Side, call CallReport) string {
	parts := []string{"compare run", "--left", quote(leftSide.String()), "--right", quote(rightSide.String()), quoteFlags(call.Call.String()), quoteFlags(call.Input.String())}
	if r.Exact {
		parts = append(parts, "--contract exact")
	}
	if r.Graph {
		parts = append(parts, "--launch graph")
	}
	return strings.Join(parts, " ")
}

// Quote makes a word safe for a shell.
func Quote(word string) string { return quote(word) }

func quote(word string) string {
	for _, c := range word {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:=@,+%", c)
		if !plain {
			return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return word
}

// quoteFlags leaves the flags of a call as they are: they are made of names and
// numbers. Only a directory may hold anything else.
func quoteFlags(text string) string {
	const files = "--input file:"
	if dir, ok := strings.CutPrefix(text, files); ok {
		return "--input " + quote("file:"+dir)
	}
	return text
}
