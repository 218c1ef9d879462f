package sim

import (
	"time"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// Addrs gives the addresses of the payloads of source and destination of one
// lane on one rank; api.Call.Addrs is one.
type Addrs func(lane, rank int) (src, dst uint64)

// Family is the model of one library in all its versions.
type Family interface {
	// Name is the implementation's name in a spec.
	Name() string
	// Implementations describes the versions, at least one.
	Implementations() []api.Implementation
	// Plan decides what the call would do at the call's own addresses. The
	// spec names this family; its version and parameters may be wrong. The
	// error is an *api.InvalidError or an *api.Refused.
	Plan(spec api.Spec, call api.Call) (*api.Plan, error)
	// Open readies a team. It checks the version and the parameters, and
	// whether the library takes a team of that size.
	Open(spec api.Spec, team api.TeamConfig) (Session, error)
}

// Session is what a family keeps of one team from call to call. The calls of a
// team do not overlap.
type Session interface {
	// Plan decides what a call at these addresses does.
	Plan(call api.Call, addrs Addrs) (*api.Plan, error)
	// Program gives the steps of a plan that ends neither in a fault nor in the
	// unknown.
	Program(plan *api.Plan) (machine.Program, error)
}

// Judge is implemented by sessions of families whose programs can end in
// failure: by a deadline, an abort or an injected fault.
type Judge interface {
	// Judge says what each rank returns, nil for success, after a run without
	// an error of its own.
	Judge(plan *api.Plan, result *machine.Result) []error
}

// Poisoner is implemented by sessions whose team cannot be used again after a
// failure.
type Poisoner interface {
	// Poisoned is the error that rank's next Start returns; nil as long as the
	// team is usable.
	Poisoned(rank int) error
}

// Matcher is implemented by sessions of libraries that do not always notice
// when ranks start different calls, or notice less. Without it any difference
// is an *api.Mismatch.
type Matcher interface {
	// Match says what becomes of the calls, in rank order; nil if they run, and
	// then as rank 0's call at each rank's own addresses.
	Match(calls []api.Call) error
}

// Failer is implemented by sessions that remember a failed call, or give each
// rank an error of its own for it.
type Failer interface {
	// Failed says what each rank returns when the plan's fault, Program or the
	// run ended the call with err. The result is nil where nothing ran.
	Failed(plan *api.Plan, result *machine.Result, err error) []error
}

// Runner is implemented by sessions of libraries whose ranks find out for
// themselves who has come and what was started. It executes calls in the place
// of Plan and Program; Judge, Matcher and Failer are not asked.
type Runner interface {
	// Check is what Start refuses before anything of the call leaves the rank.
	Check(rank int, call *api.Call, mem api.Memory) error
	// Run executes one call and says what each rank returns. calls[rank] is nil
	// for a rank that has not started it; why then says what made the others
	// stop waiting.
	Run(opt machine.Options, calls []*api.Call, mem []api.Memory, why string) ([]api.Outcome, []error)
	// Patience is how long, in real time, a rank waits for the others to start.
	Patience() time.Duration
	// Close ends the team. It is called once, when no call runs.
	Close(opt machine.Options) error
}
