package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/kernels"
	"example.com/tandem/hw/kernels/mutants"
	"example.com/tandem/hw/kernels/ptxcheck"
	"example.com/tandem/hw/tandem"
)

// lab tries kernels that were broken on purpose.
type lab struct {
	// open gives a driver that changes the text of tandem's module.
	open func(edit func([]byte) []byte) (gpu.Driver, func() error)
	name string // of the backend
	// params are added to those of every trial.
	params string
	// deadline of the teams, arrive and progress.
	deadline time.Duration
	// apart says that every rank has a GPU of its own.
	apart bool
	// virtual is a machine that holds every access to the memory model.
	virtual bool
	// compiles says that loading a kernel takes long, the longer it is.
	compiles bool
	// every tries a mutant in all kernels that trials reach, not in one of them.
	every bool

	uses map[string]string // the kernel of a trial
}

// specimen is a mutant in one kernel, with the trials that use it.
type specimen struct {
	*mutants.Mutant
	kernel string
	trials []mutants.Trial
}

func (s *specimen) String() string {
	if s.kernel == "" {
		return s.Name
	}
	return s.Name + " (" + strings.TrimPrefix(s.kernel, "tandem_") + ")"
}

// with opens the kernels as s breaks them, or as they are, for f.
func (l *lab) with(t testing.TB, s *specimen, f func(b *hw.Backend, d gpu.Driver)) {
	d, done := l.open(func(text []byte) []byte {
		if s == nil {
			return text
		}
		return mutants.Alone(s.Apply(text, s.kernel), s.kernel)
	})
	b := hw.New(l.name, d)
	defer func() {
		if err := errors.Join(b.Close(), done()); err != nil && s == nil {
			t.Errorf("after the trials: %v", err)
		}
	}()
	f(b, d)
}

// caught runs trials until one shows what is wrong, and says how, and which; ""
// if none does.
func (l *lab) caught(t testing.TB, s *specimen, trials []mutants.Trial) (how string, by *mutants.Trial) {
	t.Helper()
	l.with(t, s, func(b *hw.Backend, d gpu.Driver) {
		for i := range trials {
			if trials[i].Reuse && !l.apart {
				continue
			}
			if what := l.try(t, b, d, &trials[i], uint64(i)); what != "" {
				how, by = fmt.Sprintf("%s [%s, %s]", what, trials[i].Params, trials[i].Call.Collective.Name()), &trials[i]
				return
			}
		}
	})
	return how, by
}

// team opens the team of a trial.
func (l *lab) team(ctx context.Context, b api.Backend, params string, ranks int) (*host.Team, error) {
	spec, err := api.ParseSpec(l.name + ":tandem?" + strings.Trim(params+"&"+l.params, "&"))
	if err != nil {
		return nil, err
	}
	team, err := b.Open(ctx, spec, api.TeamConfig{Ranks: ranks, Arrive: l.deadline, Progress: l.deadline})
	if err != nil {
		return nil, err
	}
	return team.(*host.Team), nil
}

// learn finds the kernel that each trial uses, by what would be launched.
func (l *lab) learn(t testing.TB, list []mutants.Mutant) {
	l.uses = map[string]string{}
	byTeam := map[string][]mutants.Trial{}
	for i := range list {
		for _, trial := range list[i].Trials {
			if key := plain(&trial); l.uses[key] == "" {
				l.uses[key] = "unknown"
				team := fmt.Sprintf("%s %d", trial.Params, trial.Call.Ranks)
				byTeam[team] = append(byTeam[team], trial)
			}
		}
	}
	l.with(t, nil, func(b *hw.Backend, d gpu.Driver) {
		for _, trials := range byTeam {
			team, err := l.team(t.Context(), b, trials[0].Params, trials[0].Call.Ranks)
			require.NoError(t, err)
			for i := range trials {
				h := l.hand(t, d, &trials[i].Call)
				team.Engine().(*tandem.Engine).Inject(&trials[i].Fault) // there may be kernels for that
				if trials[i].Fault == (tandem.Fault{}) {
					team.Engine().(*tandem.Engine).Inject(nil)
				}
				bound, err := team.Engine().Bind(&trials[i].Call, h.bufs, make([]gpu.Ptr, trials[i].Call.Ranks))
				require.NoError(t, err)
				l.uses[plain(&trials[i])] = bound[0][0].Function.Name()
				h.release()
			}
			require.NoError(t, team.Close(t.Context()))
		}
	})
}

