package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// recorder is a TB that keeps what it is told.
type recorder struct{ errors []string }

func (*recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestTheDefinitionPassesItsOwnTest(t *testing.T) {
	opt := TestOptions{}
	if testing.Short() {
		opt = TestOptions{Ranks: []int{1, 3}, Counts: []int64{0, 7}}
	}
	Test(t, definition{}, opt)
}

// TestSchemesPass: any order and accumulator is right by the definition.
func TestSchemesPass(t *testing.T) {
	opt := TestOptions{Counts: []int64{0, 65}, DTypes: []api.DType{api.F16, api.E5M2, api.F64, api.U8}}
	if testing.Short() {
		opt.Ranks = []int{3}
	}
	for _, f := range []*fake{
		{impl: api.Implementation{Name: "plain"}},
		{order: ownFirst, scheme: num.Scheme{Acc: num.AccF64}, impl: api.Implementation{Name: "plain"}},
		{order: reversed, scheme: num.Scheme{Order: num.Balanced}, blind: true, impl: api.Implementation{Name: "plain", Version: "1"}},
	} {
		Test(t, f, opt)
	}
}

func TestTestCatches(t *testing.T) {
	named := api.Implementation{Name: "plain"}
	for name, c := range map[string]struct {
		f    *fake
		opt  TestOptions
		want string
	}{
		"coverage": {&fake{impl: named, skip: func(c *api.Call, _, _ int, i int64) bool { return c.DType == api.BF16 && i == 6 }}, TestOptions{}, "odd_tail"},
		"values":   {&fake{impl: named, value: func(_ *execution, _, _ int, i int64, _ []uint64, v uint64) uint64 { return v &^ 1 }}, TestOptions{MaxErrors: 2}, "no more than 2 broken calls"},
		"guards": {&fake{impl: named, after: func(x *execution) {
			if d := x.mem[0][0].Dst; d.Guard > 0 {
				d.Bytes[len(d.Bytes)-1]++
			}
		}}, TestOptions{}, "guard: left: bytes within 64"},
		"NaN payloads in copies": {&fake{impl: named, value: func(x *execution, _, _ int, _ int64, _ []uint64, v uint64) uint64 {
			if !x.call.Collective.Reduces() && x.call.DType == api.F16 && num.IsNaN(api.F16, v) {
				return 0x7fff
			}
			return v
		}}, TestOptions{Collectives: []api.Collective{api.Broadcast}}, "nan_rule"},
		"faults":     {&fake{impl: named, fault: &api.Fault{Kind: api.FaultHang}}, TestOptions{}, "fault: left: fault: hang"},
		"refusals":   {&fake{impl: named, refuse: &api.Refused{Reason: "no"}}, TestOptions{}, "every call was refused, so nothing was tested"},
		"absence":    {&fake{impl: api.Implementation{Unavailable: "no GPU"}}, TestOptions{}, "no implementation can be tested here"},
		"bad errors": {&fake{impl: named, refuse: fmt.Errorf("broken")}, TestOptions{}, "broken"},
	} {
		var r recorder
		Test(&r, c.f, c.opt)
		require.NotEmpty(t, r.errors, name)
		require.Contains(t, strings.Join(r.errors, "\n"), c.want, name)
		require.LessOrEqual(t, len(r.errors), 11, name)
	}
}

// interleave is a collective of nobody's library: rank r gets the elements of
// the ranks in turn, from its own on.
type interleave struct{}

func (interleave) Name() string              { return "interleave" }
func (interleave) Reduces() bool             { return false }
func (interleave) Rooted() bool              { return false }
func (interleave) Symmetric() bool           { return false }
func (interleave) Blocks(int) (int64, int64) { return 1, 1 }
func (interleave) Inputs(dst []api.Input, g api.Geometry, rank int, i int64) []api.Input {
	return append(dst, api.Input{Rank: (rank + int(i)) % g.Ranks, Index: i})
}
func (interleave) InPlace(api.Geometry, int, api.InPlace) (int64, bool) { return 0, false }

// TestAnyCollective: a new definition needs nothing here.
func TestAnyCollective(t *testing.T) {
	f := &fake{impl: api.Implementation{Name: "plain", Collectives: []api.Collective{interleave{}}, DTypes: []api.DType{api.F32}}}
	Test(t, f, TestOptions{})
	f.value = func(x *execution, rank, lane int, i int64, _ []uint64, v uint64) uint64 {
		return num.Load(api.F32, x.in.data[rank][lane][4*i:])
	}
	rep := run(t, &Runner{}, f.side(), Definition(), call(interleave{}, api.F32, api.NoOp, 3, 30))
	require.Equal(t, map[api.Cause]int64{api.CauseForeign: 60}, classes(rep))
}
