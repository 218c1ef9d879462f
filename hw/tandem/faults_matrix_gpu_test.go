//go:build gpu

package tandem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

const (
	faultDeadline = 20 * time.Millisecond
	// A rank that is late comes back this much later.
	faultDelay = 200 * time.Millisecond
	// What a rank may need beyond the deadline to end, on the GPU and for the
	// host.
	deviceSlack = 50 * time.Millisecond
	hostSlack   = time.Second
)

// faultCase stops a rank for good, or for a while, at a step.
type faultCase struct {
	ranks int
	path  string
	call  api.Collective
	fault Fault
}

func (c faultCase) String() string {
	what := "stopped"
	if c.fault.Delay > 0 {
		what = fmt.Sprintf("delayed by %v", c.fault.Delay)
	}
	return fmt.Sprintf("%d ranks, %s, %s, rank %d %s at %v", c.ranks, c.call.Name(), c.path, c.fault.Rank, what, c.fault.Step)
}

// faultCases are every step, path and collective at two ranks, and a sample at
// more.
func faultCases(short bool) []faultCase {
	var out []faultCase
	paths := []string{"push", "direct", "two_shot", "staged"}
	for _, path := range paths {
		for _, k := range everyCollective {
			for _, step := range Steps() {
				for _, delay := range []time.Duration{0, faultDelay} {
					out = append(out, faultCase{2, path, k, Fault{Rank: len(out) / 2 % 2, Step: step, Delay: delay}})
				}
			}
		}
	}
	rng := seeded(4)
	for _, ranks := range []int{3, 8} {
		for i := range 60 {
			f := Fault{Rank: rng.IntN(ranks), Step: Steps()[rng.IntN(int(steps))], Delay: faultDelay * time.Duration(i%2)}
			out = append(out, faultCase{ranks, paths[rng.IntN(len(paths))], everyCollective[rng.IntN(len(everyCollective))], f})
		}
	}
	if short {
		var some []faultCase
		for i := 0; i < len(out); i += 9 {
			some = append(some, out[i])
		}
		return some
	}
	return out
}

// faultRun is what became of the cases.
type faultRun struct {
	t                       *testing.T
	m                       *host.Machine
	blamed, well            int
	longestGPU, longestHost time.Duration
}

// TestFaults stops or delays a rank at every step of every path and collective.
// Every rank ends in time with an error that names it, or, where nobody had to
// wait for it any more, well; and nothing is damaged, also not by a rank that
// goes on late.
func TestFaults(t *testing.T) {
	f := &faultRun{t: t, m: machine(t)}
	start := time.Now()
	cases := faultCases(testing.Short())
	for _, c := range cases {
		f.run(c)
	}
	took := time.Since(start)
	require.Less(t, took, 3*time.Minute)
	after := 0
	for _, ranks := range []int{2, 3, 8} {
		team, c := open(t, f.m, "hw:tandem", ranks, 2*time.Second, time.Second)
		for k := range calls(t, 200) {
			require.NoError(t, try(context.Background(), team, c, randomCall(seeded(uint64(k)), ranks, 8<<10), seeded(uint64(k))))
			after++
		}
	}
	t.Logf("done when 4: %d faults in %v: %d calls named the right rank on every rank, %d ended well in spite of a delay; with deadlines of %v the GPU took at most %v and the host %v; %d calls of new teams are right afterwards",
		len(cases), took.Round(time.Second/10), f.blamed, f.well, faultDeadline, f.longestGPU.Round(time.Microsecond), f.longestHost.Round(time.Millisecond), after)
}

// run makes one case: a rank that is stopped on streams of the test's own, where
// the GPU's time can be taken, and one that is late through the team, where
// images are looked at.
func (f *faultRun) run(c faultCase) {
	t := f.t
	cfg, spec := mustRead(t, "hw:tandem?path="+c.path)
	team, err := Open(context.Background(), f.m, spec, api.TeamConfig{Ranks: c.ranks, Arrive: faultDeadline, Progress: faultDeadline})
	require.NoError(t, err)
	e := team.Engine().(*Engine)
	e.Inject(&c.fault)
	call := simple(c.call, c.ranks, 3000)
	if c.fault.Delay == 0 {
		device, took, errs := byHand(t, f.m, e, &call)
		require.Less(t, device, faultDeadline+deviceSlack, "%v: on the GPU", c)
		require.Less(t, took, faultDeadline+hostSlack, "%v: on the host", c)
		f.longestGPU, f.longestHost = max(f.longestGPU, device), max(f.longestHost, took)
		require.NotNil(t, errs, "%v: nobody has an error", c)
		f.named(c, errs)
	} else {
		f.late(c, cfg, team, &call)
	}
	require.NoError(t, team.Close(context.Background()))
}

