package machine

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
)

// slow is the reference for races: one byte at a time, whole histories, a full
// vector of event numbers for every CTA. It knows scratch, temps set once to 1,
// fences and one barrier of all.
type slow struct {
	p       script
	agents  []*slowAgent
	history map[[2]int64][]slowAccess // by rank and byte
	words   map[Ref]*slowWord
	waiting int // at the barrier
	races   bool
}

type slowAgent struct {
	rank, cta, pc         int
	seen, loaded, fenced  []int // event numbers, by agent
	events                int
	atBarrier, mayGo      bool
	fencedScope           Scope
	fencedSet, loadedSome bool
}

type slowWord struct {
	set   bool
	from  int
	seen  []int
	scope Scope
}

type slowAccess struct {
	agent, event int
	store        bool
}

func newSlow(p script) *slow {
	s := &slow{p: p, history: map[[2]int64][]slowAccess{}, words: map[Ref]*slowWord{}}
	n := len(p.steps) * p.CTAs()
	for r := range p.steps {
		for c := range p.CTAs() {
			s.agents = append(s.agents, &slowAgent{rank: r, cta: c, seen: make([]int, n), loaded: make([]int, n), fenced: make([]int, n)})
		}
	}
	return s
}

// run returns whether the program hangs.
func (s *slow) run() (hangs bool) {
	for {
		moved, done := false, true
		for id := range s.agents {
			for s.step(id) {
				moved = true
			}
			a := s.agents[id]
			done = done && a.pc == len(s.p.steps[a.rank][a.cta])
		}
		if done {
			return false
		}
		if !moved {
			return true
		}
	}
}

func raise(to, from []int) {
	for i := range to {
		to[i] = max(to[i], from[i])
	}
}

func (s *slow) step(id int) bool {
	a := s.agents[id]
	if a.pc == len(s.p.steps[a.rank][a.cta]) {
		return false
	}
	st := &s.p.steps[a.rank][a.cta][a.pc]
	switch st.Kind {
	case Copy:
		a.events++
		s.access(id, st.Srcs[0], st.Bytes, false)
		s.access(id, st.Dst, st.Bytes, true)
	case Store:
		a.events++
		a.seen[id] = a.events
		w := &slowWord{set: true, from: id, scope: st.Scope}
		if st.Order.releases() {
			w.seen = append([]int(nil), a.seen...)
		} else if a.fencedSet {
			w.seen, w.scope = append([]int(nil), a.fenced...), max(st.Scope, a.fencedScope)
		}
		s.words[st.Word] = w
	case Wait:
		w := s.words[st.Word]
		if w == nil {
			return false
		}
		reach := max(w.scope, st.Scope)
		if w.seen != nil && (reach == System || reach == GPU && s.agents[w.from].rank == a.rank || w.from == id) {
			raise(a.loaded, w.seen)
			if st.Order.acquires() {
				raise(a.seen, w.seen)
			}
		}
	case Fence:
		if st.Order.acquires() {
			raise(a.seen, a.loaded)
		}
		if st.Order.releases() {
			a.events++
			a.seen[id] = a.events
			copy(a.fenced, a.seen)
			a.fencedSet, a.fencedScope = true, st.Scope
		}
	case Barrier:
		return s.barrier(id)
	}
	a.pc++
	return true
}

func (s *slow) barrier(id int) bool {
	a := s.agents[id]
	if a.mayGo {
		a.mayGo, a.atBarrier = false, false
		a.pc++
		return true
	}
	if a.atBarrier {
		return false
	}
	a.atBarrier = true
	a.events++
	a.seen[id] = a.events
	for _, b := range s.agents {
		if !b.atBarrier || b.mayGo {
			return false
		}
	}
	all := make([]int, len(s.agents))
	for _, b := range s.agents {
		raise(all, b.seen)
	}
	for _, b := range s.agents {
		copy(b.seen, all)
		b.mayGo = true
	}
	return true
}

func (s *slow) access(id int, r Ref, n int64, store bool) {
	if r.Space != Scratch {
		return
	}
	a := s.agents[id]
	for i := range n {
		at := [2]int64{int64(r.Rank), r.Off + i}
		for _, old := range s.history[at] {
			if old.agent != id && (old.store || store) && old.event > a.seen[old.agent] {
				s.races = true
			}
		}
		s.history[at] = append(s.history[at], slowAccess{id, a.events, store})
	}
}

