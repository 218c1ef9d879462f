package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/hwtest"
)

// slow is an engine whose calls take virtual time and note their buffers.
type slow struct {
	d       *hwtest.Driver
	takes   time.Duration
	bufs    [][]Buffers
	ran     int
	verdict error
	fail    error
}

func (e *slow) Admit(call *api.Call) error {
	if call.Collective == api.AllToAll {
		return &api.Refused{Spec: "hw:slow", What: "all_to_all", Reason: "it is refused"}
	}
	return nil
}
func (e *slow) TableBytes(call *api.Call) int                       { return 8 * (call.Lanes() - 1) }
func (e *slow) Table(c *api.Call, mem []Buffers) []byte             { return make([]byte, e.TableBytes(c)) }
func (e *slow) Deadlines() (arrive, prog time.Duration)             { return time.Second, time.Second }
func (e *slow) Release(bool) error                                  { return nil }
func (e *slow) Stop()                                               {}
func (e *slow) Bind(*api.Call, []Buffers, []gpu.Ptr) (Bound, error) { return nil, e.fail }

func (e *slow) Verdicts(*api.Call) []error {
	if e.verdict == nil {
		return nil
	}
	return []error{nil, e.verdict}
}

func (e *slow) Queue(_ *api.Call, mem []Buffers, streams []gpu.Stream) error {
	h, _, err := streams[0].(gpu.NativeStream).Native()
	if err != nil {
		return err
	}
	return e.d.Queue(h, func() {
		e.ran++
		e.bufs = append(e.bufs, mem)
		e.d.Pass(e.takes)
	})
}

// setup is a team of two ranks on two GPUs of a stand-in whose clock moves by
// what kernels take.
func setup(t *testing.T) (*Team, *slow, *hwtest.Driver) {
	d := hwtest.New(2)
	lasts := func(takes time.Duration) hwtest.Kernel {
		return func(d *hwtest.Driver, _ int, _ gpu.Launch) { d.Pass(takes) }
	}
	spin := func(d *hwtest.Driver, _ int, l gpu.Launch) {
		// The clock of the stand-in is 1 GHz: a cycle is a nanosecond.
		d.Pass(time.Duration(le64(l.Args.Bytes())))
	}
	d.Kernels = map[string]hwtest.Kernel{"meter_barrier": lasts(time.Millisecond), "meter_flag": lasts(3 * time.Microsecond), "meter_empty": lasts(2 * time.Microsecond),
		"meter_spin": spin, "meter_copy": lasts(50 * time.Microsecond)}
	d.ParamsOf = map[string][]gpu.Param{"meter_barrier": {{Offset: 0, Size: 8}},
		"meter_flag": {{Offset: 0, Size: 128}, {Offset: 128, Size: 8}, {Offset: 136, Size: 8}, {Offset: 144, Size: 4}}, "meter_empty": {{Offset: 0, Size: 8}}, "meter_spin": {{Offset: 0, Size: 8}},
		"meter_copy": {{Offset: 0, Size: 8}, {Offset: 8, Size: 8}, {Offset: 16, Size: 8}, {Offset: 24, Size: 4}}}
	m := NewMachine(d)
	gpus, err := m.Open("hw:slow", 2)
	require.NoError(t, err)
	var streams []gpu.Stream
	for _, g := range gpus {
		s, err := g.Context.NewStream(gpu.StreamOptions{})
		require.NoError(t, err)
		streams = append(streams, s)
	}
	e := &slow{d: d, takes: 7 * time.Microsecond}
	team := NewTeam(Config{Spec: "hw:slow", Machine: m, GPUs: gpus, Place: []int{0, 1}, Streams: streams, Engine: e})
	t.Cleanup(func() {
		require.NoError(t, team.Close(context.Background()))
		require.NoError(t, m.Close())
		require.True(t, d.Counts().None(), "%v", d.Counts())
	})
	return team, e, d
}

func le64(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

func call(n int64) api.Call {
	return api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 2, Count: n, SrcOffset: api.Offsets{1}, DstOffset: api.Offsets{3}}
}

// TestTimed: what lies between the events is timed and nothing else: not the
// barrier, which takes a millisecond here, and not the preparation.
func TestTimed(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		what api.Timing
		want time.Duration // of GPU 0, whose stream has the calls
	}{
		"eager":          {api.Timing{Calls: 1}, 7 * time.Microsecond},
		"eager, several": {api.Timing{Calls: 5}, 35 * time.Microsecond},
		"graph":          {api.Timing{Calls: 20, Graph: true}, 140 * time.Microsecond},
		"graph, gaps":    {api.Timing{Calls: 20, Graph: true, Gap: 5 * time.Microsecond}, 240 * time.Microsecond},
		"gaps alone":     {api.Timing{Calls: 20, Graph: true, Gap: 5 * time.Microsecond, Work: api.WorkNothing}, 100 * time.Microsecond},
		"empty nodes":    {api.Timing{Calls: 20, Graph: true, Work: api.WorkEmpty}, 40 * time.Microsecond},
		"flags":          {api.Timing{Calls: 2, Graph: true, Work: api.WorkFlag}, 6 * time.Microsecond},
		"pushes":         {api.Timing{Calls: 4, Graph: true, Sets: 2, Work: api.WorkPush}, 200 * time.Microsecond},
		"pulls":          {api.Timing{Calls: 4, Graph: true, Work: api.WorkPull}, 200 * time.Microsecond},
		"copy engine":    {api.Timing{Calls: 4, Graph: true, Work: api.WorkCopy}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			team, e, _ := setup(t)
			c.what.Call = call(1000)
			m, err := team.Time(ctx, c.what)
			require.NoError(t, err)
			for range 3 {
				require.NoError(t, m.Prepare(ctx))
				got, err := m.Sample(ctx)
				require.NoError(t, err)
				require.Len(t, got, 2)
				// In eager form the stand-in does GPU 1's barrier and event
				// within GPU 0's time.
				require.Equal(t, c.want, got[0].Truncate(time.Microsecond))
			}
			if c.what.Work == api.WorkCalls {
				require.Equal(t, 3*c.what.Calls, e.ran)
			} else {
				require.Zero(t, e.ran)
			}
			require.NoError(t, m.Close())
			require.NoError(t, m.Close())
			_, err = m.Sample(ctx)
			require.ErrorIs(t, err, api.ErrInvalid)
		})
	}
}