// plain is what decides about a trial's kernel.
func plain(trial *mutants.Trial) string {
	return fmt.Sprintf("%s %s %t", trial.Params, trial.Call, trial.Fault != tandem.Fault{})
}

// specimens are the mutants in the kernels that trials use. A mutant that no
// trial reaches is an error.
func (l *lab) specimens(t testing.TB, list []mutants.Mutant) (out []specimen) {
	l.learn(t, list)
	for i := range list {
		m := &list[i]
		if l.compiles {
			m.Whole = false // kernel by kernel, too
		}
		where, err := m.Kernels(kernels.Tandem)
		require.NoError(t, err)
		var reached []specimen
		for _, k := range where {
			s := specimen{Mutant: m, kernel: k}
			for _, trial := range m.Trials {
				if k == "" || l.uses[plain(&trial)] == k {
					s.trials = append(s.trials, trial)
				}
			}
			if len(s.trials) > 0 {
				reached = append(reached, s)
			}
		}
		if len(reached) == 0 {
			t.Errorf("no trial of mutant %q uses a kernel in which it is: %v", m.Name, where)
			continue
		}
		switch {
		case l.every:
		case l.compiles: // what is soonest compiled
			// A kernel's last barrier shows itself least: rather one with more.
			if i+1 < len(list) && m.Kind == mutants.Barrier && list[i+1].Kind == m.Kind {
				more, err := list[i+1].Kernels(kernels.Tandem)
				require.NoError(t, err)
				if some := slices.DeleteFunc(slices.Clone(reached), func(s specimen) bool { return !slices.Contains(more, s.kernel) }); len(some) > 0 {
					reached = some
				}
			}
			reached = []specimen{slices.MinFunc(reached, func(a, b specimen) int {
				return len(mutants.Alone(kernels.Tandem, a.kernel)) - len(mutants.Alone(kernels.Tandem, b.kernel))
			})}
		default:
			reached = reached[i%len(reached):][:1]
		}
		out = append(out, reached...)
	}
	return out
}

// late is some delay.
const late = time.Microsecond

// try runs one trial: "" if all is right.
func (l *lab) try(t testing.TB, b api.Backend, d gpu.Driver, trial *mutants.Trial, seed uint64) string {
	ctx := t.Context()
	ranks := trial.Call.Ranks
	team, err := l.team(ctx, b, trial.Params, ranks)
	if err != nil {
		return firstLine(err)
	}
	defer func() { _ = team.Close(context.WithoutCancel(ctx)) }()
	if trial.Reuse {
		return l.overwrite(t, team, d, trial)
	}
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	sim, err := model.Backend.Open(ctx, model.Spec, api.TeamConfig{Ranks: ranks})
	require.NoError(t, err)
	defer sim.Close(ctx)
	engine := team.Engine().(*tandem.Engine)
	rng := rand.New(rand.NewPCG(seed, 7))
	n := trial.Calls
	if n == 0 {
		n = 3
	}
	for k := range n {
		call := trial.Call
		call.Count -= int64(k % 2)
		differs := trial.Fault.Differ && k == n-1
		if trial.Fault != (tandem.Fault{}) {
			f := trial.Fault
			if k == 0 && !f.Differ || f.Differ && !differs {
				// Calls with faults may have kernels of their own, which are
				// the ones that are broken here: a fault of no rank.
				f = tandem.Fault{Rank: ranks, Step: tandem.StepEntry, Delay: late}
			}
			engine.Inject(&f)
		}
		s := sequenceOf(rng, call)
		want := s.expect(ctx, t, sim)
		_, err := api.Run(ctx, team, call, s.mem[0])
		switch {
		case differs && errors.Is(err, api.ErrMismatch):
			return ""
		case differs && err == nil:
			return "two different calls went on together"
		case err != nil:
			return firstLine(err)
		}
		if what := s.differs(want); what != "" {
			return "call " + fmt.Sprint(k) + ": " + what
		}
	}
	return ""
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if at := strings.Index(text, "race: "); at > 0 {
		text = text[at:]
	}
	return text
}

