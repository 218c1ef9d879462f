package tandem

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// Name is the implementation's name in a Spec.
const Name = "tandem"

// Defaults and bounds of a team.
const (
	defaultStage = 4 << 20
	minStage     = 16 * MaxRanks * generalBlocks
	maxScale     = 1000
	minBox       = boxGrain
	maxBox       = 1 << 22
)

const (
	modeNode = "node"
	modeF32  = "f32"
)

// config is a Spec, read.
type config struct {
	spec      api.Spec
	mode      string
	avg       num.AvgRule
	nan       num.MinMaxRule
	path      string // "auto", or the one that is forced
	blocks    int    // of every call; 0 leaves it to the plan
	gpus      int    // 0: as many as there are, at most one a rank
	cyclic    bool
	staged    bool
	stage     int64
	box       int64 // bytes of a sender in a peer's box; 0 leaves it to the plan
	deadlines int
	named     string      // whose thresholds; "" leaves it to the GPU
	table     *thresholds // of the team's GPUs; nil where there is no team
}

// Params are the parameters of a Spec, under the names that sim:tandem has.
func Params() []api.Param {
	return []api.Param{
		{Name: "mode", Default: modeNode, Values: "node|f32", Help: "node rounds at every node of the tree in the element type; f32 accumulates in f32 and rounds once (not f64, not integers). The mode of a call goes first"},
		{Name: "avg", Default: "divide", Values: "divide|premul", Help: "divide: the sum, then one correctly rounded division; premul: every input times 1/n in its type first. Integers always divide"},
		{Name: "nan", Default: "drop", Values: "drop|propagate", Help: "min and max: drop lets the other operand win over a NaN; propagate lets the NaN win"},
		{Name: "path", Default: "auto", Values: "auto|push|direct|two_shot|staged", Help: "forces a path where it can take the call; never changes bits"},
		{Name: "ctas", Default: "auto", Values: fmt.Sprintf("auto|1..%d", maxBlocks), Help: "thread blocks of a rank in every call; auto: by size, at most what fits. Never changes bits"},
		{Name: "gpus", Default: "auto", Values: fmt.Sprintf("auto|1..%d", MaxRanks), Help: "GPUs that the ranks share; ranks of one GPU are block groups of one launch"},
		{Name: "placement", Default: "block", Values: "block|cyclic", Help: "which ranks share a GPU: neighbours, or every gpus-th. Never changes bits"},
		{Name: "buffers", Default: "registered", Values: "registered|staged", Help: "registered: peers read the ranks' buffers; staged: they read copies in team memory, chunk by chunk"},
		{Name: "stage", Default: strconv.Itoa(defaultStage), Values: fmt.Sprintf("%d..2^30 bytes", minStage), Help: "team memory of a rank for staged sources; larger calls go in chunks"},
		{Name: "box", Default: "auto", Values: fmt.Sprintf("auto|%d..%d bytes", minBox, maxBox), Help: "largest message that is pushed, as a rank gives it to one peer: room for it is kept for every sender. Never changes bits"},
		{Name: "table", Default: "auto", Values: "auto|" + strings.Join(Tables(), "|"), Help: "whose measured thresholds hold: the GPUs' here, or those of the GPU named. Never changes bits"},
		{Name: "deadline_scale", Default: "1", Values: fmt.Sprintf("1..%d", maxScale), Help: "factor on both deadlines, for sanitizers and debuggers"},
	}
}

// look finds the row of thresholds of a team whose GPUs have a name.
func (c *config) look(gpu string, ranks int) {
	if c.named != "" {
		gpu = c.named
	}
	row := thresholdsOf(gpu, ranks)
	c.table = &row
}

// read reads a Spec.
func read(spec api.Spec) (*config, error) {
	c := &config{spec: spec, mode: modeNode, path: "auto", stage: defaultStage, deadlines: 1}
	if spec.Version != "" {
		return nil, &api.InvalidError{Field: "spec", Value: spec.String(), Reason: Name + " has no versions", Hint: "leave out @" + spec.Version}
	}
	params := Params()
	for key, value := range spec.Params {
		i := slices.IndexFunc(params, func(p api.Param) bool { return p.Name == key })
		if i < 0 {
			var names []string
			for _, p := range params {
				names = append(names, p.Name)
			}
			return nil, &api.InvalidError{Field: "parameter", Value: key, Reason: Name + " has no such parameter", Hint: fmt.Sprintf("known are %v", names)}
		}
		if !c.set(key, value) {
			return nil, &api.InvalidError{Field: key, Value: value, Reason: "not a value of this parameter", Hint: params[i].Values}
		}
	}
	return c, nil
}

