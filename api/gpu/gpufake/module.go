package gpufake

import (
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gpubook"
)

// module is a PTX text of which only the declarations are read.
type module struct {
	*gpubook.Module
	c       *fakeContext
	params  map[string][]gpu.Param
	globals map[string]*region
}

var (
	entryForm  = regexp.MustCompile(`\.entry\s+([\w$]+)\s*\(([^)]*)\)`)
	paramForm  = regexp.MustCompile(`\.param\s+(?:\.align\s+(\d+)\s+)?\.[a-z]+(\d+)\s+[\w$]+(?:\[(\d+)\])?`)
	globalForm = regexp.MustCompile(`\.global\s+\.align\s+\d+\s+\.[a-z]+(\d+)\s+([\w$]+)\s*=\s*(\d+)\s*;`)
)

func number(s string, otherwise int) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return otherwise
	}
	return n
}

// layout places the parameters of an entry.
func layout(text string) (params []gpu.Param) {
	end := 0
	for _, m := range paramForm.FindAllStringSubmatch(text, -1) {
		size := number(m[2], 8) / 8
		align := number(m[1], size)
		end = (end + align - 1) / align * align
		params = append(params, gpu.Param{Offset: end, Size: size * number(m[3], 1)})
		end += params[len(params)-1].Size
	}
	return params
}

func (c *fakeContext) LoadModule(name string, ptx []byte) (gpu.Module, error) {
	leave, err := c.enter("cuModuleLoadDataEx")
	if err != nil {
		return nil, err
	}
	defer leave()
	m := &module{c: c, params: map[string][]gpu.Param{}, globals: map[string]*region{}}
	var lines []string
	for line := range strings.Lines(string(ptx)) {
		code, _, _ := strings.Cut(line, "//")
		lines = append(lines, code)
	}
	text := strings.Join(lines, "\n")
	for _, e := range entryForm.FindAllStringSubmatch(text, -1) {
		if c.d.opts.Kernels[e[1]] == nil {
			return nil, &gpu.Error{Call: "cuModuleLoadDataEx", Code: gpu.InvalidPTX, Detail: name + ": kernel " + e[1] + " has no Go body"}
		}
		m.params[e[1]] = layout(e[2])
	}
	for _, g := range globalForm.FindAllStringSubmatch(text, -1) {
		r := &region{Range: gpu.Range{Bytes: uint64(number(g[1], 8) / 8), Device: c.dev.ordinal}, dev: c.dev, data: cleared(8), owner: c}
		binary.LittleEndian.PutUint64(r.data, uint64(number(g[3], 0)))
		r.data = r.data[:r.Bytes]
		c.d.place(r, gpu.KindMemory)
		r.entry.Release() // goes with the module
		r.Owned, r.kept = false, true
		m.globals[g[2]] = r
	}
	m.Module = c.book.NewModule(name)
	return m, nil
}

func (m *module) Unload() error { return m.Module.Unload(m.c.busy, func() {}) }

func (m *module) Global(name string) (gpu.Ptr, uint64, error) {
	leave, err := m.Enter("cuModuleGetGlobal")
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	r := m.globals[name]
	if r == nil {
		return 0, 0, &gpu.Error{Call: "cuModuleGetGlobal", Code: gpu.NotFound, Detail: name}
	}
	return r.Base, r.Bytes, nil
}

type function struct {
	m      *module
	name   string
	params []gpu.Param
}

func (m *module) Function(name string) (gpu.Function, error) {
	leave, err := m.Enter("cuModuleGetFunction")
	if err != nil {
		return nil, err
	}
	defer leave()
	p, ok := m.params[name]
	if !ok {
		return nil, m.Missing("cuModuleGetFunction", name)
	}
	return &function{m: m, name: name, params: p}, nil
}

func (f *function) Name() string        { return f.name }
func (f *function) Params() []gpu.Param { return f.params }

func (f *function) Attributes() gpu.FunctionAttributes {
	return gpu.FunctionAttributes{Registers: 16, MaxThreads: f.m.c.dev.info.MaxThreadsPerBlock, PTXVersion: 90, ISAVersion: 90}
}

func (f *function) SetDynamicShared(n int) error {
	leave, err := f.m.Shared(n, f.m.c.dev.info.SharedPerBlockMax)
	if err == nil {
		leave()
	}
	return err
}

func (f *function) BlocksPerSM(threads, shared int) (int, error) {
	return f.m.BlocksPerSM(f.m.c.dev.info, threads, shared, 0)
}
