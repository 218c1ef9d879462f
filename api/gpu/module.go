package gpu

import "fmt"

// Module is loaded code.
type Module interface {
	// Function gives a kernel, loaded onto the device now, not at its first
	// launch: a load waits for running kernels.
	Function(name string) (Function, error)
	// Global is the address and size of a variable of the module.
	Global(name string) (Ptr, uint64, error)
	// Unload releases the module and its functions.
	Unload() error
}

// Function is a kernel.
type Function interface {
	Name() string
	Attributes() FunctionAttributes
	// Params are the kernel's parameters in order.
	Params() []Param
	// SetDynamicShared opts in to more than Info.SharedPerBlock bytes of
	// shared memory a block, static and dynamic together.
	SetDynamicShared(bytes int) error
	// BlocksPerSM is how many blocks of so many threads, each with so much
	// dynamic shared memory, one multiprocessor holds at a time.
	BlocksPerSM(threads, dynamicShared int) (int, error)
}

// FunctionAttributes is what compiling decided.
type FunctionAttributes struct {
	Registers   int // a thread
	LocalBytes  int // a thread; 0 unless the kernel has a stack frame or spills
	SharedBytes int // a block, static
	ConstBytes  int
	MaxThreads  int // a block
	PTXVersion  int // major*10+minor of the virtual architecture
	ISAVersion  int // major*10+minor of the machine code
}

// Param is where a kernel parameter lies in the parameter buffer.
type Param struct{ Offset, Size int }

// Dim3 is a grid or a block. A zero component stands for 1.
type Dim3 struct{ X, Y, Z uint32 }

// Dims replaces zero components by 1.
func (d Dim3) Dims() Dim3 { return Dim3{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }

// Count is the number of blocks or threads.
func (d Dim3) Count() uint64 {
	d = d.Dims()
	return uint64(d.X) * uint64(d.Y) * uint64(d.Z)
}

// String is the three extents, as 4x1x1.
func (d Dim3) String() string {
	d = d.Dims()
	return fmt.Sprintf("%dx%dx%d", d.X, d.Y, d.Z)
}

func (d Dim3) fits(limit Dim3) bool {
	d = d.Dims()
	return d.X <= limit.X && d.Y <= limit.Y && d.Z <= limit.Z
}

// Launch is one launch of a kernel.
type Launch struct {
	Function    Function
	Grid, Block Dim3
	Shared      int // dynamic shared memory, bytes a block
	// Cooperative launches all blocks together or refuses, so that they may
	// wait for each other.
	Cooperative bool
	// Overlap lets the launch begin once every block of the launch right
	// before it on the stream, if that has Overlap too, has run
	// griddepcontrol.launch_dependents: the kernel waits by itself, with
	// griddepcontrol.wait, before it uses what that one leaves. Where a
	// driver cannot, the launch begins after that one has ended.
	Overlap bool
	// Args are the kernel's parameters; nil where it has none. They are
	// copied by Stream.Launch.
	Args *Args
	// Ranks are those whose blocks the grid holds, an equal share each, in
	// order; nil where it is nobody's. They are named in errors only.
	Ranks []int
}

// Check says whether the launch fits the kernel and the device; a driver calls
// it first. Errors are ErrInvalid and ErrTooLarge. Whether a cooperative grid
// fits the context is for the driver to say.
func (l *Launch) Check(dev Info) error {
	if l.Function == nil {
		return Refuse("cuLaunchKernel", ErrInvalid, "no function given")
	}
	refuse := func(why error, format string, args ...any) error {
		return Refuse("cuLaunchKernel", why, l.Function.Name()+": "+format, args...)
	}
	attr := l.Function.Attributes()
	switch {
	case !l.Grid.fits(dev.MaxGrid):
		return refuse(ErrTooLarge, "a grid of %v, the device takes %v", l.Grid, dev.MaxGrid)
	case !l.Block.fits(dev.MaxBlock):
		return refuse(ErrTooLarge, "a block of %v, the device takes %v", l.Block, dev.MaxBlock)
	case l.Block.Count() > uint64(attr.MaxThreads):
		return refuse(ErrTooLarge, "%d threads a block, the kernel takes %d with its %d registers", l.Block.Count(), attr.MaxThreads, attr.Registers)
	case l.Shared < 0:
		return refuse(ErrInvalid, "%d bytes of shared memory", l.Shared)
	case l.Shared > 0 && l.Shared+attr.SharedBytes > dev.SharedPerBlockMax:
		return refuse(ErrTooLarge, "%d bytes of shared memory a block, the device has %d", l.Shared+attr.SharedBytes, dev.SharedPerBlockMax)
	case l.Cooperative && !dev.CooperativeLaunch:
		return refuse(ErrUnsupported, "the device has no cooperative launch")
	}
	if err := l.Args.Check(l.Function.Params()); err != nil {
		return refuse(ErrInvalid, "%v", err)
	}
	return nil
}