// TestTimedBuffers: sets are taken in turn, apart from each other, at the
// addresses that offsets ask for; sources are written before each sample.
func TestTimedBuffers(t *testing.T) {
	ctx := context.Background()
	team, e, d := setup(t)
	many := api.Call{Collective: api.AllGatherMany, DType: api.BF16, Ranks: 2, Many: []api.LaneShape{{Count: 100}, {DType: api.F64, Count: 3}, {Count: 0}}}
	own := call(64)
	own.InPlace, own.DstOffset = api.InPlaceOwn, own.SrcOffset
	for _, c := range []api.Call{call(1000), many, own} {
		e.bufs = nil
		m, err := team.Time(ctx, api.Timing{Call: c, Calls: 7, Sets: 3, Graph: true})
		require.NoError(t, err)
		require.NoError(t, m.Prepare(ctx))
		_, err = m.Sample(ctx)
		require.NoError(t, err)
		require.Len(t, e.bufs, 7)
		used := map[gpu.Ptr]int{}
		for k, bufs := range e.bufs {
			require.Equal(t, e.bufs[k%3], bufs, "call %d", k)
			for r, lanes := range bufs {
				for lane, p := range lanes {
					size := uint64(c.Lane(lane).DType.Size())
					src, dst := c.Addrs(lane, r)
					require.Equal(t, src%256, uint64(p.Src)%256)
					require.Equal(t, dst%256, uint64(p.Dst)%256)
					n := uint64(c.SrcElems(lane)) * size
					if n > 0 {
						require.Equal(t, byte(pattern), d.Bytes(p.Src)[n-1])
						used[p.Src]++
					}
				}
			}
		}
		require.Len(t, used, 3*2*map[bool]int{true: 2, false: 1}[c.Lanes() == 3])
		for i, b := range e.bufs[0] {
			clear(d.Bytes(b[0].Src)[:4])
			require.NoError(t, m.Prepare(ctx))
			require.Equal(t, byte(pattern), d.Bytes(b[0].Src)[0], "rank %d", i)
		}
		require.NoError(t, m.Close())
	}
}

func TestTimedRefusals(t *testing.T) {
	ctx := context.Background()
	team, e, _ := setup(t)
	good := api.Timing{Call: call(10), Calls: 2}
	for says, spoil := range map[string]func(*api.Timing){
		"1 to 1000":       func(w *api.Timing) { w.Calls = 0 },
		"out of range":    func(w *api.Timing) { w.Calls = maxTimed + 1 },
		"to use them":     func(w *api.Timing) { w.Sets = 3 },
		"it is no time":   func(w *api.Timing) { w.Gap = -1 },
		"the team has 2":  func(w *api.Timing) { w.Call.Ranks = 3 },
		"it is refused":   func(w *api.Timing) { w.Call = api.Call{Collective: api.AllToAll, DType: api.U8, Ranks: 2, Count: 1} },
		"needs lanes":     func(w *api.Timing) { w.Call.Collective, w.Call.Op = api.AllGatherMany, 0 },
		`work "99": unkn`: func(w *api.Timing) { w.Work, w.Graph = 99, true },
	} {
		what := good
		spoil(&what)
		_, err := team.Time(ctx, what)
		require.ErrorContains(t, err, says)
	}
	e.fail = errors.New("no room")
	_, err := team.Time(ctx, good)
	require.ErrorIs(t, err, e.fail)
	e.fail = nil
	m, err := team.Time(ctx, good)
	require.NoError(t, err)
	e.verdict = &api.Aborted{Rank: 1, Cause: 0, Reason: "late"}
	_, err = m.Sample(ctx)
	require.ErrorIs(t, err, e.verdict)
	_, err = m.Sample(ctx)
	require.ErrorIs(t, err, api.ErrAborted, "the team is poisoned")
	require.NoError(t, m.Close())
}

// TestTimedFailures makes each call of the driver fail in turn; nothing is left.
func TestTimedFailures(t *testing.T) {
	ctx := context.Background()
	for n := 1; ; n++ {
		done := false
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			team, _, d := setup(t)
			d.FailAt(n)
			m, err := team.Time(ctx, api.Timing{Call: call(10), Calls: 2, Graph: true, Gap: time.Microsecond})
			if err == nil {
				if err = m.Prepare(ctx); err == nil {
					_, err = m.Sample(ctx)
				}
				err = errors.Join(err, m.Close())
			}
			done = d.Calls() < n
			require.Equal(t, !done, err != nil, "call %d", n)
			d.FailAt(0)
		})
		if done || t.Failed() {
			require.Greater(t, n, 40)
			break
		}
	}
}
