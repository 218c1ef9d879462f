package ptx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gpubook"
	"example.com/tandem/sim/ptx/vm"
)

type module struct {
	*gpubook.Module
	c       *vcontext
	code    *vm.Module
	globals []uint64
	regions []*region
}

func (c *vcontext) LoadModule(name string, text []byte) (gpu.Module, error) {
	const call = "cuModuleLoadDataEx"
	leave, err := c.enter(call)
	if err != nil {
		return nil, err
	}
	defer leave()
	if edit := c.d.opts.Edit; edit != nil {
		text = edit(text)
	}
	key := name + "\x00" + string(text)
	code := c.d.modules[key]
	if code == nil {
		if code, err = vm.Load(name, []byte(strings.TrimRight(string(text), "\x00"))); err != nil {
			return nil, &gpu.Error{Call: call, Code: gpu.InvalidPTX, Detail: err.Error()}
		}
		c.d.modules[key] = code
	}
	m := &module{c: c, code: code, Module: c.book.NewModule(name)}
	for _, v := range code.Globals {
		n := uint64(max(v.Bytes(), 1))
		r := c.allocation(n)
		r.Store = vm.NewStore(n, c.dev.ordinal, true)
		copy(r.Store.Data, v.Init)
		p := c.d.m.Place(&r.Region)
		r.kept = true // goes with the module
		c.d.regions[gpu.Ptr(p)] = r
		m.globals, m.regions = append(m.globals, p), append(m.regions, r)
	}
	return m, nil
}

func (m *module) Unload() error {
	return m.Module.Unload(m.c.busy, func() {
		for _, r := range m.regions {
			m.c.d.remove(r)
		}
	})
}

func (m *module) Global(name string) (gpu.Ptr, uint64, error) {
	leave, err := m.Enter("cuModuleGetGlobal")
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	for i, v := range m.code.Globals {
		if v.Name == name { // in .global, or in .const, where the host writes too
			return gpu.Ptr(m.globals[i]), uint64(v.Bytes()), nil
		}
	}
	return 0, 0, &gpu.Error{Call: "cuModuleGetGlobal", Code: gpu.NotFound, Detail: name}
}

func (m *module) Function(name string) (gpu.Function, error) {
	leave, err := m.Enter("cuModuleGetFunction")
	if err != nil {
		return nil, err
	}
	defer leave()
	k := m.code.Kernel(name)
	if k == nil {
		return nil, m.Missing("cuModuleGetFunction", name)
	}
	f := &function{m: m, k: k}
	end := 0
	for _, p := range k.Params {
		end = (end + p.Align - 1) / p.Align * p.Align
		f.params = append(f.params, gpu.Param{Offset: end, Size: p.Bytes()})
		end += p.Bytes()
	}
	return f, nil
}

type function struct {
	m      *module
	k      *vm.Kernel
	params []gpu.Param
	most   int // bytes of shared memory that SetDynamicShared opted in to
}

func (f *function) Name() string        { return f.k.Name }
func (f *function) Params() []gpu.Param { return f.params }

func (f *function) Attributes() gpu.FunctionAttributes {
	most := f.m.c.dev.info.MaxThreadsPerBlock
	if f.k.MaxThreads > 0 {
		most = min(most, f.k.MaxThreads)
	}
	sm, _ := strconv.Atoi(strings.Trim(f.m.code.Target, "sm_af"))
	return gpu.FunctionAttributes{Registers: f.k.Registers, LocalBytes: f.k.Local, SharedBytes: f.k.Shared, MaxThreads: most, PTXVersion: sm, ISAVersion: 90}
}

func (f *function) SetDynamicShared(n int) error {
	leave, err := f.m.Shared(n, f.m.c.dev.info.SharedPerBlockMax-f.k.Shared)
	if err != nil {
		return err
	}
	defer leave()
	f.most = n
	return nil
}

func (f *function) BlocksPerSM(threads, shared int) (int, error) {
	return f.m.BlocksPerSM(f.m.c.dev.info, threads, shared, f.k.Shared)
}

// Launch queues a kernel.
func (s *stream) Launch(l gpu.Launch) error {
	call := "cuLaunchKernel"
	if l.Cooperative {
		call = "cuLaunchCooperativeKernel"
	}
	f, ok := l.Function.(*function)
	if !ok || f.m.c.dev != s.c.dev {
		return gpu.Refuse(call, gpu.ErrInvalid, "the kernel was not loaded in the context of the stream")
	}
	if err := l.Check(s.c.dev.info); err != nil {
		return err
	}
	if shared := l.Shared + f.k.Shared; shared > max(s.c.dev.info.SharedPerBlock, f.most) {
		return gpu.Refuse(call, gpu.ErrInvalid, "%d bytes of shared memory without Function.SetDynamicShared", shared)
	}
	per := gpubook.Resident(s.c.dev.info, int(l.Block.Count()), l.Shared+f.k.Shared)
	if per == 0 {
		return &gpu.Error{Call: call, Code: gpu.LaunchOutOfResources, Detail: "no block fits"}
	}
	most := per * s.c.SMs()
	if l.Cooperative && l.Grid.Count() > uint64(most) {
		return &gpu.Error{Call: call, Code: gpu.CooperativeTooLarge, Detail: fmt.Sprintf("%v blocks, %d fit", l.Grid, most)}
	}
	leave, err := s.enter(call)
	if err != nil {
		return err
	}
	defer leave()
	if err := f.m.Loaded(call); err != nil {
		return err
	}
	w := vm.Work{Kernel: f.k, Globals: f.m.globals, Grid: l.Grid, Block: l.Block, Shared: l.Shared,
		Args: append([]byte(nil), l.Args.Bytes()...), Device: s.c.dev.ordinal, Resident: most, Ranks: slices.Clone(l.Ranks)}
	s.add(op{work: &w})
	return nil
}
