package tandem

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// verdict reads what a run left in the ranks' words and says what each rank
// returns.
type verdict struct {
	*Session
	launches stream // one launch a rank, none for a rank that has not come
	mem      []api.Memory
	why      string // what made the others stop waiting, "" if all had come
}

func (v *verdict) launch(rank int) *launch {
	if len(v.launches[rank]) == 0 {
		return nil
	}
	return v.launches[rank][0]
}

func (v *verdict) temp(rank int, off int64) uint64 {
	return v.machine.Word(machine.At(rank, machine.Temp, v.launch(rank).temps+off))
}

func (v *verdict) outcome(rank int) uint64 {
	if v.launch(rank) == nil {
		return outcomeNone
	}
	return v.temp(rank, tOutcome)
}

// errors is one error a rank, or nil if the call went well. In one process the
// ranks know of each other, so a call that failed anywhere has failed everywhere.
func (v *verdict) errors() []error {
	bad := slices.IndexFunc(v.launches, func(l []*launch) bool { return len(l) == 0 || v.outcome(l[0].rank) != outcomeGood })
	if bad < 0 {
		return nil
	}
	errs := make([]error, v.ranks)
	for r := range errs {
		if l := v.launch(r); l == nil {
			errs[r] = &api.Aborted{Rank: r, Cause: r, Chain: []int{r}, Reason: v.absence(r)}
		} else if m := v.mismatch(r); m != nil {
			errs[r] = m
		} else {
			errs[r] = v.aborted(r)
		}
	}
	return errs
}

func (v *verdict) absence(rank int) string {
	text := fmt.Sprintf("rank %d has not started the call", rank)
	if v.why != "" {
		text += " when " + v.why
	}
	return text
}

// mismatch is the error of a rank in a call that some rank found to be another's.
func (v *verdict) mismatch(rank int) error {
	found := slices.ContainsFunc(v.launches, func(l []*launch) bool {
		if len(l) == 0 {
			return false
		}
		c, _ := readState(v.machine.Word(ref(l[0].rank, wState)))
		return c == causeMismatch
	})
	if !found {
		return nil
	}
	mine := v.launch(rank)
	for other := range v.ranks {
		if l := v.launch(other); l != nil && l.hash != mine.hash {
			return &api.Mismatch{Rank: rank, Other: other, Call: mine.call.String(), OtherCall: l.call.String(), CallHash: mine.hash, OtherHash: l.hash}
		}
	}
	return nil
}

// seen is the state word of a peer as the host of rank found it; a rank without
// a host any more is told what there is now.
func (v *verdict) seen(rank, peer int) uint64 {
	if l := v.launch(rank); v.outcome(rank) == outcomeFailed || v.outcome(rank) == outcomeLost {
		return v.temp(rank, tSeen(v.ranks, l.grid, peer))
	}
	return v.machine.Word(ref(peer, wState))
}

// blame follows the chain of who was told to abort by whom, and who waited for
// whom, to the rank that waited for nobody, or to a circle. In a circle the rank
// that did not wait until it was told to abort is the one the others waited for.
func (v *verdict) blame(rank int) (guilty int, chain []int, text string) {
	idle, at := -1, rank
	if c, by := readState(v.machine.Word(ref(rank, wAbort))); c == causeClosed {
		return -1, []int{rank}, stateText(state(c, by))
	} else if c == causeAborted {
		at = by // who told us knows more than we do
	}
	for {
		c, next := readState(v.seen(rank, at))
		word := state(c, next)
		chain = append(chain, at)
		switch {
		case c.waits():
			text = fmt.Sprintf("rank %d %s", at, stateText(word))
		case c == causeClosed:
			return -1, chain, stateText(word)
		case c == causeAborted && next != at:
			idle = at
		case c == causeNone || c == causeAborted:
			return at, chain, text
		default:
			return at, chain, stateText(word)
		}
		if i := slices.Index(chain, next); i >= 0 {
			if slices.Contains(chain[i:], idle) {
				return idle, chain, text
			}
			return next, append(chain, next), text + ", and so in a circle"
		}
		at = next
	}
}

// aborted is the error of a rank in a call that failed.
func (v *verdict) aborted(rank int) error {
	from := rank
	if v.outcome(rank) == outcomeGood { // it had finished: another one knows why
		from = v.firstBad()
	}
	e := &api.Aborted{Rank: rank, Leaked: v.leaked(rank)}
	e.Cause, e.Chain, e.Reason = v.blame(from)
	if e.Chain[0] != rank {
		e.Chain = append([]int{rank}, e.Chain...)
	}
	switch {
	case e.Cause < 0:
	case v.launch(e.Cause) == nil:
		e.Reason = join(e.Reason, v.absence(e.Cause))
	case v.outcome(e.Cause) == outcomeNone:
		e.Reason = join(e.Reason, fmt.Sprintf("rank %d stopped", e.Cause))
	case e.Reason == "":
		e.Reason = fmt.Sprintf("rank %d did not go on", e.Cause)
	}
	if from != rank {
		e.Reason += "; this rank had finished"
	}
	return e
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + ": " + b
}

// firstBad is the lowest rank that has come and whose host saw the call fail, or
// else the lowest one that is not good.
func (v *verdict) firstBad() int {
	for r := range v.ranks {
		if o := v.outcome(r); o == outcomeFailed || o == outcomeLost {
			return r
		}
	}
	for r := range v.ranks {
		if v.outcome(r) != outcomeGood {
			return r
		}
	}
	return 0
}

// leaked names the memory of a rank that a kernel may still touch.
func (v *verdict) leaked(rank int) []string {
	l := v.launch(rank)
	var by []int
	for p := range v.ranks {
		if v.outcome(rank) == outcomeFailed && v.temp(rank, tLeaked(v.ranks, l.grid, p)) != 0 {
			by = append(by, p)
		}
	}
	own := v.outcome(rank) == outcomeLost || v.outcome(rank) == outcomeNone
	if len(by) == 0 && !own {
		return nil
	}
	who := fmt.Sprintf("by ranks %v", by)
	if own {
		who = "by its own kernel"
	}
	names := []string{fmt.Sprintf("team memory of rank %d (%s)", rank, who)}
	reads := own || (l.path == pathDirect || l.path == pathTwoShot) && !l.staged
	shares := own || l.path == pathTwoShot && !l.staged
	for i, lane := range v.mem[rank] {
		if reads {
			names = append(names, fmt.Sprintf("source of lane %d of rank %d at 0x%x", i, rank, lane.Src.Addr))
		}
		if shares {
			names = append(names, fmt.Sprintf("destination of lane %d of rank %d at 0x%x", i, rank, lane.Dst.Addr))
		}
	}
	return names
}
