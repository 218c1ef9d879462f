package kernelfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx"
	"example.com/tandem/sim/ptx/asm"
)

// maxSteps is the default of steps: two minutes of one core.
const maxSteps = 1_000_000_000

// Params are the parameters of a spec ptx:FILE.ptx.
func Params() []api.Param {
	return []api.Param{
		{Name: "entry", Default: "the only one", Values: "NAME", Help: "which kernel of the file"},
		{Name: "args", Default: "FILE.json", Values: "FILE", Help: "the description: what the kernel claims to be, its grid and its arguments"},
		{Name: "seed", Default: "1", Values: "0..2^64-1", Help: "of the schedule of blocks and warps, and of which value a racy read sees"},
		{Name: "sms", Default: "132", Values: "1..1024", Help: "multiprocessors of a GPU: how many blocks run at a time"},
		{Name: "steps", Default: strconv.Itoa(maxSteps), Values: "1..2^40", Help: "thread-instructions of a call, after which it is taken to hang"},
	}
}

// Implementation is the entry in a backend's list; its specs name a file.
func Implementation() api.Implementation {
	return api.Implementation{
		Summary:     "FILE.ptx: a kernel of your own, with the arguments that FILE.json names, on virtual GPUs",
		Params:      Params(),
		Collectives: slices.DeleteFunc(api.Collectives(), api.IsMany), DTypes: api.DTypes(),
		Evidence: map[string]api.Evidence{"kernel": api.FromSource},
	}
}

// options are the parameters of a spec, read.
type options struct {
	spec  api.Spec
	entry string
	args  string
	seed  uint64
	sms   int
	steps uint64
}

func readOptions(spec api.Spec) (*options, error) {
	o := &options{spec: spec, args: strings.TrimSuffix(spec.Path, ".ptx") + ".json", seed: 1, sms: 132, steps: maxSteps}
	params := Params()
	for key, value := range spec.Params {
		i := slices.IndexFunc(params, func(p api.Param) bool { return p.Name == key })
		if i < 0 {
			var names []string
			for _, p := range params {
				names = append(names, p.Name)
			}
			return nil, &api.InvalidError{Field: "parameter", Value: key, Reason: "kernels from files have no such parameter", Hint: fmt.Sprintf("known are %v", names)}
		}
		err := error(nil)
		switch v := uint64(0); key {
		case "entry":
			o.entry = value
		case "args":
			o.args = value
		case "seed":
			o.seed, err = strconv.ParseUint(value, 10, 64)
		case "sms":
			v, err = strconv.ParseUint(value, 10, 64)
			if o.sms = int(v); v < 1 || v > 1024 {
				err = cmp.Or(err, strconv.ErrRange)
			}
		case "steps":
			o.steps, err = strconv.ParseUint(value, 10, 64)
			if o.steps < 1 || o.steps > 1<<40 {
				err = cmp.Or(err, strconv.ErrRange)
			}
		}
		if err != nil {
			return nil, &api.InvalidError{Field: key, Value: value, Reason: "not a value of this parameter", Hint: params[i].Values}
		}
	}
	return o, nil
}

// file reads a file of at most max bytes.
func file(field, name string, most int64, hint string) ([]byte, error) {
	info, err := os.Stat(name)
	bad := &api.InvalidError{Field: field, Value: name, Reason: "it cannot be read", Hint: hint}
	switch {
	case errors.Is(err, os.ErrNotExist):
		bad.Reason = "there is no such file"
		return nil, bad
	case err != nil:
		return nil, bad
	case !info.Mode().IsRegular():
		bad.Reason = "it is no file"
		return nil, bad
	case info.Size() > most:
		bad.Reason = fmt.Sprintf("it has %d bytes, at most %d are read", info.Size(), most)
		return nil, bad
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, bad
	}
	return text, nil
}

// Open makes a team of a kernel from a file: a virtual GPU for every rank.
func Open(ctx context.Context, spec api.Spec, cfg api.TeamConfig) (api.Team, error) {
	o, err := readOptions(spec)
	if err != nil {
		return nil, err
	}
	text, err := file("kernel", spec.Path, 64<<20, "name a file of PTX, as clang -S or nvcc -ptx write it")
	if err != nil {
		return nil, err
	}
	args, err := file("args", o.args, maxText, "write a description of the kernel's arguments, or name one with args=FILE; go doc of sim/ptx/kernelfile shows how")
	if err != nil {
		return nil, err
	}
	d, err := Read(o.args, args)
	if err != nil {
		return nil, err
	}
	if cfg.Ranks < d.MinRanks || cfg.Ranks > d.MaxRanks {
		return nil, &api.Refused{Spec: spec.String(), What: fmt.Sprintf("%d ranks", cfg.Ranks), Reason: fmt.Sprintf("%s says it takes %d to %d", o.args, d.MinRanks, d.MaxRanks)}
	}
	entry, err := entryOf(spec.Path, text, cmp.Or(o.entry, d.Entry))
	if err != nil {
		return nil, err
	}
	t := &team{options: o, d: d}
	if err := t.open(cfg, entry, text); err != nil {
		return nil, err
	}
	return t, ctx.Err()
}

