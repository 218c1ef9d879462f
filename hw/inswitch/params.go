package inswitch

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"example.com/tandem/api"
)

// Params are the parameters that all implementations of this kind have.
func Params() []api.Param {
	return []api.Param{
		{Name: "multicast", Default: "off", Values: "off|on", Help: "on: multimem instructions, a GPU for each rank, where driver, environment (TANDEM_MULTICAST=1, and none of the libraries' switches) and devices allow it; off: their emulation, on any GPU"},
		{Name: "dir", Default: "seeded", Values: "seeded|rz|rne|away", Help: "last rounding of 16-bit sums where multicast is emulated: nobody knows the switch's"},
		{Name: "seed", Default: "0", Values: "0..2^64-1", Help: "of dir=seeded"},
		{Name: "window", Default: "on", Values: "on|off", Help: "on: sums lose what a Blackwell switch was seen to lose far below their largest term; off: they are exact until rounded. Emulated multicast only"},
		{Name: "gpus", Default: "auto", Values: fmt.Sprintf("auto|1..%d", MaxRanks), Help: "GPUs that the ranks share; multicast=on has one for each rank"},
		{Name: "threads", Default: strconv.Itoa(Threads), Values: fmt.Sprintf("32..%d, a multiple of 32", Threads), Help: "threads of a block; fewer are faster on a virtual GPU. Never changes bits"},
		{Name: "deadline_scale", Default: "1", Values: "1..1000", Help: "factor on both deadlines, for sanitizers and debuggers"},
	}
}

// Choice is Params, read.
type Choice struct {
	Native  bool
	Fabric  Fabric
	GPUs    int // 0: as many as there are, at most one a rank
	Threads int // of a block
	Scale   int
}

var directions = []string{"rne", "rz", "away", "seeded"}

// Set reads one parameter; known says whether it is one of Params, ok whether it
// has a value of its.
func (c *Choice) Set(name, value string) (known, ok bool) {
	switch name {
	case "multicast":
		c.Native = value == "on"
		return true, value == "on" || value == "off"
	case "dir":
		i := slices.Index(directions, value)
		c.Fabric.Dir = Direction(max(i, 0))
		return true, i >= 0
	case "seed":
		v, err := strconv.ParseUint(value, 0, 64)
		c.Fabric.Seed = v
		return true, err == nil
	case "window":
		c.Fabric.Window = value == "on"
		return true, value == "on" || value == "off"
	case "gpus":
		return true, value == "auto" || number(value, MaxRanks, &c.GPUs)
	case "threads":
		return true, number(value, Threads, &c.Threads) && c.Threads%32 == 0
	case "deadline_scale":
		return true, number(value, 1000, &c.Scale)
	}
	return false, false
}

func number(text string, most int, to *int) bool {
	v, err := strconv.Atoi(text)
	*to = v
	return err == nil && v >= 1 && v <= most
}

// Default is the choice where nothing is set.
func Default() Choice {
	return Choice{Fabric: Fabric{Dir: Seeded, Window: true}, Threads: Threads, Scale: 1}
}

// Read reads the parameters of a spec: those of Params into c, others by own,
// which is like [Choice.Set]. all lists both, for errors.
func Read(spec api.Spec, c *Choice, all []api.Param, own func(name, value string) bool) error {
	for _, name := range slices.Sorted(maps.Keys(spec.Params)) {
		value := spec.Params[name]
		i := slices.IndexFunc(all, func(p api.Param) bool { return p.Name == name })
		if i < 0 {
			var names []string
			for _, p := range all {
				names = append(names, p.Name)
			}
			return &api.InvalidError{Field: "parameter", Value: name, Reason: spec.Implementation + " has no such parameter", Hint: fmt.Sprintf("known are %v", names)}
		}
		known, ok := c.Set(name, value)
		if !known {
			ok = own(name, value)
		}
		if !ok {
			return &api.InvalidError{Field: name, Value: value, Reason: "not a value of this parameter", Hint: all[i].Values}
		}
	}
	return nil
}
