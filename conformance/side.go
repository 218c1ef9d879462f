package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/tandem/api"
)

// Side is one of the two executions of a comparison: an implementation on a
// backend.
type Side struct {
	Backend api.Backend
	Spec    api.Spec
}

// String is the spec.
func (s Side) String() string { return s.Spec.String() }

// check wants a backend.
func (s Side) check(name string) error {
	if s.Backend == nil {
		return &api.InvalidError{Field: "side", Value: s.String(), Reason: name + " side has no backend", Hint: "set Side.Backend to the one that knows the spec"}
	}
	return nil
}

// Recorded is implemented by backends that give back results of the past: what
// a second run with another poison would show is the same, and coverage is known
// only where it was recorded.
type Recorded interface {
	api.Backend
	Recorded()
}

// Promiser is implemented by teams that know more of their results than the
// implementation declares, as a recording does: the weakest contract an output
// may fall under, and the evidence.
type Promiser interface {
	api.Team
	Promise() (api.Contract, map[string]api.Evidence)
}

// Implementation is what the backend declares about the side's spec; nil if it
// declares nothing.
func (s Side) Implementation() *api.Implementation { return s.implementation() }

func (s Side) implementation() *api.Implementation {
	all := s.Backend.Implementations()
	i := slices.IndexFunc(all, func(m api.Implementation) bool {
		return m.Name == s.Spec.Implementation && m.Version == s.Spec.Version
	})
	if i < 0 {
		i = slices.IndexFunc(all, func(m api.Implementation) bool {
			return m.Name == s.Spec.Implementation && s.Spec.Version == ""
		})
	}
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Alone reports whether a call on the side has the backend to itself, and is made
// twice to see what it wrote: one that neither only models nor remembers.
func (s Side) Alone() bool {
	_, exclusive := s.Backend.(api.Exclusive)
	_, planner := s.Backend.(api.Planner)
	_, recorded := s.Backend.(Recorded)
	return exclusive || !planner && !recorded
}

// plan is the side's plan of a call; nil if its backend makes none. Whether the
// side can run here shows when it does.
func (s Side) plan(call *api.Call) (*api.Plan, error) {
	planner, ok := s.Backend.(api.Planner)
	if !ok {
		return nil, nil
	}
	p, err := planner.Plan(s.Spec, *call)
	if errors.Is(err, api.ErrUnavailable) {
		return nil, nil
	}
	return p, err
}

// teamKey is what a team is opened with.
type teamKey struct {
	ranks int
	kind  api.TeamKind
}

// session keeps a side's teams open between calls.
type session struct {
	side             Side
	arrive, progress time.Duration
	keys             []teamKey // oldest first
	teams            []api.Team
}

// maxTeams bounds the teams that a session keeps: each may hold threads, device
// memory or a machine.
const maxTeams = 8

// team is the open team for a call, opened now if need be.
func (s *session) team(ctx context.Context, call *api.Call) (api.Team, error) {
	key := teamKey{call.Ranks, call.Team}
	if i := slices.Index(s.keys, key); i >= 0 {
		return s.teams[i], nil
	}
	if len(s.keys) == maxTeams {
		if err := s.drop(ctx, s.keys[0]); err != nil {
			return nil, err
		}
	}
	t, err := s.side.Backend.Open(ctx, s.side.Spec, api.TeamConfig{Ranks: call.Ranks, Kind: call.Team, Arrive: s.arrive, Progress: s.progress})
	if err != nil {
		return nil, err
	}
	if err := checkMembers(t, s.side, call.Ranks); err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	s.keys, s.teams = append(s.keys, key), append(s.teams, t)
	return t, nil
}

// checkMembers wants every rank in this process: what is elsewhere cannot be
// looked at.
func checkMembers(t api.Team, side Side, ranks int) error {
	seen := make([]bool, ranks)
	for _, m := range t.Members() {
		if r := m.Rank(); r < 0 || r >= ranks || seen[r] {
			return fmt.Errorf("%s: the team of %s has a member of rank %d, or has it twice", side, ranksText(ranks), r)
		} else {
			seen[r] = true
		}
	}
	if slices.Contains(seen, false) {
		return &api.Unavailable{Spec: side.String(), Reason: fmt.Sprintf("this process holds %d of %s", len(t.Members()), ranksText(ranks)), Hint: "results are compared where all of them are"}
	}
	return nil
}

// drop closes the team of a key, which after a fault nobody should use again.
func (s *session) drop(ctx context.Context, key teamKey) error {
	i := slices.Index(s.keys, key)
	if i < 0 {
		return nil
	}
	t := s.teams[i]
	s.keys, s.teams = slices.Delete(s.keys, i, i+1), slices.Delete(s.teams, i, i+1)
	return t.Close(ctx)
}

// close closes every team.
func (s *session) close(ctx context.Context) error {
	var err error
	for len(s.keys) > 0 {
		err = errors.Join(err, s.drop(ctx, s.keys[0]))
	}
	return err
}
