package gpubook

import "example.com/tandem/api/gpu"

// Module is the books of loaded code, and its functions'.
type Module struct {
	Name  string
	c     *Context
	entry *gpu.Entry // nil once unloaded
}

// NewModule enters a module into a context's books. The lock is held.
func (c *Context) NewModule(name string) *Module {
	return &Module{name, c, c.Ledger.Add(gpu.KindModule, func() string { return "module " + name })}
}

// Loaded refuses what a call wants of a module that was unloaded. The lock is held.
func (m *Module) Loaded(call string) error {
	if m.entry == nil {
		return gpu.Refuse(call, gpu.ErrClosed, "module %s was unloaded", m.Name)
	}
	return nil
}

// Enter is Context.Enter for a call that needs the module.
func (m *Module) Enter(call string) (leave func(), err error) {
	if leave, err = m.c.Enter(call); err != nil {
		return nil, err
	}
	if err := m.Loaded(call); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// Missing is the error of a name that the module does not have.
func (m *Module) Missing(call, name string) error {
	return &gpu.Error{Call: call, Code: gpu.NotFound, Detail: name + " in " + m.Name}
}

// Unload releases the module unless busy, called under the lock, says that it
// would wait; gone releases what belongs to it.
func (m *Module) Unload(busy func(call string) error, gone func()) error {
	const call = "cuModuleUnload"
	leave, err := m.c.Release(call)
	if err != nil {
		return err
	}
	defer leave()
	if err := m.Loaded(call); err != nil {
		return err
	}
	if err := busy(call); err != nil {
		return err
	}
	gone()
	m.entry.Release()
	m.entry = nil
	return nil
}

// Shared begins a Function.SetDynamicShared of n bytes of most.
func (m *Module) Shared(n, most int) (leave func(), err error) {
	const call = "cuFuncSetAttribute"
	if leave, err = m.Enter(call); err != nil {
		return nil, err
	}
	if n < 0 || n > most {
		leave()
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "%d bytes of dynamic shared memory", n)
	}
	return leave, nil
}

// BlocksPerSM is Resident for a function of the module, with so much shared memory
// of its own.
func (m *Module) BlocksPerSM(i gpu.Info, threads, dynamic, static int) (int, error) {
	const call = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
	leave, err := m.Enter(call)
	if err != nil {
		return 0, err
	}
	defer leave()
	if threads < 1 || dynamic < 0 {
		return 0, gpu.Refuse(call, gpu.ErrInvalid, "%d threads, %d bytes", threads, dynamic)
	}
	return Resident(i, threads, dynamic+static), nil
}
