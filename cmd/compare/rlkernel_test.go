package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/hw"
	"example.com/tandem/sim"
	"example.com/tandem/sim/rlkernel"
)

// rlCase is one call for both derivations of one version.
type rlCase struct {
	version string
	params  string // of the device side
	call    api.Call
}

func (c rlCase) String() string { return "rlkernel@" + c.version + c.params + " " + c.call.String() }

// rlGuard is the bytes kept on either side of a payload.
const rlGuard = 64

// rlMemory makes the images of a rank: sources of any bits (none without rng),
// destinations of poison. In place the smaller image is a part of the larger.
func rlMemory(call *api.Call, rank int, rng *rand.Rand) api.Memory {
	var mem api.Memory
	for i := range call.Lanes() {
		size := int64(call.Lane(i).DType.Size())
		src, dst := call.Addrs(i, rank)
		image := func(addr uint64, n int64) api.Image {
			return api.Image{Bytes: bytes.Repeat([]byte{0xff}, int(n)+2*rlGuard), Addr: addr, Guard: rlGuard}
		}
		inside := func(m api.Image, addr uint64, n int64) api.Image {
			at := int64(addr-m.Addr) + rlGuard
			return api.Image{Bytes: m.Bytes[at : at+n : at+n], Addr: addr}
		}
		n, m := call.SrcElems(i)*size, call.DstElems(i)*size
		var l api.Lane
		switch {
		case call.InPlace == api.OutOfPlace:
			l.Src, l.Dst = image(src, n), image(dst, m)
		case n >= m:
			l.Src = image(src, n)
			l.Dst = inside(l.Src, dst, m)
		default:
			l.Dst = image(dst, m)
			l.Src = inside(l.Dst, src, n)
		}
		if rng != nil {
			rlFill(call.Lane(i).DType, l.Src.Payload(), rng)
		}
		mem = append(mem, l)
	}
	return mem
}

// rlFill writes any bits, or values near one another, so that sums round.
func rlFill(d api.DType, b []byte, rng *rand.Rand) {
	size := d.Size()
	near := d.Float() && size > 1 && rng.IntN(2) == 0
	for i := 0; i+size <= len(b); i += size {
		v := rng.Uint64()
		if near {
			v = v&(1<<d.MantissaBits()-1) | uint64(d.Bias()+int(v>>60)-8)<<d.MantissaBits() | v>>59&1<<(d.Bits()-1)
		}
		for k := range size {
			b[i+k] = byte(v >> (8 * k))
		}
	}
}

// rlCopy is memory with the same bytes, and the same sharing.
func rlCopy(call *api.Call, mem []api.Memory) []api.Memory {
	var out []api.Memory
	for r, lanes := range mem {
		cp := rlMemory(call, r, nil)
		for i, l := range lanes {
			copy(cp[i].Dst.Bytes, l.Dst.Bytes)
			copy(cp[i].Src.Bytes, l.Src.Bytes)
		}
		out = append(out, cp)
	}
	return out
}

// rlModel is what the simulator makes of a case, or why there is nothing: memory
// after the call, and memory for the device side before it. There destinations
// hold the complement of what is right, so that a byte which no store reaches is
// a wrong one.
type rlModel struct {
	before, after []api.Memory
	err           error
}

func complement(before, after []api.Memory) {
	for r, lanes := range before {
		for i, l := range lanes {
			to := l.Dst.Payload()
			for k, v := range after[r][i].Dst.Payload() {
				to[k] = ^v
			}
		}
	}
}

// rlModels runs cases on the simulator; a team is kept until it is lost.
type rlModels struct {
	backend api.Backend
	teams   map[string]api.Team
}

func newRLModels() *rlModels {
	return &rlModels{sim.New(rlkernel.Family{}), map[string]api.Team{}}
}

func (m *rlModels) run(ctx context.Context, c rlCase, params string, seed uint64) rlModel {
	rng := rand.New(rand.NewPCG(seed, 9))
	var out rlModel
	for r := range c.call.Ranks {
		out.before = append(out.before, rlMemory(&c.call, r, rng))
	}
	out.after = rlCopy(&c.call, out.before)
	key := fmt.Sprint(c.version, params, c.call.Ranks)
	team := m.teams[key]
	if team == nil {
		spec, err := api.ParseSpec("sim:rlkernel@" + c.version + params)
		if err == nil {
			team, err = m.backend.Open(ctx, spec, api.TeamConfig{Ranks: c.call.Ranks})
		}
		if err != nil {
			return rlModel{err: err}
		}
		m.teams[key] = team
	}
	outcomes, err := api.Run(ctx, team, c.call, out.after)
	if err != nil {
		delete(m.teams, key)
		return rlModel{before: out.before, err: errors.Join(err, team.Close(ctx))}
	}
	for r, o := range outcomes {
		n := int64(0)
		for _, w := range o.Written {
			n += w.End - w.Start
		}
		for _, l := range out.after[r] {
			n -= l.Dst.Len()
		}
		if n != 0 {
			out.err = fmt.Errorf("%s: the simulator left bytes of rank %d unwritten", c, r)
		}
	}
	if c.call.InPlace == api.OutOfPlace {
		complement(out.before, out.after)
	}
	return out
}

