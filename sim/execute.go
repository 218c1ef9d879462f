package sim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// execute runs a call that every rank has started.
func (t *Team) execute(r *round) {
	if runner, ok := t.session.(Runner); ok {
		t.let(runner, r, "")
		return
	}
	if err := t.match(r.calls); err != nil {
		r.fail(err)
		return
	}
	if err := checkSharing(r.mem); err != nil {
		r.fail(err)
		return
	}
	plan, err := t.session.Plan(r.calls[0], func(lane, rank int) (src, dst uint64) {
		return r.mem[rank][lane].Src.Addr, r.mem[rank][lane].Dst.Addr
	})
	if err != nil {
		r.fail(err)
		return
	}
	switch {
	case plan.Fault != nil:
		t.failed(r, plan, nil, plan.Fault)
		return
	case plan.Unknown != "":
		r.fail(t.refused(&r.calls[0], plan.Unknown))
		return
	}
	t.run(r, plan)
}

// let has the session execute a call on the ranks that have started it.
func (t *Team) let(runner Runner, r *round, why string) {
	if err := checkSharing(r.mem); err != nil {
		r.fail(err)
		return
	}
	calls := make([]*api.Call, len(r.calls))
	for rank := range calls {
		if r.started[rank] {
			calls[rank] = &r.calls[rank]
		}
	}
	r.outcomes, r.errs = runner.Run(t.options, calls, r.mem, why)
}

func (t *Team) run(r *round, plan *api.Plan) {
	program, err := t.session.Program(plan)
	if err != nil {
		t.failed(r, plan, nil, err)
		return
	}
	result, err := t.machine.Run(program, r.mem, t.options)
	if err != nil {
		t.failed(r, plan, result, t.explain(&r.calls[0], err))
		return
	}
	if j, ok := t.session.(Judge); ok {
		copy(r.errs, j.Judge(plan, result))
	}
	for rank := range r.outcomes {
		r.outcomes[rank] = api.Outcome{Written: result.Written[rank]}
	}
}

// failed ends a call that did not run to its end.
func (t *Team) failed(r *round, plan *api.Plan, result *machine.Result, err error) {
	if f, ok := t.session.(Failer); ok {
		copy(r.errs, f.Failed(plan, result, err))
		return
	}
	r.fail(err)
}

// match says whether the ranks have started one call.
func (t *Team) match(calls []api.Call) error {
	if m, ok := t.session.(Matcher); ok {
		return m.Match(calls)
	}
	return mismatch(calls)
}

// explain turns what the machine found into what a caller may get.
func (t *Team) explain(call *api.Call, err error) error {
	var race *machine.Race
	var unknown *machine.Unknown
	if errors.As(err, &race) || errors.As(err, &unknown) {
		return t.refused(call, err.Error())
	}
	return err
}

func (t *Team) refused(call *api.Call, reason string) error {
	return &api.Refused{Spec: t.spec.String(), What: call.String(), Reason: reason}
}

// mismatch compares the calls of all ranks with rank 0's.
func mismatch(calls []api.Call) error {
	for r := 1; r < len(calls); r++ {
		if sameCall(&calls[0], &calls[r]) {
			continue
		}
		first, other := calls[0].String(), calls[r].String()
		return &api.Mismatch{Rank: 0, Other: r, Call: first, OtherCall: other, CallHash: hash(first), OtherHash: hash(other)}
	}
	return nil
}

func sameCall(a, b *api.Call) bool {
	return a.Collective == b.Collective && a.DType == b.DType && a.Op == b.Op && a.Count == b.Count &&
		a.Root == b.Root && a.InPlace == b.InPlace && a.Scope == b.Scope && a.Mode == b.Mode &&
		slices.Equal(a.Many, b.Many) && sameOffsets(a.SrcOffset, b.SrcOffset, a.Ranks) && sameOffsets(a.DstOffset, b.DstOffset, a.Ranks)
}

func sameOffsets(a, b api.Offsets, ranks int) bool {
	if len(a) < 2 && len(b) < 2 {
		return a.At(0) == b.At(0)
	}
	for r := range ranks {
		if a.At(r) != b.At(r) {
			return false
		}
	}
	return true
}

func hash(text string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, text)
	return h.Sum64()
}
