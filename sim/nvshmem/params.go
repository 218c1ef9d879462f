package nvshmem

import (
	"fmt"
	"slices"
	"strconv"

	"example.com/tandem/api"
	"example.com/tandem/sim/nvls"
)

// Name is the name of the family in a Spec.
const Name = "nvshmem"

// The versions, as they appear in a Spec.
const (
	version2dca770 = "2dca770"
	versionPR131   = "pr131"
	versionTeam    = "pr131-team"
	versionTail    = "pr131-tail"
	version345     = "3.4.5"
)

var versions = []string{version2dca770, versionPR131, versionTeam, versionTail, version345}

// Params are the parameters of one version of the library, parsed. The names
// are the library's environment variables in lower case without prefix.
type Params struct {
	Version string

	NVLS              bool  // multicast objects exist
	NCCL              bool  // a build with NCCL, and libnccl present
	ReduceAlgo        int64 // 0, 1, 2 automatic; 3 two-shot; 4 one-shot; else P2P
	NVLSThreshold     int64 // elements: one-shot up to here
	ScratchSize       int64 // bytes per team, two halves used in turn
	RecExchRadix      int64 // as set; see Radix
	ReduceScatterAlgo int64 // 0 automatic, 2 P2P, 3 NVLS, else assert
	LLThreshold       int64 // bytes: fcollect LL up to here
	MaxCTAs           int64 // 0 where unset

	// Arith is the arithmetic of the switch.
	Arith nvls.Config
	// Domain is how many ranks an NVLink domain holds, 0 if all; a larger team
	// has no multicast base.
	Domain int64
	// MinMaxPR has 16-bit min and max of all-reduce share the path of sums.
	MinMaxPR bool

	rounding string // "" where unset
	rsAlign  string // "" where unset
}

// Half is the scratch memory of one call, in bytes.
func (p Params) Half() int64 { return p.ScratchSize / 2 }

// SegmentBytes is the most one put of the segment algorithm carries. The same
// figure, as a number of elements, limits recursive exchange: the library
// compares a number of longs with a number of elements.
func (p Params) SegmentBytes() int64 { return p.Half() / 8 }

// Radix is the radix of recursive exchange on a team of that size.
func (p Params) Radix(ranks int) int { return int(max(2, min(p.RecExchRadix, int64(ranks)))) }

// Switch is what the switch makes of op on d. The error is an *nvls.Missing.
func (p Params) Switch(d api.DType, op api.Op) (nvls.Model, error) {
	m, err := p.Arith.Model(d, op, true)
	if p.rounding != "" && !m.Fitted {
		m.Final = nvls.Final(p.rounding)
	}
	return m, err
}

// after reports whether the rules of PR #131 hold.
func (p Params) after() bool { return base(p.Version) == versionPR131 }

// base is the version whose parameters a version has.
func base(version string) string {
	if version == versionTeam || version == versionTail {
		return versionPR131
	}
	return version
}

// exchange2026 reports whether recursive exchange needs radix 2 and a power of
// two ranks, as the 2026 sources have it.
func (p Params) exchange2026() bool { return p.Version != version345 }

type setting struct {
	api.Param
	only string // the one version that has it; "" for all
	set  func(*Params, string) bool
}

func intIn(lo, hi int64, field func(*Params) *int64) func(*Params, string) bool {
	return func(p *Params, text string) bool {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < lo || v > hi {
			return false
		}
		*field(p) = v
		return true
	}
}

func oneOf(apply func(*Params, string), values ...string) func(*Params, string) bool {
	return func(p *Params, text string) bool {
		if !slices.Contains(values, text) {
			return false
		}
		apply(p, text)
		return true
	}
}

const (
	maxInt32     = 1<<31 - 1
	maxThreshold = 1 << 53 // bytes: beyond any call
	scratchUnit  = 128     // makes a segment a whole number of elements of any type
	maxMaxCTAs   = 1024
)

