package nccl

import (
	"fmt"
	"slices"
	"strconv"

	"example.com/tandem/api"
)

// Name is the implementation's name in a Spec.
const Name = "nccl"

// The kinds of buffers.
const (
	plain      = "plain"
	registered = "registered"
	symmetric  = "symmetric"
)

const auto = "auto"

// The versions whose source was read for this: multicast objects are made only
// where a communicator has NVLS, and none has with NCCL_NVLS_ENABLE=0. Windows
// exist since the first of them.
const (
	firstSymmetric = 22703
	lastSymmetric  = 23007
)

// config is a Spec, read.
type config struct {
	spec     api.Spec
	algo     string
	proto    string
	channels string
	buffers  string
}

// Params are the parameters of a Spec, under the library's own names but for
// buffers.
func Params() []api.Param {
	return []api.Param{
		{Name: "algo", Default: auto, Values: "auto|Ring|Tree", Help: "NCCL_ALGO; auto leaves it as the environment has it. The library reports a collective that it has no such algorithm for"},
		{Name: "proto", Default: auto, Values: "auto|LL|LL128|Simple", Help: "NCCL_PROTO; auto leaves it as the environment has it"},
		{Name: "max_nchannels", Default: auto, Values: "auto|1..64", Help: "NCCL_MAX_NCHANNELS; the library reads it once in a process"},
		{Name: "buffers", Default: plain, Values: "plain|registered|symmetric", Help: "plain: memory that the library does not know; registered: ncclCommRegister; symmetric: ncclMemAlloc and a symmetric window, with equal offsets on all ranks"},
	}
}

// read reads a Spec.
func read(spec api.Spec) (*config, error) {
	c := &config{spec: spec, algo: auto, proto: auto, channels: auto, buffers: plain}
	if spec.Version != "" {
		return nil, &api.InvalidError{Field: "spec", Value: spec.String(), Reason: "it runs the NCCL that is installed, whichever that is", Hint: "leave out @" + spec.Version + "; " + DirEnv + " names the directory of another libnccl.so.2"}
	}
	for key, value := range spec.Params {
		i := slices.IndexFunc(Params(), func(p api.Param) bool { return p.Name == key })
		if i < 0 {
			return nil, &api.InvalidError{Field: "parameter", Value: key, Reason: "unknown to " + Name, Hint: "known are [algo buffers max_nchannels proto]"}
		}
		if !c.set(key, value) {
			return nil, &api.InvalidError{Field: key, Value: value, Reason: "not a value of this parameter", Hint: Params()[i].Values}
		}
	}
	return c, nil
}

func (c *config) set(key, value string) bool {
	choice := func(to *string, values ...string) bool {
		*to = value
		return slices.Contains(values, value)
	}
	switch key {
	case "algo":
		return choice(&c.algo, auto, "Ring", "Tree")
	case "proto":
		return choice(&c.proto, auto, "LL", "LL128", "Simple")
	case "buffers":
		return choice(&c.buffers, plain, registered, symmetric)
	}
	c.channels = value
	n, err := strconv.Atoi(value)
	return value == auto || err == nil && n >= 1 && n <= 64
}

// allowed says whether the installed library may serve the spec.
func (c *config) allowed(version int) error {
	if c.buffers == symmetric && (version < firstSymmetric || version > lastSymmetric) {
		return &api.Refused{Spec: c.spec.String(), What: "symmetric buffers",
			Reason: fmt.Sprintf("that NCCL %s makes no multicast objects for them under NCCL_NVLS_ENABLE=0 is not known", Version(version)),
			Hint:   fmt.Sprintf("NCCL %s to %s, or buffers=registered", Version(firstSymmetric), Version(lastSymmetric))}
	}
	return nil
}

// Version is the text of a version number of the library: 2.28.3 of 22803.
func Version(v int) string { return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100) }
