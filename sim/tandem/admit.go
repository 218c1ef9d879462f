package tandem

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// admit says whether the team takes the call. The error is an
// *api.InvalidError if the call makes no sense, else an *api.Refused.
func (c *config) admit(call *api.Call) error {
	if err := call.Validate(); err != nil {
		return err
	}
	if !slices.ContainsFunc(api.Collectives(), func(k api.Collective) bool { return k == call.Collective }) {
		return c.refuse(call.Collective.Name(), "there is no such operation", fmt.Sprintf("known are %v", collectiveNames()))
	}
	if call.Ranks > maxRanks {
		return c.refuse(fmt.Sprintf("%d ranks", call.Ranks), "a team is one NVLink domain", fmt.Sprintf("1 to %d ranks", maxRanks))
	}
	if c.gpus > call.Ranks {
		return &api.InvalidError{Field: "gpus", Value: fmt.Sprint(c.gpus), Reason: fmt.Sprintf("more than the %d ranks", call.Ranks)}
	}
	if call.Scope != api.OnStream {
		return c.refuse("scope "+call.Scope.String(), "there are no device-side calls", "scope on_stream")
	}
	return c.admitMode(call)
}

func collectiveNames() []string {
	var names []string
	for _, k := range api.Collectives() {
		names = append(names, k.Name())
	}
	return names
}

func (c *config) admitMode(call *api.Call) error {
	if call.Mode != "" && !slices.Contains(modes, call.Mode) {
		return &api.InvalidError{Field: "mode", Value: call.Mode, Reason: "unknown", Hint: fmt.Sprintf("known are %v", modes)}
	}
	if !call.Collective.Reduces() {
		if call.Mode != "" {
			return &api.InvalidError{Field: "mode", Value: call.Mode, Reason: call.Collective.Name() + " only copies, so it has no mode"}
		}
		return nil
	}
	if c.modeOf(call) != modeF32 {
		return nil
	}
	for i := range call.Lanes() {
		if d := call.Lane(i).DType; !d.Float() || d == num.F64 {
			return c.refuse(fmt.Sprintf("mode f32 of %s", d), "accumulating in f32 would lose bits of the inputs", "mode node")
		}
	}
	return nil
}

// modeOf is the mode of a call: its own, or the team's.
func (c *config) modeOf(call *api.Call) string { return cmp.Or(call.Mode, c.mode) }

func (c *config) refuse(what, reason, hint string) error {
	return &api.Refused{Spec: c.spec.String(), What: what, Reason: reason, Hint: hint}
}

// scheme says what the ranks' elements become.
func (c *config) scheme(call *api.Call) num.Scheme {
	s := num.Scheme{Op: call.Op, Order: num.Balanced, MinMax: c.nan, Avg: c.avg}
	if c.modeOf(call) == modeF32 {
		s.Acc = num.AccF32
	}
	return s
}

// checkMemory is what a rank checks of its own buffers before anything of the
// call leaves it: sizes, alignment, overlap, and that no destination of a many
// call meets another buffer.
func checkMemory(call *api.Call, rank int, mem api.Memory) error {
	if err := call.CheckMemory(rank, mem); err != nil {
		return err
	}
	for i, l := range mem {
		for _, img := range []api.Image{l.Src, l.Dst} {
			if img.Addr > math.MaxInt64-uint64(len(img.Bytes)) || img.Addr < uint64(img.Guard) {
				return &api.InvalidError{Field: "memory", Value: fmt.Sprintf("lane %d of rank %d", i, rank), Reason: fmt.Sprintf("no buffer of %d bytes fits at address 0x%x", len(img.Bytes), img.Addr)}
			}
		}
	}
	return checkLanes(rank, mem)
}

// place is one buffer of a many call.
type place struct {
	lo, hi uint64
	lane   int
	dst    bool
}

func (p place) String() string {
	if p.dst {
		return fmt.Sprintf("the destination of lane %d", p.lane)
	}
	return fmt.Sprintf("the source of lane %d", p.lane)
}

// checkLanes finds a destination that overlaps a buffer of another lane.
func checkLanes(rank int, mem api.Memory) error {
	if len(mem) < 2 {
		return nil
	}
	places := make([]place, 0, 2*len(mem))
	for i, l := range mem {
		for _, p := range []place{
			{l.Src.Addr, l.Src.Addr + uint64(l.Src.Len()), i, false},
			{l.Dst.Addr, l.Dst.Addr + uint64(l.Dst.Len()), i, true},
		} {
			if p.lo < p.hi {
				places = append(places, p)
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.lane, b.lane))
	})
	for i, p := range places {
		for _, q := range places[i+1:] {
			if q.lo >= p.hi {
				break
			}
			if p.lane != q.lane && (p.dst || q.dst) {
				return &api.InvalidError{Field: "memory", Value: fmt.Sprintf("rank %d", rank), Reason: fmt.Sprintf("%v overlaps %v", p, q), Hint: "the destinations of a many call must lie apart from each other and from the sources of other lanes"}
			}
		}
	}
	return nil
}