// number reads a number within bounds.
func number(text string, lo, hi int64) (int64, bool) {
	v, err := strconv.ParseInt(text, 10, 64)
	return v, err == nil && v >= lo && v <= hi
}

func (c *config) set(key, value string) bool {
	choice := func(values ...string) int { return slices.Index(values, value) }
	counted := func(to *int, hi int64) bool {
		if value == "auto" {
			return true
		}
		v, ok := number(value, 1, hi)
		*to = int(v)
		return ok
	}
	i := -1
	switch key {
	case "mode":
		i = choice(modeNode, modeF32)
		c.mode = value
	case "avg":
		if i = choice("divide", "premul"); i == 1 {
			c.avg = num.AvgPremul
		}
	case "nan":
		if i = choice("drop", "propagate"); i == 1 {
			c.nan = num.PropagateNaN
		}
	case "path":
		i = choice("auto", "push", "direct", "two_shot", "staged")
		c.path = value
	case "ctas":
		return counted(&c.blocks, maxBlocks)
	case "gpus":
		return counted(&c.gpus, MaxRanks)
	case "placement":
		i = choice("block", "cyclic")
		c.cyclic = i == 1
	case "buffers":
		i = choice("registered", "staged")
		c.staged = i == 1
	case "stage":
		v, ok := number(value, minStage, 1<<30)
		c.stage = v &^ 15
		return ok
	case "box":
		if value == "auto" {
			return true
		}
		v, ok := number(value, minBox, maxBox)
		c.box = v &^ (boxGrain - 1)
		return ok
	case "table":
		if value == "auto" {
			return true
		}
		i = slices.Index(Tables(), value)
		c.named = value
	case "deadline_scale":
		v, ok := number(value, 1, maxScale)
		c.deadlines = int(v)
		return ok
	}
	return i >= 0
}

func (c *config) refuse(what, reason, hint string) error {
	return &api.Refused{Spec: c.spec.String(), What: what, Reason: reason, Hint: hint}
}

func (c *config) admitRanks(ranks int) error {
	if ranks < 1 || ranks > MaxRanks {
		return c.refuse(fmt.Sprintf("%d ranks", ranks), "a team is one NVLink domain", fmt.Sprintf("1 to %d ranks", MaxRanks))
	}
	return nil
}

// admit says whether the implementation takes a call that is valid.
func (c *config) admit(call *api.Call) error {
	if !slices.Contains(api.Collectives(), call.Collective) {
		return c.refuse(call.Collective.Name(), "there is no such operation", "")
	}
	if call.Scope != api.OnStream {
		return c.refuse("scope "+call.Scope.String(), "there are no device-side calls", "scope on_stream")
	}
	if call.Mode != "" && call.Mode != modeNode && call.Mode != modeF32 {
		return &api.InvalidError{Field: "mode", Value: call.Mode, Reason: "unknown", Hint: "known are [node f32]"}
	}
	if !call.Collective.Reduces() {
		if call.Mode != "" {
			return &api.InvalidError{Field: "mode", Value: call.Mode, Reason: call.Collective.Name() + " only copies, so it has no mode"}
		}
		return nil
	}
	for i := range call.Lanes() {
		if d := call.Lane(i).DType; c.modeOf(call) == modeF32 && (!d.Float() || d == api.F64) {
			return c.refuse("mode f32 of "+d.String(), "accumulating in f32 would lose bits of the inputs", "mode node")
		}
	}
	return nil
}

func (c *config) modeOf(call *api.Call) string {
	if call.Mode != "" {
		return call.Mode
	}
	return c.mode
}

// scheme says what the ranks' elements become.
func (c *config) scheme(call *api.Call) num.Scheme {
	s := num.Scheme{Op: call.Op, Order: num.Balanced, MinMax: c.nan, Avg: c.avg}
	if c.modeOf(call) == modeF32 {
		s.Acc = num.AccF32
	}
	return s
}
