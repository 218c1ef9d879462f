package nvls

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/hw/inswitch"
	"example.com/tandem/hw/tandem"
)

// Name is the implementation's name in a Spec.
const Name = "tandem-nvls"

const (
	defaultStage = 4 << 20
	maxStage     = 1 << 30
	// minStage holds one row of 16 bytes for each of the most ranks, and one
	// more, in every block's part of both halves.
	minStage = 2 * (inswitch.RestBytes + 16*(inswitch.MaxRanks+1)*inswitch.MaxBlocks)
)

// config is a Spec, read.
type config struct {
	spec   api.Spec
	choice inswitch.Choice
	stage  int // bytes of a rank
	blocks int // of every call; 0 leaves it to the plan
	tandem map[string]string
}

// Params are the parameters of a Spec.
func Params() []api.Param {
	return append(inswitch.Params(),
		api.Param{Name: "ctas", Default: "auto", Values: fmt.Sprintf("auto|1..%d", inswitch.MaxBlocks), Help: "thread blocks of a rank in every call; auto: by size, at most what fits. Never changes bits"},
		api.Param{Name: "stage", Default: strconv.Itoa(defaultStage), Values: fmt.Sprintf("%d..2^30 bytes", minStage), Help: "team memory of a rank; larger calls go in chunks. Never changes bits"},
		api.Param{Name: "avg", Default: "divide", Values: "divide|premul", Help: "tandem's, for calls that are tandem's"},
		api.Param{Name: "table", Default: "auto", Values: "auto|" + strings.Join(tandem.Tables(), "|"), Help: "tandem's, for calls that are tandem's"},
	)
}

func read(spec api.Spec) (*config, error) {
	c := &config{spec: spec, choice: inswitch.Default(), stage: defaultStage, tandem: map[string]string{}}
	if spec.Version != "" {
		return nil, &api.InvalidError{Field: "spec", Value: spec.String(), Reason: Name + " has no versions", Hint: "leave out @" + spec.Version}
	}
	for _, shared := range []string{"gpus", "deadline_scale", "avg", "table"} {
		if v, ok := spec.Params[shared]; ok {
			c.tandem[shared] = v
		}
	}
	return c, inswitch.Read(spec, &c.choice, Params(), c.set)
}

func (c *config) set(name, value string) bool {
	v, err := strconv.Atoi(value)
	switch name {
	case "ctas":
		if value != "auto" {
			c.blocks = v
		}
		return value == "auto" || err == nil && v >= 1 && v <= inswitch.MaxBlocks
	case "stage":
		c.stage = v &^ 31
		return err == nil && v >= minStage && v <= maxStage
	}
	if name == "table" {
		return value == "auto" || slices.Contains(tandem.Tables(), value)
	}
	return slices.Contains([]string{"divide", "premul"}, value)
}

// rest is the spec of the team for calls that the switch has no form for.
func (c *config) rest() api.Spec {
	s := c.spec
	s.Implementation, s.Params = tandem.Name, c.tandem
	return s
}

// inSwitch is what the kernels are told of a call that is theirs; false for one
// that is tandem's.
func inSwitch(call *api.Call) (collective uint32, form inswitch.Form, ok bool) {
	if call.Ranks < 2 || call.Mode != "" && call.Mode != "node" {
		return 0, 0, false
	}
	switch call.Collective {
	case api.AllGather:
		return inswitch.AllGather, 0, true
	case api.AllReduce:
		collective = inswitch.AllReduce
	case api.ReduceScatter:
		collective = inswitch.ReduceScatter
	default:
		return 0, 0, false
	}
	form, ok = inswitch.FormOf(call.DType, call.Op)
	return collective, form, ok
}

// OffSwitch is the number of elements of a call that do not go through the
// switch, on every rank: reduced in the fixed tree, or all of a call that is
// tandem's.
func OffSwitch(call *api.Call) int64 {
	collective, _, ok := inSwitch(call)
	size := int64(call.DType.Size())
	switch {
	case !ok:
		return call.DstElems(0)
	case collective == inswitch.AllReduce:
		return call.Count * size % (16 * int64(call.Ranks)) / size
	case collective == inswitch.ReduceScatter:
		return call.Count * size % 16 / size
	}
	return 0
}
