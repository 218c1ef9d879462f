package tandem

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// Name is the family's name in a Spec.
const Name = "tandem"

// Limits of a team.
const (
	maxRanks    = 72
	maxBlocks   = 64                    // of a grid
	minDeadline = 10 * time.Millisecond // what a team may ask for
	maxScale    = 1000
)

// The reduction modes.
const (
	modeNode = "node"
	modeF32  = "f32"
)

var modes = []string{modeNode, modeF32}

// The paths.
const (
	pathAuto    = "auto"
	pathLocal   = "local"    // one rank: a copy
	pathEmpty   = "empty"    // nothing to move: headers only
	pathPush    = "push"     // lines into the peers' boxes
	pathDirect  = "direct"   // reads of the peers' buffers
	pathTwoShot = "two_shot" // each rank does its share, then everybody gathers
)

// config is a Spec, read.
type config struct {
	spec       api.Spec
	mode       string
	avg        num.AvgRule
	nan        num.MinMaxRule
	path       string // pathAuto, or the one that is forced
	ctas       int    // of every call; 0 leaves it to the plan
	gpus       int    // 0: one a rank
	cyclic     bool   // rank r lives on GPU r mod gpus
	registered bool   // buffers are registered: peers read them directly
	stage      int64  // bytes of the stage of a rank
	deadlines  int    // factor on both deadlines
}

type setting struct {
	api.Param
	set func(*config, string) bool
}

func oneOf(set func(*config, string), values ...string) func(*config, string) bool {
	return func(c *config, text string) bool {
		if !slices.Contains(values, text) {
			return false
		}
		set(c, text)
		return true
	}
}

func number(lo, hi int64, set func(*config, int64)) func(*config, string) bool {
	return func(c *config, text string) bool {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < lo || v > hi {
			return false
		}
		set(c, v)
		return true
	}
}

// numberOr is number with a word for the value that leaves the choice to the
// plan.
func numberOr(word string, lo, hi int64, set func(*config, int64)) func(*config, string) bool {
	n := number(lo, hi, set)
	return func(c *config, text string) bool { return text == word || n(c, text) }
}

func settings() []setting {
	return []setting{
		{api.Param{Name: "mode", Default: modeNode, Values: "node|f32", Help: "node rounds at every node of the tree in the element type; f32 accumulates in f32 and rounds once (not f64, not integers). The mode of a call goes first"},
			oneOf(func(c *config, v string) { c.mode = v }, modes...)},
		{api.Param{Name: "avg", Default: "divide", Values: "divide|premul", Help: "divide: the sum, then one correctly rounded division by the number of ranks; premul: every input times 1/n in its type first, NCCL's rule. Integers always divide"},
			oneOf(func(c *config, v string) {
				c.avg = map[string]num.AvgRule{"divide": num.AvgDivide, "premul": num.AvgPremul}[v]
			}, "divide", "premul")},
		{api.Param{Name: "nan", Default: "drop", Values: "drop|propagate", Help: "min and max: drop lets the other operand win over a NaN; propagate lets the NaN win"},
			oneOf(func(c *config, v string) {
				c.nan = map[string]num.MinMaxRule{"drop": num.DropNaN, "propagate": num.PropagateNaN}[v]
			}, "drop", "propagate")},
		{api.Param{Name: "path", Default: pathAuto, Values: "auto|push|direct|two_shot", Help: "forces a path; never changes bits. Push holds as far as the boxes do, two_shot for all_reduce and broadcast; direct is taken beyond"},
			oneOf(func(c *config, v string) { c.path = v }, pathAuto, pathPush, pathDirect, pathTwoShot)},
		{api.Param{Name: "ctas", Default: "auto", Values: fmt.Sprintf("auto|1..%d", maxBlocks), Help: "thread blocks of every call; auto: by size, at most what fits. Never changes bits"},
			numberOr("auto", 1, maxBlocks, func(c *config, v int64) { c.ctas = int(v) })},
		{api.Param{Name: "gpus", Default: "ranks", Values: fmt.Sprintf("ranks|1..%d", maxRanks), Help: "GPUs that the ranks share; ranks of one GPU are block groups of one launch"},
			numberOr("ranks", 1, maxRanks, func(c *config, v int64) { c.gpus = int(v) })},
		{api.Param{Name: "placement", Default: "block", Values: "block|cyclic", Help: "which ranks share a GPU: neighbours, or every gpus-th. Never changes bits"},
			oneOf(func(c *config, v string) { c.cyclic = v == "cyclic" }, "block", "cyclic")},
		{api.Param{Name: "buffers", Default: "registered", Values: "registered|staged", Help: "registered: peers read the callers' buffers; staged: they read copies in team memory, chunk by chunk"},
			oneOf(func(c *config, v string) { c.registered = v == "registered" }, "registered", "staged")},
		{api.Param{Name: "stage", Default: strconv.Itoa(defaultStage), Values: fmt.Sprintf("%d..2^40 bytes", minStage), Help: "team memory of a rank for staged sources and for results of in-place calls; larger calls go in chunks"},
			number(minStage, 1<<40, func(c *config, v int64) { c.stage = v })},
		{api.Param{Name: "deadline_scale", Default: "1", Values: fmt.Sprintf("1..%d", maxScale), Help: "factor on both deadlines, for sanitizers and debuggers"},
			number(1, maxScale, func(c *config, v int64) { c.deadlines = int(v) })},
	}
}

