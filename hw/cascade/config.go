package cascade

import (
	"fmt"
	"slices"
	"strconv"

	"example.com/tandem/api"
	"example.com/tandem/hw/inswitch"
)

// Name is the implementation's name in a Spec.
const Name = "cascade"

// The versions: PR #131's base, PR #131, and with each of the follow-ups.
const (
	Before    = "2dca770"
	After     = "pr131"
	AfterTeam = "pr131-team"
	AfterTail = "pr131-tail"
)

// versions in the order of Version in nvls_layout.h.
var versions = []string{Before, After, AfterTeam, AfterTail}

// Versions lists the versions of a Spec.
func Versions() []string { return slices.Clone(versions) }

const (
	spreadBytes  = 262144 // from here on a call is spread over blocks
	spreadBlocks = 16
	maxThreshold = 1<<31 - 1
)

// config is a Spec, read.
type config struct {
	spec      api.Spec
	choice    inswitch.Choice
	version   uint32
	nvls      bool
	algo      uint32
	threshold int64
	blocks    int // above the size threshold
}

// Params are the parameters of a Spec. Those of the library have its names.
func Params() []api.Param {
	return append(inswitch.Params(),
		api.Param{Name: "nvls", Default: "on", Values: "on|off", Help: "off is NVSHMEM_DISABLE_NVLS=1: one block, and nothing through the switch"},
		api.Param{Name: "reduce_algo", Default: "0", Values: "0|1|2 automatic, 3 two-shot, 4 one-shot, 5 P2P", Help: "all-reduce algorithm; 3 and 4 fall back to P2P where not legal"},
		api.Param{Name: "reduce_nvls_threshold", Default: "2048", Values: "0..2147483647", Help: "one-shot up to this many elements (not bytes)"},
		api.Param{Name: "max_ctas", Default: "unset", Values: fmt.Sprintf("unset|1..%d", inswitch.MaxBlocks), Help: "blocks of an on-stream call from 256 KiB on; unset: 16"},
	)
}

func read(spec api.Spec) (*config, error) {
	c := &config{spec: spec, choice: inswitch.Default(), nvls: true, threshold: 2048, blocks: spreadBlocks}
	i := slices.Index(versions, spec.Version)
	if i < 0 {
		return nil, &api.InvalidError{Field: "version", Value: spec.Version, Reason: "unknown version of " + Name, Hint: fmt.Sprintf("known are %v", versions)}
	}
	c.version = uint32(i)
	return c, inswitch.Read(spec, &c.choice, Params(), c.set)
}

func (c *config) set(name, value string) bool {
	v, err := strconv.ParseInt(value, 10, 64)
	switch name {
	case "nvls":
		c.nvls = value == "on"
		return value == "on" || value == "off"
	case "reduce_algo":
		c.algo = uint32(v)
		return err == nil && v >= 0 && v <= 5
	case "reduce_nvls_threshold":
		c.threshold = v
		return err == nil && v >= 0 && v <= maxThreshold
	case "max_ctas":
		if value == "unset" {
			return true
		}
		c.blocks = int(v)
		return err == nil && v >= 1 && v <= inswitch.MaxBlocks
	}
	return false
}

// admit says whether the implementation takes a call that is valid.
func (c *config) admit(call *api.Call) error {
	refuse := func(reason, hint string) error {
		return &api.Refused{Spec: c.spec.String(), What: call.String(), Reason: reason, Hint: hint}
	}
	switch {
	case call.Collective != api.AllReduce:
		return refuse("only all_reduce is here", "sim:nvshmem has the other collectives")
	case call.DType.Float() && call.DType.Size() == 1:
		return refuse("NVSHMEM has no sums of fp8", "bf16 or f16")
	case call.Op == api.Avg:
		return refuse("NVSHMEM has no avg", "use sum, and divide")
	case call.Mode != "":
		return refuse("NVSHMEM has no reduction modes", "leave the mode out")
	case call.Scope != api.OnStream && call.Scope != api.Block:
		return refuse("the kernel is a thread block's", "scope on_stream or block")
	case !call.SrcOffset.Uniform() || !call.DstOffset.Uniform():
		return refuse("offsets differ between ranks, and NVSHMEM buffers are symmetric", "give one offset for all ranks")
	}
	return nil
}

// ctas is the number of blocks of a rank, which decides how a call is split.
func (c *config) ctas(call *api.Call) int {
	if call.Scope == api.OnStream && c.nvls && call.Ranks > 1 && call.Count*int64(call.DType.Size()) >= spreadBytes {
		return c.blocks
	}
	return 1
}

// args are what the kernel is told of a call.
func (c *config) args(call *api.Call) inswitch.Args {
	join, _ := inswitch.JoinOf(call.DType, call.Op)
	a := inswitch.Args{Count: call.Count, Collective: inswitch.AllReduce, Join: join, Log: inswitch.Log(call.DType), Version: c.version, Algo: c.algo, Threshold: c.threshold, Blocks: c.ctas(call)}
	half := call.DType == api.BF16 || call.DType == api.F16
	if c.nvls && call.Ranks > 1 && call.Op == api.Sum && (half || call.DType == api.F32) {
		a.Flags |= inswitch.FlagSwitch
		a.Form, _ = inswitch.FormOf(call.DType, call.Op)
	}
	if half {
		a.Flags |= inswitch.FlagHalf
	}
	if call.Team == api.World {
		a.Flags |= inswitch.FlagWorld
	}
	if call.DType.Float() && (call.Op == api.Min || call.Op == api.Max) {
		a.Flags |= inswitch.FlagTernary
	}
	if call.InPlace != api.OutOfPlace {
		a.Flags |= inswitch.FlagInPlace
	}
	c.choice.Fabric.Set(&a, call.DType)
	return a
}