// entryOf finds the kernel.
func entryOf(path string, text []byte, want string) (string, error) {
	m, err := asm.Parse(path, text)
	if err != nil {
		return "", &api.InvalidError{Field: "kernel", Value: path, Reason: err.Error()}
	}
	var names []string
	for _, f := range m.Funcs {
		if f.Entry {
			names = append(names, f.Name)
		}
	}
	switch {
	case len(names) == 0:
		return "", &api.InvalidError{Field: "kernel", Value: path, Reason: "it has no .entry", Hint: "declare the kernel extern \"C\" __global__"}
	case want == "" && len(names) == 1:
		return names[0], nil
	case !slices.Contains(names, want):
		return "", &api.InvalidError{Field: "entry", Value: want, Reason: "no such kernel in " + path, Hint: "entry=" + strings.Join(names, " or entry=")}
	}
	return want, nil
}

// open makes the machine and loads the kernel on every GPU.
func (t *team) open(cfg api.TeamConfig, entry string, text []byte) error {
	t.driver = ptx.Open(ptx.Options{
		Devices: cfg.Ranks, Seed: t.seed, Multicast: t.d.multicast(), MaxSteps: t.steps,
		Info: func(i *gpu.Info) { i.SMs = t.sms },
	})
	t.limit = cmp.Or(cfg.Progress, defaultProgress)
	for r, dev := range t.driver.Devices() {
		c, err := dev.Open()
		if err != nil {
			return err
		}
		t.contexts = append(t.contexts, c)
		m, err := c.LoadModule(t.spec.Path, text)
		if err != nil {
			return t.unreadable(err)
		}
		f, err := m.Function(entry)
		if err != nil {
			return err
		}
		s, err := c.NewStream(gpu.StreamOptions{})
		if err != nil {
			return err
		}
		t.modules, t.functions, t.streams = append(t.modules, m), append(t.functions, f), append(t.streams, s)
		t.members = append(t.members, &member{t, r})
	}
	for _, a := range t.contexts {
		for _, b := range t.contexts {
			if err := a.EnablePeer(b); a != b && err != nil {
				return err
			}
		}
	}
	return t.fits(cfg.Ranks)
}

// unreadable is what is wrong with a text.
func (t *team) unreadable(err error) error {
	var bad *gpu.Error
	if errors.As(err, &bad) && errors.Is(err, gpu.ErrBadImage) {
		return &api.InvalidError{Field: "kernel", Value: t.spec.Path, Reason: bad.Detail}
	}
	return err
}

// fits holds the description to the kernel.
func (t *team) fits(ranks int) error {
	d, f := t.d, t.functions[0]
	places := f.Params()
	if len(places) != len(d.Params) {
		return &Error{d.File, d.paramsLine, fmt.Sprintf("%d parameters, the kernel %s takes %d", len(d.Params), f.Name(), len(places))}
	}
	for i := range d.Params {
		if why := d.Params[i].fits(places[i].Size, ranks); why != "" {
			return &Error{d.File, d.Params[i].Line, fmt.Sprintf("parameter %d: %s", i, why)}
		}
	}
	if d.Shared > 0 {
		if err := f.SetDynamicShared(d.Shared); err != nil {
			return &Error{d.File, d.lines["shared"], err.Error()}
		}
		for _, f := range t.functions {
			if err := f.SetDynamicShared(d.Shared); err != nil {
				return err
			}
		}
	}
	per, err := f.BlocksPerSM(int(d.Block.Count()), d.Shared)
	if err != nil {
		return err
	}
	if most := uint64(per) * uint64(t.sms); per == 0 || d.Cooperative && d.Grid.Count() > most {
		return &Error{d.File, d.lines["grid"], fmt.Sprintf("%d blocks that run together, %d fit on %d multiprocessors", d.Grid.Count(), most, t.sms)}
	}
	launch := gpu.Launch{Function: f, Grid: d.Grid, Block: d.Block, Shared: d.Shared, Cooperative: d.Cooperative}
	at := &addresses{own: make([]map[string]gpu.Ptr, ranks), multi: make([]map[string]gpu.Ptr, ranks), table: make([]map[string]gpu.Ptr, ranks)}
	if launch.Args, err = d.pack(&api.Call{Ranks: ranks}, 0, at, places); err != nil {
		return err
	}
	if err := launch.Check(t.contexts[0].Device().Info()); err != nil {
		return &Error{d.File, d.lines["block"], err.Error()}
	}
	return nil
}