// rlDuel holds the device side to the simulator.
type rlDuel struct {
	backend *hw.Backend
	name    string
	teams   map[string]api.Team
	// Counts of what was seen.
	agree, faults, refused int
}

func newRLDuel(t testing.TB, name string, b *hw.Backend) *rlDuel {
	d := &rlDuel{backend: b, name: name, teams: map[string]api.Team{}}
	t.Cleanup(func() {
		for _, team := range d.teams {
			require.NoError(t, team.Close(context.Background()))
		}
		require.NoError(t, b.Close())
	})
	return d
}

func (d *rlDuel) team(ctx context.Context, c rlCase) (api.Team, error) {
	key := fmt.Sprint(c.version, c.params, c.call.Ranks)
	if team := d.teams[key]; team != nil {
		return team, nil
	}
	spec, err := api.ParseSpec(d.name + ":rlkernel@" + c.version + c.params)
	if err != nil {
		return nil, err
	}
	team, err := d.backend.Open(ctx, spec, api.TeamConfig{Ranks: c.call.Ranks, Arrive: 10 * time.Second, Progress: 5 * time.Second})
	if err == nil {
		d.teams[key] = team
	}
	return team, err
}

// judge runs a case on the device: it gives the simulator's bits, in every byte
// of the destination and in no other, or refuses what the library faults at.
func (d *rlDuel) judge(ctx context.Context, c rlCase, m rlModel) error {
	team, err := d.team(ctx, c)
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	got := m.before
	if got == nil { // refused by the constructor
		got = rlCopy(&c.call, make([]api.Memory, c.call.Ranks))
	}
	_, err = api.Run(ctx, team, c.call, got)
	var fault *api.Fault
	switch {
	case errors.As(m.err, &fault) && fault.Kind == api.FaultMisaligned:
		if !errors.Is(err, api.ErrRefused) {
			return fmt.Errorf("%s: the library faults (%v), the device side says %v", c, fault, err)
		}
		d.faults++
		return nil
	case errors.Is(m.err, api.ErrRefused):
		if !errors.Is(err, api.ErrRefused) {
			return fmt.Errorf("%s: the library refuses (%v), the device side says %v", c, m.err, err)
		}
		d.refused++
		return nil
	case m.err != nil:
		return fmt.Errorf("%s: simulator: %w", c, m.err)
	case err != nil:
		return fmt.Errorf("%s: %w", c, err)
	}
	for r, lanes := range got {
		for i, l := range lanes {
			want := m.after[r][i]
			if at := firstOther(l.Dst.Bytes, want.Dst.Bytes); at >= 0 {
				return fmt.Errorf("%s: rank %d lane %d: byte %d of %d in the destination is %#x, not %#x", c, r, i, at-l.Dst.Guard, l.Dst.Len(), l.Dst.Bytes[at], want.Dst.Bytes[at])
			}
			if at := firstOther(l.Src.Bytes, want.Src.Bytes); at >= 0 {
				return fmt.Errorf("%s: rank %d lane %d: byte %d of the source changed", c, r, i, at-l.Src.Guard)
			}
		}
	}
	d.agree++
	return nil
}

func firstOther(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// run judges cases in order; simulators work ahead, one to a core of so many.
func (d *rlDuel) run(ctx context.Context, t testing.TB, cases []rlCase, cores int) {
	t.Helper()
	ready := make([]chan rlModel, len(cases))
	for i := range ready {
		ready[i] = make(chan rlModel, 1)
	}
	next, ahead := make(chan int), make(chan struct{}, 2*cores)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer close(next)
		for i := range cases {
			select {
			case ahead <- struct{}{}:
				next <- i
			case <-ctx.Done():
				return
			}
		}
	})
	for range cores {
		wg.Go(func() {
			m := newRLModels()
			for i := range next {
				ready[i] <- m.run(ctx, cases[i], simParams(cases[i].params), uint64(i))
			}
			for _, team := range m.teams {
				_ = team.Close(context.Background())
			}
		})
	}
	failed := 0
	for i, c := range cases {
		m := <-ready[i]
		<-ahead
		begun := time.Now()
		if err := d.judge(ctx, c, m); err != nil {
			t.Errorf("%v", err)
			if failed++; failed > 5 {
				return
			}
		}
		if took := time.Since(begun); took > time.Second {
			t.Logf("%s took %v", c, took)
		}
	}
}

// simParams are those of the device side that the simulator has too.
func simParams(params string) string {
	spec, err := api.ParseSpec("sim:rlkernel@x" + params)
	if err != nil {
		return ""
	}
	for _, own := range []string{"path", "gpus", "placement", "deadline_scale", "allow_fault", "max_size_bytes"} {
		delete(spec.Params, own)
	}
	_, query, found := bytes.Cut([]byte(spec.String()), []byte("?"))
	if !found {
		return ""
	}
	return "?" + string(query)
}