// sound runs trials on the kernels as they are: what fails there shows nothing.
func (l *lab) sound(t *testing.T, trials []mutants.Trial) {
	var all []mutants.Trial
	seen := map[string]bool{}
	for _, trial := range trials {
		if key := fmt.Sprintf("%+v", trial); !seen[key] {
			seen[key] = true
			all = append(all, trial)
		}
	}
	if how, _ := l.caught(t, nil, all); how != "" {
		t.Errorf("the kernels as they are fail a trial: %s", how)
	}
}

// excuse is why a lab need not catch a specimen; "" if it must.
func (l *lab) excuse(t testing.TB, s *specimen) string {
	switch {
	case l.virtual:
		return ""
	case s.Kind == mutants.Order:
		return "this GPU keeps the order"
	case !l.apart && s.Kind == mutants.Barrier:
		// Which barriers only matter behind a call the virtual GPU knows: it
		// catches what a GPU may or may not show.
		v := virtualLab()
		v.apart = false
		v.params = "gpus=1"
		if how, _ := v.caught(t, s, s.trials); how == "" {
			return "ranks of one GPU are one launch: none ends before the others have read"
		}
	}
	return ""
}

// compile loads all modules side by side, so that a driver that keeps what it
// compiled has it when the trials come.
func (l *lab) compile(t *testing.T, list []specimen) {
	start := time.Now()
	d, done := l.open(func(text []byte) []byte { return text })
	c, err := d.Devices()[0].Open()
	require.NoError(t, err)
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range list {
		all.Go(func() error {
			m, err := c.LoadModule("mutant", mutants.Alone(list[i].Apply(kernels.Tandem, list[i].kernel), list[i].kernel))
			if err != nil {
				return err
			}
			return m.Unload()
		})
	}
	require.NoError(t, errors.Join(all.Wait(), c.Close(), done()))
	t.Logf("%d modules were compiled in %v", len(list), time.Since(start).Round(time.Second/10))
}

// table runs the list, prints who caught what and counts.
func (l *lab) table(t *testing.T, list []mutants.Mutant) (all, caught int) {
	var rows []string
	var showed []mutants.Trial
	checked := 0
	specimens := l.specimens(t, list)
	if l.compiles {
		l.compile(t, specimens)
	}
	for i := range specimens {
		s, start := &specimens[i], time.Now()
		check := "-"
		if p := ptxcheck.Check(s.Apply(kernels.Tandem, s.kernel)); len(p) > 0 {
			check, checked = "caught", checked+1
		}
		how, by := l.caught(t, s, s.trials)
		if how != "" {
			showed = append(showed, *by)
		} else if how = l.excuse(t, s); how != "" {
			how = "- (" + how + ")"
		} else {
			t.Errorf("%s mutant %q was not caught by %s", s.Kind, s, l.name)
			how = "NOT CAUGHT"
		}
		rows = append(rows, fmt.Sprintf("%-14s  %-46s  %-6s  %4.1f s  %.150s", s.Kind, s, check, time.Since(start).Seconds(), how))
	}
	t.Logf("who caught what: %d mutants in %d places, %d by the check of the PTX, %d by %s\n%-14s  %-46s  %-6s  time    %s\n%s",
		len(list), len(specimens), checked, len(showed), l.name, "kind", "mutant", "check", l.name, strings.Join(rows, "\n"))
	l.sound(t, showed)
	return len(specimens), len(showed)
}
