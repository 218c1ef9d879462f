package gpufake

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"example.com/tandem/api/gpu"
)

// Kernel is the body of a kernel: all blocks and threads of one launch. It may
// wait for memory to change, with Cycles as its clock and Yield in its loop.
type Kernel func(*Run)

// Run is one launch on its way.
type Run struct {
	Grid, Block gpu.Dim3
	Shared      int

	s      *stream
	name   string
	args   []byte
	params []gpu.Param
	start  time.Duration
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
	if l.Cooperative {
		per, err := f.BlocksPerSM(int(l.Block.Count()), l.Shared)
		if err != nil {
			return err
		}
		if most := uint64(per * s.c.SMs()); l.Grid.Count() > most {
			return &gpu.Error{Call: call, Code: gpu.CooperativeTooLarge, Detail: fmt.Sprintf("%v blocks, %d fit", l.Grid, most)}
		}
	}
	leave, err := s.enter(call)
	if err != nil {
		return err
	}
	defer leave()
	if err := f.m.Loaded(call); err != nil {
		return err
	}
	r := Run{Grid: l.Grid.Dims(), Block: l.Block.Dims(), Shared: l.Shared, s: s, name: f.name, args: slices.Clone(l.Args.Bytes()), params: f.params}
	body := s.c.d.opts.Kernels[f.name]
	s.add(op{run: func() (fault *gpu.Error) {
		run := r
		run.start = s.c.d.clock.Now()
		defer func() {
			switch v := recover().(type) {
			case nil:
			case *gpu.Error:
				fault = v
			default:
				panic(v)
			}
		}()
		body(&run)
		return nil
	}})
	return nil
}

// Bytes is argument i.
func (r *Run) Bytes(i int) []byte { return r.args[r.params[i].Offset:][:r.params[i].Size] }

// Uint is argument i, zero-extended from its size.
func (r *Run) Uint(i int) uint64 {
	var b [8]byte
	copy(b[:], r.Bytes(i))
	return binary.LittleEndian.Uint64(b[:])
}

// Ptr is argument i as an address.
func (r *Run) Ptr(i int) gpu.Ptr { return gpu.Ptr(r.Uint(i)) }

// Threads is the number of threads of the launch.
func (r *Run) Threads() int { return int(r.Grid.Count() * r.Block.Count()) }

// Cycles is the device's clock since the launch began.
func (r *Run) Cycles() uint64 {
	return uint64(r.s.c.d.clock.Now()-r.start) * uint64(r.s.c.dev.info.ClockKHz) / 1e6
}

// Yield lets others run.
func (r *Run) Yield() { r.s.c.d.clock.Sleep(20 * time.Microsecond) }

// Fault ends the kernel and loses the context, as a GPU does.
func (r *Run) Fault(code gpu.Code, format string, args ...any) {
	panic(&gpu.Error{Call: "kernel " + r.name, Code: code, Detail: fmt.Sprintf(format, args...)})
}

// at gives n bytes at p that this device may reach. The lock is held.
func (r *Run) at(p gpu.Ptr, n uint64) []byte {
	d, dev := r.s.c.d, r.s.c.dev
	v := d.find(p, n)
	if v == nil {
		r.Fault(gpu.IllegalAddress, "%d bytes at %#x are in no allocation", n, uint64(p))
	}
	if v.dev != nil && v.dev != dev && !d.peers[[2]*device{dev, v.dev}] && !slices.Contains(v.others, dev) {
		r.Fault(gpu.IllegalAddress, "%#x is memory of %v, to which %v has no access", uint64(p), v.dev.info.Name, dev.info.Name)
	}
	return v.data[p-v.Base:][:n]
}

// word gives the aligned word at p.
func word[T uint32 | uint64](r *Run, p gpu.Ptr) *T {
	var zero T
	size := uint64(unsafe.Sizeof(zero))
	if uint64(p)%size != 0 {
		r.Fault(gpu.MisalignedAddress, "%d bytes at %#x", size, uint64(p))
	}
	return (*T)(unsafe.Pointer(&r.at(p, size)[0]))
}

// Load32 reads a word. Like all accesses here it is atomic, also against the
// host's Load and Store on pinned memory.
func (r *Run) Load32(p gpu.Ptr) uint32 {
	r.s.c.d.mu.Lock()
	defer r.s.c.d.mu.Unlock()
	return atomic.LoadUint32(word[uint32](r, p))
}

// Store32 writes a word.
func (r *Run) Store32(p gpu.Ptr, v uint32) {
	r.s.c.d.mu.Lock()
	defer r.s.c.d.mu.Unlock()
	atomic.StoreUint32(word[uint32](r, p), v)
}

// Add32 adds to a word and gives what it was before.
func (r *Run) Add32(p gpu.Ptr, v uint32) uint32 {
	r.s.c.d.mu.Lock()
	defer r.s.c.d.mu.Unlock()
	return atomic.AddUint32(word[uint32](r, p), v) - v
}

// Load64 reads a 64-bit word.
func (r *Run) Load64(p gpu.Ptr) uint64 {
	r.s.c.d.mu.Lock()
	defer r.s.c.d.mu.Unlock()
	return atomic.LoadUint64(word[uint64](r, p))
}

// Store64 writes a 64-bit word.
func (r *Run) Store64(p gpu.Ptr, v uint64) {
	r.s.c.d.mu.Lock()
	defer r.s.c.d.mu.Unlock()
	atomic.StoreUint64(word[uint64](r, p), v)
}

// Read gives a copy of n bytes.
func (r *Run) Read(p gpu.Ptr, n uint64) []byte {
	r.s.c.d.mu.Lock()
	defer r.s.c.d.mu.Unlock()
	return bytes.Clone(r.at(p, n))
}

// Write writes bytes.
func (r *Run) Write(p gpu.Ptr, b []byte) {
	r.s.c.d.mu.Lock()
	defer r.s.c.d.mu.Unlock()
	copy(r.at(p, uint64(len(b))), b)
}