func settings() []setting {
	return []setting{
		{api.Param{Name: "nvls", Default: "on", Values: "on|off", Help: "multicast objects; off is NVSHMEM_DISABLE_NVLS=1"}, "",
			oneOf(func(p *Params, v string) { p.NVLS = v == "on" }, "on", "off")},
		{api.Param{Name: "nccl", Default: "off", Values: "off|on", Help: "a build with NCCL; off is NVSHMEM_DISABLE_NCCL=1 or no libnccl"}, "",
			oneOf(func(p *Params, v string) { p.NCCL = v == "on" }, "off", "on")},
		{api.Param{Name: "reduce_algo", Default: "0", Values: "0|1|2 automatic, 3 two-shot, 4 one-shot, any other integer P2P", Help: "all-reduce algorithm; 3 and 4 fall back to P2P where not legal"}, "",
			intIn(-maxInt32-1, maxInt32, func(p *Params) *int64 { return &p.ReduceAlgo })},
		{api.Param{Name: "reduce_nvls_threshold", Default: "2048", Values: "0..2147483647", Help: "one-shot up to this many elements (not bytes)"}, "",
			intIn(0, maxInt32, func(p *Params) *int64 { return &p.NVLSThreshold })},
		{api.Param{Name: "reduce_scratch_size", Default: "524288", Values: "bytes, a multiple of 128 up to 2^40", Help: "scratch per team; a call uses one half"}, "",
			func(p *Params, text string) bool {
				return intIn(scratchUnit, 1<<40, func(p *Params) *int64 { return &p.ScratchSize })(p, text) && p.ScratchSize%scratchUnit == 0
			}},
		{api.Param{Name: "reduce_recexch_kval", Default: "2", Values: "0..1024; below 2 the library asserts", Help: "radix of recursive exchange"}, "",
			intIn(0, api.MaxRanks, func(p *Params) *int64 { return &p.RecExchRadix })},
		{api.Param{Name: "reducescatter_algo", Default: "0", Values: "0 automatic, 2 P2P, 3 NVLS; on others the library asserts", Help: "reduce-scatter algorithm"}, "",
			intIn(-maxInt32-1, maxInt32, func(p *Params) *int64 { return &p.ReduceScatterAlgo })},
		{api.Param{Name: "fcollect_ll_threshold", Default: "2048", Values: "bytes, 0..2^53", Help: "LL algorithms up to here"}, "",
			intIn(0, maxThreshold, func(p *Params) *int64 { return &p.LLThreshold })},
		{api.Param{Name: "max_ctas", Default: "unset", Values: "1..1024, or unset", Help: "CTAs of an on-stream call above the size threshold; unset: 16, fcollect max(1, 32/ranks)"}, "",
			func(p *Params, text string) bool {
				if text == "unset" {
					p.MaxCTAs = 0
					return true
				}
				return intIn(1, maxMaxCTAs, func(p *Params) *int64 { return &p.MaxCTAs })(p, text)
			}},
		{api.Param{Name: "rounding", Default: "unset: the preset's, or dir", Values: "rz|rne|away", Help: "last rounding of in-switch sums of every type, for the model to assume"}, "",
			oneOf(func(p *Params, v string) { p.rounding = v }, "rz", "rne", "away")},
		{api.Param{Name: nvls.DomainParam, Default: "unset: every team is one domain", Values: "2..1024", Help: "ranks of one NVLink domain; a team over two has no multicast base and goes P2P"}, "",
			intIn(2, api.MaxRanks, func(p *Params) *int64 { return &p.Domain })},
		{api.Param{Name: "minmax", Default: "source", Values: "source|pr", Help: "16-bit min and max of all-reduce: P2P as in source, or through the switch as the text of PR #131 has it"}, "",
			oneOf(func(p *Params, v string) { p.MinMaxPR = v == "pr" }, "source", "pr")},
		{api.Param{Name: "rs_align", Default: "unset", Values: "pointer|shifted", Help: "which source address reduce-scatter tests: the call's, or shifted by its source_offset; a call on which they differ is refused without it"}, versionPR131,
			oneOf(func(p *Params, v string) { p.rsAlign = v }, "pointer", "shifted")},
	}
}

func settingsOf(version string) []setting {
	return slices.DeleteFunc(settings(), func(s setting) bool { return s.only != "" && s.only != base(version) })
}

// defaults are the parameters of a version where nothing is set.
func defaults(version string) Params {
	return Params{
		Version: version, NVLS: true, NVLSThreshold: 2048, ScratchSize: 524288, RecExchRadix: 2, LLThreshold: 2048,
		Arith: nvls.Config{Fabric: nvls.NVLink5},
	}
}

// ParseParams reads the version and parameters of a Spec. The error is an
// *api.InvalidError that lists what is known.
func ParseParams(spec api.Spec) (Params, error) {
	if spec.Implementation != Name {
		return Params{}, &api.InvalidError{Field: "implementation", Value: spec.Implementation, Reason: "not of this family", Hint: "it is called " + Name}
	}
	if !slices.Contains(versions, spec.Version) {
		return Params{}, &api.InvalidError{Field: "version", Value: spec.Version, Reason: "unknown version of " + Name, Hint: fmt.Sprintf("known are %v", versions)}
	}
	p := defaults(spec.Version)
	known := settingsOf(spec.Version)
	left := len(spec.Params) - len(nvls.Names(spec.Params))
	for _, s := range known {
		value, ok := spec.Params[s.Name]
		if !ok {
			continue
		}
		left--
		if !s.set(&p, value) {
			return Params{}, &api.InvalidError{Field: s.Name, Value: value, Reason: "not a value of this parameter", Hint: "values: " + s.Values}
		}
	}
	if left > 0 {
		return Params{}, unknownParam(spec, known)
	}
	var err error
	if p.Arith, err = nvls.Parse(spec.Params); err != nil {
		return Params{}, err
	}
	if p.rounding != "" && p.Arith.Dir != "" {
		return Params{}, &api.InvalidError{Field: "rounding", Value: p.rounding, Reason: "given together with dir", Hint: "use one of the two: rounding is about sums of every type, dir about 16-bit ones"}
	}
	return p, nil
}

func unknownParam(spec api.Spec, known []setting) error {
	names := make([]string, len(known))
	for i, s := range known {
		names[i] = s.Name
	}
	for _, p := range nvls.Params() {
		names = append(names, p.Name)
	}
	var unknown []string
	for name := range spec.Params {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	return &api.InvalidError{
		Field: "parameter", Value: slices.Min(unknown),
		Reason: fmt.Sprintf("unknown to %s@%s", Name, spec.Version), Hint: fmt.Sprintf("known are %v", names),
	}
}
