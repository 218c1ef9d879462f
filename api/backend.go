package api

import (
	"context"
	"time"
)

// Backend executes calls.
type Backend interface {
	// Name is the first part of a Spec: "sim", "hw", "ptx", "file".
	Name() string
	// Implementations lists what the backend knows, available here or not.
	Implementations() []Implementation
	// Open prepares a team. Specs and teams it cannot serve are *InvalidError,
	// *Refused or *Unavailable.
	Open(ctx context.Context, spec Spec, team TeamConfig) (Team, error)
}

// Planner is implemented by backends that can say what a call would do
// without doing it; it takes no memory whatever the call's size. A plan that
// cannot be made here is an *Unavailable.
type Planner interface {
	Plan(spec Spec, call Call) (*Plan, error)
}

// Exclusive is implemented by backends whose calls have a machine to themselves, one
// at a time, and may not know what they wrote, as on GPUs, whether or not the
// backend can plan.
type Exclusive interface {
	Backend
	Exclusive()
}

// Implementation describes one version of one implementation.
type Implementation struct {
	Name        string
	Version     string
	Summary     string
	Params      []Param
	Collectives []Collective
	DTypes      []DType
	Promises    []Check
	// Contract is the weakest an output of it may fall under.
	Contract Contract
	Evidence map[string]Evidence // per algorithm
	// Unavailable says why it cannot run on this machine; "" if it can.
	Unavailable string
	// Thresholds lists, for a call, the counts around which its decisions
	// change; a sweep tests each and its neighbours. May be nil.
	Thresholds func(Call) []int64
}

// Param is a parameter of an implementation, under the library's own name.
type Param struct {
	Name    string
	Default string
	Values  string // what it takes: "on|off", "1..1024"
	Help    string
}

// TeamConfig is what a team is opened with.
type TeamConfig struct {
	Ranks int
	Kind  TeamKind
	// Arrive and Progress are the deadlines of a call: until all ranks have
	// come, and afterwards. Zero is the implementation's default.
	Arrive, Progress time.Duration
}

// Team is a set of participants.
type Team interface {
	// Members are the ranks this process holds: all of them, or one.
	Members() []Member
	// Close ends the team, stuck calls included, by the context's deadline.
	Close(ctx context.Context) error
}

// Member is one rank of a team.
type Member interface {
	Rank() int
	// Start begins a call on this rank. An error means that nothing was
	// started and nothing was touched.
	Start(call Call, mem Memory) (Pending, error)
}

// Pending is a call that was started.
type Pending interface {
	// Wait ends when the call has ended on this rank: nil, *Fault,
	// *Mismatch, *Aborted, *Refused, or the context's error.
	Wait(ctx context.Context) (Outcome, error)
}

// Memory is what one rank brings to a call, one Lane per lane of the call.
type Memory []Lane

// Lane is a source and a destination.
type Lane struct{ Src, Dst Image }

// Outcome is what a backend knows about an ended call.
type Outcome struct {
	// Written are the destination bytes that stores reached, sorted and
	// merged; nil when the backend cannot know.
	Written []Interval
}

// Interval is a range of bytes of the destination of one lane.
type Interval struct {
	Lane       int
	Start, End int64
}

// Run starts one call on every member of a team that lives in this process and
// waits for all of them. mem is indexed like team.Members. Outcomes are
// returned for the ranks that ended well; the error is that of the lowest rank
// that failed, starts before waits.
func Run(ctx context.Context, team Team, call Call, mem []Memory) ([]Outcome, error) {
	members := team.Members()
	if len(mem) != len(members) {
		return nil, &InvalidError{Field: "memory", Value: "", Reason: "one Memory per member is needed"}
	}
	var first error
	pending := make([]Pending, len(members))
	for i, m := range members {
		p, err := m.Start(call, mem[i])
		if err != nil {
			first = err
			break
		}
		pending[i] = p
	}
	out := make([]Outcome, len(members))
	if first != nil {
		// The ranks already started would wait for the others for ever.
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		for _, p := range pending {
			if p != nil {
				_, _ = p.Wait(ctx)
			}
		}
		return nil, first
	}
	for i, p := range pending {
		o, err := p.Wait(ctx)
		if err != nil && first == nil {
			first = err
		}
		out[i] = o
	}
	return out, first
}