// drawScript makes a program of loads, stores, signals, waits, fences and whole
// barriers. Every word is stored at most once.
func drawScript(t *rapid.T) script {
	const bytes = 12
	ranks, ctas := rapid.IntRange(2, 4).Draw(t, "ranks"), rapid.IntRange(1, 2).Draw(t, "ctas")
	p := script{needs: Needs{Scratch: bytes, Temps: 8, Barriers: 1}}
	stored := map[Ref]bool{}
	for r := range ranks {
		var all [][]Step
		for c := range ctas {
			var steps []Step
			for range rapid.IntRange(0, 8).Draw(t, "steps") {
				if s, ok := drawStep(t, r, c, ranks, bytes, stored); ok {
					steps = append(steps, s)
				}
			}
			all = append(all, steps)
		}
		p.steps = append(p.steps, all)
	}
	for range rapid.IntRange(0, 2).Draw(t, "barriers") { // somewhere, in every CTA
		for r := range ranks {
			for c := range ctas {
				s := p.steps[r][c]
				at := rapid.IntRange(0, len(s)).Draw(t, "at")
				p.steps[r][c] = append(s[:at:at], append([]Step{barrierOf(ranks * ctas)}, s[at:]...)...)
			}
		}
	}
	return p
}

func drawStep(t *rapid.T, rank, cta, ranks int, bytes int64, stored map[Ref]bool) (Step, bool) {
	word := At(rapid.IntRange(0, ranks-1).Draw(t, "of"), Temp, rapid.Int64Range(0, 3).Draw(t, "word"))
	order := rapid.SampledFrom([]Order{Relaxed, Release, Acquire, AcqRel, AcqRel}).Draw(t, "order")
	scope := rapid.SampledFrom([]Scope{System, System, System, GPU}).Draw(t, "scope")
	lo := rapid.Int64Range(0, bytes-1).Draw(t, "lo")
	n := rapid.Int64Range(1, min(4, bytes-lo)).Draw(t, "n")
	there := At(int(word.Rank), Scratch, lo)
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return cp(there, User(rank, Src, 0, 0), n), true
	case 1:
		return cp(User(rank, Dst, 0, int64(4*cta)), there, n), true
	case 2:
		if stored[word] {
			return Step{}, false
		}
		stored[word] = true
		return Step{Kind: Store, Word: word, Value: 1, Order: order, Scope: scope, Peer: Nobody}, true
	case 3:
		return Step{Kind: Fence, Order: order, Scope: scope, Peer: Nobody}, true
	default:
		if !stored[word] && rapid.IntRange(0, 20).Draw(t, "vain") > 0 {
			return Step{}, false // few waits are for a word that may never come
		}
		return Step{Kind: Wait, Word: word, Value: 1, Order: order, Scope: scope, Peer: Nobody}, true
	}
}

// check runs a property a number of hundred times, once a hundred under -short.
func check(t *testing.T, hundreds int, f func(*rapid.T)) {
	if testing.Short() {
		hundreds = 1
	}
	for range hundreds {
		rapid.Check(t, f)
	}
}

// The machine finds a race exactly where the reference does, under any schedule,
// and hangs exactly where it hangs, if no race ends the run before.
func TestRacesAgainstTheReference(t *testing.T) {
	races, hangs, fine := 0, 0, 0
	check(t, 40, func(t *rapid.T) {
		p := drawScript(t)
		ref := newSlow(p)
		hung := ref.run()
		for seed := range uint64(4) {
			_, err := newTest(len(p.steps)).Run(p, memories(len(p.steps), 4), Options{Seeded: seed > 0, Seed: seed})
			var race *Race
			switch {
			case errors.As(err, &race):
				require.True(t, ref.races, "%v", err)
				races++
			case errors.Is(err, api.ErrFault):
				require.True(t, hung, "%v", err)
				require.False(t, ref.races)
				hangs++
			default:
				require.NoError(t, err)
				require.False(t, ref.races)
				require.False(t, hung)
				fine++
			}
		}
	})
	t.Logf("%d races, %d hangs, %d fine", races, hangs, fine)
	if !testing.Short() {
		require.Positive(t, races)
		require.Positive(t, hangs)
		require.Positive(t, fine)
	}
}
