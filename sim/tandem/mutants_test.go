package tandem

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/sim/machine"
)

// mutant is a program with a change to its steps.
type mutant struct {
	machine.Program
	edit func(s *machine.Step, rank, cta int)
}

func (p mutant) Step(s *machine.Step, rank, cta, i int) {
	p.Program.Step(s, rank, cta, i)
	p.edit(s, rank, cta)
}

func mutate(edit func(s *machine.Step, rank, cta int)) func(machine.Program) machine.Program {
	return func(p machine.Program) machine.Program { return mutant{p, edit} }
}

// drop makes a step a no-op.
func drop(s *machine.Step) { *s = machine.Step{Srcs: s.Srcs[:0], Peer: machine.Nobody, Fails: s.Fails} }

func is(kind machine.Kind, note string) func(*machine.Step) bool {
	return func(s *machine.Step) bool { return s.Kind == kind && s.Note == note }
}

// onStep applies a change to the steps that match.
func onStep(match func(*machine.Step) bool, change func(*machine.Step)) func(machine.Program) machine.Program {
	return mutate(func(s *machine.Step, _, _ int) {
		if match(s) {
			change(s)
		}
	})
}

func isWait(s *machine.Step) bool {
	return s.Kind == machine.Wait && (s.Note == noteHeader || s.Note == noteLines || s.Note == "done" || s.Note == "shared" || s.Note == "staged")
}

// perBlockEpoch gives every block but 0 an epoch of its own, which only its own
// calls count up.
func perBlockEpoch(p machine.Program) machine.Program {
	const own = 4096 // first of the words that hold them
	return wider{mutant{p, func(s *machine.Step, rank, cta int) {
		if cta == 0 || cta >= p.CTAs()-1 {
			return
		}
		word := ref(rank, own+int64(cta))
		if s.Base == ref(rank, wEpoch) {
			s.Base, s.Value = word, s.Value+firstEpoch
		}
		if s.Word == ref(rank, wEpoch) {
			s.Word, s.Value = word, (s.Value-firstEpoch)&s.Mask
		}
		if s.Kind == machine.Store && s.Value == statusOK && s.Word.Space == machine.Temp && s.Scope == machine.GPU {
			*s = machine.Step{Kind: machine.Add, Word: word, Value: 1, Peer: machine.Nobody, Srcs: s.Srcs[:0]}
		}
	}}, own + maxBlocks}
}

// wider is a program with more words.
type wider struct {
	machine.Program
	words int
}

func (p wider) Needs() machine.Needs {
	n := p.Program.Needs()
	n.Words = p.words
	return n
}

// checks are the parts of the test suite that mutants are tried on.
var checks = map[string]func(require.TestingT, func(machine.Program) machine.Program){
	"faults":  checkFaults,
	"streams": checkStreams,
	"closes":  checkCloses,
	"epochs":  checkEpochs,
	"grids":   checkGrids,
	"calls": func(t require.TestingT, change func(machine.Program) machine.Program) {
		require.Greater(t, checkTwoCalls(t, change), 0)
	},
	"mismatch": checkMismatch,
}

// mutants are broken variants of the protocol, each with the check that has to
// notice.
var mutants = []struct {
	name, check string
	change      func(machine.Program) machine.Program
}{
	{"an unbounded wait", "faults", onStep(isWait, func(s *machine.Step) { s.Deadline, s.Aborts = machine.Never, [2]machine.Ref{} })},
	{"a wait without a deadline", "faults", onStep(isWait, func(s *machine.Step) { s.Deadline = machine.Never })},
	{"a skipped abort check", "faults", onStep(isWait, func(s *machine.Step) { s.Aborts = [2]machine.Ref{} })},
	{"a host abort that nobody looks at", "closes", onStep(isWait, func(s *machine.Step) { s.Aborts[1] = machine.Ref{} })},
	{"a host flag cleared too early", "closes", onStep(is(machine.Store, noteBusy), func(s *machine.Step) { s.Value = 0 })},
	{"a close that does not wait for peers", "closes", onStep(is(machine.Wait, noteLeft), func(s *machine.Step) {
		if s.Cmp == machine.Equal {
			drop(s)
		}
	})},
	{"an epoch for each block", "grids", perBlockEpoch},
	{"an error while a peer may still read", "faults", onStep(is(machine.Wait, noteLeft), drop)},
	{"an error while the own kernel may still store", "faults", onStep(is(machine.Wait, noteKernel), func(s *machine.Step) { s.More = s.More[:0] })},
	{"no wait for headers", "streams", onStep(func(s *machine.Step) bool {
		return s.Note == noteHeader && (s.Kind == machine.Wait || s.Kind == machine.Test)
	}, drop)},
	{"headers that nobody compares", "mismatch", onStep(is(machine.Test, noteHeader), drop)},
	{"other blocks that do not wait for the headers", "streams", onStep(is(machine.Wait, noteAgreed), drop)},
	{"no second barrier", "streams", onStep(is(machine.Wait, "done"), drop)},
	{"no barrier between the shots", "streams", onStep(is(machine.Wait, "shared"), drop)},
	{"no wait for the stage", "streams", onStep(is(machine.Wait, "staged"), drop)},
	{"a block 0 that leaves first", "streams", onStep(is(machine.Wait, noteGone), drop)},
	{"an epoch that stands still", "streams", onStep(is(machine.Add, noteEpoch), func(s *machine.Step) { s.Value = 0 })},
	{"one half of the boxes", "streams", onStep(is(machine.Test, noteParity), drop)},
	{"flags signalled relaxed", "streams", onStep(func(s *machine.Step) bool { return s.Kind == machine.Fence }, drop)},
	{"flags read relaxed", "streams", onStep(isWait, func(s *machine.Step) { s.Order = machine.Relaxed })},
	{"an owner word that nobody claims", "calls", onStep(func(s *machine.Step) bool { return s.Kind == machine.Swap && s.Word.Off == wOwner }, func(s *machine.Step) { s.Kind = machine.Store })},
	{"no stamps", "epochs", onStep(func(s *machine.Step) bool { return s.Kind == machine.Stamp }, drop)},
	{"flag 0", "epochs", onStep(func(s *machine.Step) bool {
		return s.Kind == machine.Test && s.Cmp == machine.NotEqual && s.Mask == flagMask
	}, drop)},
}

// probe is a test that remembers that it failed.
type probe struct{ failed string }

func (p *probe) Errorf(format string, args ...any) {
	if p.failed == "" {
		p.failed = fmt.Sprintf(format, args...)
	}
}

func (p *probe) FailNow() { panic(p) }

// fails runs a check to its first failure and returns it.
func fails(check func(require.TestingT, func(machine.Program) machine.Program), change func(machine.Program) machine.Program) (text string) {
	p := &probe{}
	defer func() {
		if r := recover(); r != nil && r != any(p) {
			panic(r)
		}
		text = p.failed
	}()
	check(p, change)
	return ""
}

// TestChecksPass: the checks find nothing in the protocol as it is.
func TestChecksPass(t *testing.T) {
	if testing.Short() {
		t.Skip("the tests the checks are parts of run a sample instead")
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) { check(t, same) })
	}
}

// TestMutantsAreCaught: each broken variant makes its check fail.
func TestMutantsAreCaught(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			text := fails(checks[m.check], m.change)
			require.NotEmpty(t, text, "%s found nothing", m.check)
			t.Log(text)
		})
	}
}