// named holds every rank's error to naming the one that was stopped.
func (f *faultRun) named(c faultCase, errs []error) {
	for r, err := range errs {
		var a *api.Aborted
		require.ErrorAs(f.t, err, &a, "%v: rank %d", c, r)
		require.Equal(f.t, c.fault.Rank, a.Cause, "%v: rank %d: %v", c, r, err)
		require.Equal(f.t, r, a.Rank, "%v", c)
	}
	f.blamed++
}

// late makes a call with a rank that goes on after the others have given up.
func (f *faultRun) late(c faultCase, cfg *config, team *host.Team, call *api.Call) {
	t := f.t
	mem, before := prepared(call, seeded(uint64(c.fault.Step)))
	clock := f.m.Driver.Clock()
	start := clock.Now()
	errs := make([]error, c.ranks)
	pending := make([]api.Pending, c.ranks)
	for r, m := range team.Members() {
		var err error
		pending[r], err = m.Start(*call, mem[r])
		require.NoError(t, err, "%v", c)
	}
	for r, p := range pending {
		_, errs[r] = p.Wait(context.Background())
	}
	took := clock.Now() - start
	require.Less(t, took, faultDeadline+faultDelay+hostSlack, "%v", c)
	require.NoError(t, undamaged(mem, before), "%v", c)
	if errors.Join(errs...) == nil {
		require.NoError(t, judge(cfg, call, before, mem), "%v", c)
		f.well++
		return
	}
	f.named(c, errs)
	_, err := api.Run(context.Background(), team, simple(c.call, c.ranks, 0), emptyMemory(c.ranks))
	require.ErrorIs(t, err, api.ErrAborted, "the team stays poisoned")
}

// undamaged wants guards and sources as they were.
func undamaged(mem, before []api.Memory) error {
	for r := range mem {
		for i, l := range mem[r] {
			old := before[r][i]
			g := l.Dst.Guard
			if !bytes.Equal(l.Dst.Bytes[:g], old.Dst.Bytes[:g]) || !bytes.Equal(l.Dst.Bytes[len(l.Dst.Bytes)-g:], old.Dst.Bytes[len(old.Dst.Bytes)-g:]) {
				return fmt.Errorf("a guard of rank %d was overwritten", r)
			}
			if !bytes.Equal(l.Src.Bytes, old.Src.Bytes) {
				return fmt.Errorf("the source of rank %d was overwritten", r)
			}
		}
	}
	return nil
}

// byHand launches a call over memory of the test's own, on streams of its own,
// and gives the GPU's time, the host's time, and each rank's verdict.
func byHand(t *testing.T, m *host.Machine, e *Engine, call *api.Call) (device, took time.Duration, errs []error) {
	size := uint64(call.DType.Size())
	var release []func() error
	bufs := make([]host.Buffers, call.Ranks)
	for r := range bufs {
		c := e.on.GPU(r).Context
		var p [2]gpu.Ptr
		for i, n := range []int64{call.SrcElems(0), call.DstElems(0)} {
			var err error
			p[i], err = c.Alloc(max(1, uint64(n)*size))
			require.NoError(t, err)
			release = append(release, func() error { return c.Free(p[i]) })
		}
		bufs[r] = host.Buffers{{Src: p[0], Dst: p[1]}}
	}
	bound, err := e.Bind(call, bufs, make([]gpu.Ptr, len(e.on.GPUs)))
	require.NoError(t, err)
	var streams []gpu.Stream
	var events [][2]gpu.Event
	var all []gpu.Queryer
	for i, g := range e.on.GPUs {
		s, err := g.Context.NewStream(gpu.StreamOptions{})
		require.NoError(t, err)
		streams, all = append(streams, s), append(all, s)
		var pair [2]gpu.Event
		for k := range pair {
			pair[k], err = g.Context.NewEvent(gpu.EventOptions{Timing: true})
			require.NoError(t, err)
			release = append(release, pair[k].Destroy)
		}
		release = append(release, s.Destroy)
		events = append(events, pair)
		for j := range bufs {
			if e.on.Place[j] == i {
				require.NoError(t, s.Set8(bufs[j][0].Src, 0, uint64(call.SrcElems(0))*size))
			}
		}
	}
	clock := m.Driver.Clock()
	require.NoError(t, gpu.Wait(context.Background(), clock, time.Minute, all...))
	start := clock.Now()
	for i, s := range streams {
		require.NoError(t, s.Record(events[i][0]))
		require.NoError(t, s.Launch(bound[0][i]))
		require.NoError(t, s.Record(events[i][1]))
	}
	require.NoError(t, gpu.Wait(context.Background(), clock, time.Minute, all...))
	took = clock.Now() - start
	for _, pair := range events {
		d, err := pair[1].Since(pair[0])
		require.NoError(t, err)
		device = max(device, d)
	}
	errs = e.Verdicts(call)
	for _, f := range release {
		require.NoError(t, f())
	}
	return device, took, errs
}
