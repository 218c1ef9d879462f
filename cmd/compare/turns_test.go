package main

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// turns lets one team of a backend work at a time: kernels that wait for each
// other must not share several GPUs with another team's. What is left to other
// goroutines is all that needs no GPU, which is most of a comparison.
type turns struct {
	api.Backend
	mu sync.Mutex
}

func (b *turns) Open(ctx context.Context, spec api.Spec, cfg api.TeamConfig) (api.Team, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	team, err := b.Backend.Open(ctx, spec, cfg)
	if err != nil {
		return nil, err
	}
	t := &turnsTeam{Team: team, b: b}
	if c, ok := team.(api.Capturer); ok {
		return &turnsCapturer{t, c}, nil
	}
	return t, nil
}

// turnsTeam has its turn from the first rank's start to the last one's wait.
type turnsTeam struct {
	api.Team
	b      *turns
	mu     sync.Mutex
	inside int
}

func (t *turnsTeam) enter() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inside == 0 {
		t.b.mu.Lock()
	}
	t.inside++
}

func (t *turnsTeam) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inside--; t.inside == 0 {
		t.b.mu.Unlock()
	}
}

func (t *turnsTeam) Close(ctx context.Context) error {
	t.enter()
	defer t.leave()
	return t.Team.Close(ctx)
}

func (t *turnsTeam) Members() []api.Member {
	var out []api.Member
	for _, m := range t.Team.Members() {
		out = append(out, &turnsMember{m, t})
	}
	return out
}

type turnsMember struct {
	api.Member
	t *turnsTeam
}

func (m *turnsMember) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	m.t.enter()
	p, err := m.Member.Start(call, mem)
	if err != nil {
		m.t.leave()
		return nil, err
	}
	return &turnsPending{Pending: p, t: m.t}, nil
}

type turnsPending struct {
	api.Pending
	t    *turnsTeam
	once sync.Once
}

func (p *turnsPending) Wait(ctx context.Context) (api.Outcome, error) {
	defer p.once.Do(p.t.leave)
	return p.Pending.Wait(ctx)
}

type turnsCapturer struct {
	*turnsTeam
	c api.Capturer
}

func (t *turnsCapturer) Capture(ctx context.Context, calls []api.Call, mem [][]api.Memory) (api.Captured, error) {
	t.enter()
	defer t.leave()
	c, err := t.c.Capture(ctx, calls, mem)
	if err != nil {
		return nil, err
	}
	return &turnsCaptured{c, t.turnsTeam}, nil
}

type turnsCaptured struct {
	c api.Captured
	t *turnsTeam
}

func (c *turnsCaptured) Replay(ctx context.Context) error {
	c.t.enter()
	defer c.t.leave()
	return c.c.Replay(ctx)
}

func (c *turnsCaptured) Close() error {
	c.t.enter()
	defer c.t.leave()
	return c.c.Close()
}

// counting counts the teams that are at work.
type counting struct {
	api.Backend
	mu         sync.Mutex
	work, most int
}

func (b *counting) Open(ctx context.Context, spec api.Spec, cfg api.TeamConfig) (api.Team, error) {
	t, err := b.Backend.Open(ctx, spec, cfg)
	if err != nil {
		return nil, err
	}
	return &standInTeam{Team: t, b: &standIn{fault: func(*api.Call, []api.Memory, int) {
		b.mu.Lock()
		b.work++
		b.most = max(b.most, b.work)
		b.mu.Unlock()
		time.Sleep(time.Millisecond)
		b.mu.Lock()
		b.work--
		b.mu.Unlock()
	}}}, nil
}

// TestTurns: many teams, one at work.
func TestTurns(t *testing.T) {
	inner := &counting{Backend: backends()[0]}
	b := &turns{Backend: inner}
	spec, err := api.ParseSpec("sim:tandem")
	require.NoError(t, err)
	var wg sync.WaitGroup
	for seed := range 4 {
		wg.Go(func() {
			team, err := b.Open(t.Context(), spec, api.TeamConfig{Ranks: 2})
			require.NoError(t, err)
			rng := seededRand(uint64(seed))
			for range 5 {
				s := newSequence(rng, 2, 1)
				startInAnyOrder(t.Context(), t, rng, team, s.calls[0], s.mem[0])
				c, err := team.(api.Capturer).Capture(t.Context(), s.calls, s.mem)
				require.NoError(t, err)
				require.NoError(t, c.Replay(t.Context()))
				require.NoError(t, c.Close())
				_, err = team.Members()[0].Start(api.Call{}, nil)
				require.Error(t, err, "and the turn is given back")
			}
			require.NoError(t, team.Close(t.Context()))
		})
	}
	wg.Wait()
	require.LessOrEqual(t, inner.most, 2, "the ranks of one team")
	require.Positive(t, inner.most)
}