// Params lists the parameters of a Spec.
func Params() []api.Param {
	var out []api.Param
	for _, s := range settings() {
		out = append(out, s.Param)
	}
	return out
}

func parseConfig(spec api.Spec) (config, error) {
	c := config{spec: spec}
	if spec.Version != "" {
		return c, &api.InvalidError{Field: "version", Value: spec.Version, Reason: Name + " has no versions", Hint: "write sim:tandem"}
	}
	known := settings()
	names := make([]string, len(known))
	for i, s := range known {
		names[i] = s.Name
		text := spec.Param(s.Name, s.Default)
		if !s.set(&c, text) {
			return c, &api.InvalidError{Field: s.Name, Value: text, Reason: "not a value of this parameter", Hint: s.Values}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Params)) {
		if !slices.Contains(names, name) {
			return c, &api.InvalidError{Field: "parameter", Value: name, Reason: "unknown to " + Name, Hint: fmt.Sprintf("known are %v", names)}
		}
	}
	return c, nil
}

// admitTeam says whether a team of that kind can be made.
func (c *config) admitTeam(team api.TeamConfig) error {
	if team.Ranks < 1 || team.Ranks > maxRanks {
		return &api.Refused{Spec: c.spec.String(), What: fmt.Sprintf("%d ranks", team.Ranks), Reason: "a team is one NVLink domain", Hint: fmt.Sprintf("1 to %d ranks", maxRanks)}
	}
	if c.gpus > team.Ranks {
		return &api.InvalidError{Field: "gpus", Value: fmt.Sprint(c.gpus), Reason: fmt.Sprintf("more than the %d ranks", team.Ranks)}
	}
	for _, d := range []struct {
		name   string
		length time.Duration
	}{{"arrive", team.Arrive}, {"progress", team.Progress}} {
		if d.length != 0 && d.length < minDeadline {
			return &api.InvalidError{Field: d.name, Value: d.length.String(), Reason: "too short for a deadline", Hint: fmt.Sprintf("0 for the default, or at least %v", minDeadline)}
		}
	}
	return nil
}

// placement is the GPU of each rank; nil where each has its own.
func (c *config) placement(ranks int) []int {
	if c.gpus == 0 || c.gpus == ranks {
		return nil
	}
	on := make([]int, ranks)
	for r := range on {
		if on[r] = r * c.gpus / ranks; c.cyclic {
			on[r] = r % c.gpus
		}
	}
	return on
}

// shared is the greatest number of ranks on one GPU.
func (c *config) shared(ranks int) int {
	if c.gpus == 0 {
		return 1
	}
	return (ranks + c.gpus - 1) / c.gpus
}
