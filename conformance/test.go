package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// TB is what Test needs of a *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// TestOptions say what Test tries. A nil list is the default.
type TestOptions struct {
	// Specs are the implementations to test; default: all that the backend
	// lists and can run here.
	Specs       []api.Spec
	Collectives []api.Collective // default: those the implementation has
	DTypes      []api.DType      // default: those the implementation has
	Ops         []api.Op         // default: all
	Ranks       []int            // default: 1, 2, 3 and 4
	Counts      []int64          // default: 0, 1, 2, 7 and 261
	Offsets     []int64          // of both buffers, in elements; default: 0 and 1
	Scopes      []api.Scope      // default: on_stream
	// MaxErrors is how many broken calls are reported of each implementation;
	// default: 10.
	MaxErrors int
}

// Test holds a backend to the definition of the collectives on a matrix of small
// calls: copies and integers on any bits, floating reductions on inputs whose
// result is the same in every order. It looks at coverage, values, guards,
// sources and, by way of the definition, rank agreement. Calls that an
// implementation refuses are passed over, but it must not refuse all.
func Test(t TB, b api.Backend, opt TestOptions) {
	t.Helper()
	specs := opt.Specs
	if specs == nil {
		for _, m := range b.Implementations() {
			if m.Unavailable == "" {
				specs = append(specs, api.Spec{Backend: b.Name(), Implementation: m.Name, Version: m.Version})
			}
		}
	}
	if len(specs) == 0 {
		t.Errorf("%s: no implementation can be tested here", b.Name())
	}
	for _, spec := range specs {
		testSide(t, Side{b, spec}, opt)
	}
}

func testSide(t TB, side Side, opt TestOptions) {
	t.Helper()
	ctx := context.Background()
	var r Runner
	checked, broken := 0, 0
	limit := opt.MaxErrors
	if limit == 0 {
		limit = 10
	}
	for call := range opt.calls(side.implementation()) {
		r.Input = inputs.Input{Kind: inputs.OrderFree, Seed: 1}
		if !call.Collective.Reduces() || call.Op == api.Avg {
			r.Input.Kind = inputs.Bits
		}
		rep, err := r.Run(ctx, side, Definition(), call)
		switch {
		case errors.Is(err, api.ErrRefused):
			continue
		case err != nil:
			t.Errorf("%s: %s: %v", side, call.String(), err)
			broken++
		case !rep.Holds():
			t.Errorf("%s: %s: %s", side, call.String(), headline(rep))
			broken++
		}
		checked++
		if broken == limit {
			t.Errorf("%s: no more than %d broken calls are reported", side, limit)
			break
		}
	}
	if checked == 0 {
		t.Errorf("%s: every call was refused, so nothing was tested", side)
	}
	if err := r.Close(ctx); err != nil {
		t.Errorf("%s: closing: %v", side, err)
	}
}

// headline is a broken contract on one line.
func headline(rep *Report) string {
	text := fmt.Sprintf("%d outputs differ from the definition", rep.Differing.Elements)
	if f := rep.First; f != nil {
		show := func(p *string) string {
			if p == nil {
				return "nothing"
			}
			return *p
		}
		text += fmt.Sprintf(", first on rank %d in element %d: %s instead of %s", f.Rank, f.Index, show(f.Left), show(f.Right))
	}
	for _, c := range rep.Causes {
		text += fmt.Sprintf("; %s: %s", c.Class, c.Explanation)
	}
	return text
}

// calls yields the matrix.
func (opt *TestOptions) calls(m *api.Implementation) func(yield func(api.Call) bool) {
	collectives, dtypes := opt.Collectives, opt.DTypes
	if m != nil {
		collectives, dtypes = orElse(collectives, m.Collectives), orElse(dtypes, m.DTypes)
	}
	collectives, dtypes = orElse(collectives, api.Collectives()), orElse(dtypes, api.DTypes())
	return func(yield func(api.Call) bool) {
		for _, c := range collectives {
			for _, d := range dtypes {
				for _, op := range opt.ops(c, d) {
					if !opt.shapes(api.Call{Collective: c, DType: d, Op: op}, yield) {
						return
					}
				}
			}
		}
	}
}

// ops are the operations of a collective on a type. Averages of floats depend on
// how they are divided, which no definition says.
func (opt *TestOptions) ops(c api.Collective, d api.DType) []api.Op {
	if !c.Reduces() {
		return []api.Op{api.NoOp}
	}
	return slices.DeleteFunc(slices.Clone(orElse(opt.Ops, api.Ops())), func(o api.Op) bool {
		return !o.ValidFor(d) || o == api.Avg && d.Float()
	})
}

// shapes yields a call at every number of ranks, count, offset and scope, out of
// place and in every in-place form.
func (opt *TestOptions) shapes(base api.Call, yield func(api.Call) bool) bool {
	for _, ranks := range orElse(opt.Ranks, []int{1, 2, 3, 4}) {
		for _, count := range orElse(opt.Counts, []int64{0, 1, 2, 7, 261}) {
			for _, off := range orElse(opt.Offsets, []int64{0, 1}) {
				for _, scope := range orElse(opt.Scopes, []api.Scope{api.OnStream}) {
					for _, form := range []api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart} {
						c := base
						c.Ranks, c.Count, c.Scope, c.InPlace = ranks, count, scope, form
						c.SrcOffset, c.DstOffset = api.Offsets{off}, api.Offsets{off}
						if c.Collective.Rooted() {
							c.Root = ranks - 1
						}
						if api.IsMany(c.Collective) {
							c.Count, c.Many = 0, []api.LaneShape{{Count: count}, {Count: 0}, {Count: 5}}
						}
						if c.Validate() == nil && !yield(c) {
							return false
						}
					}
				}
			}
		}
	}
	return true
}

func orElse[T any](list, other []T) []T {
	if list == nil {
		return other
	}
	return list
}
