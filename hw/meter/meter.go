package meter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/kernels"
)

// MaxGPUs is the highest number of GPUs of a rig.
const MaxGPUs = 64

// Offsets in a page, as meter.cu has them.
const (
	pageRank  = 8
	pageWorld = 12
	pageLimit = 16
	pageFault = 24
	pagePeers = 64
	pageFlags = 64 + 2*8*MaxGPUs
	pageBytes = pageFlags + 2*4*MaxGPUs
)

// flagPeers is how many peers a kernel of one flag each has room for.
const flagPeers = 8

// Sizes of launches: the barrier has a thread for each GPU, a copy fills the GPU.
const (
	barrierThreads = 64
	copyThreads    = 256
	copyFlight     = 8 // lines that a thread has under way
	lineBytes      = 16
)

// GPU is one GPU of a rig: its context, with peer access to the others, and the
// stream that is measured on.
type GPU struct {
	Context gpu.Context
	Stream  gpu.Stream
	// Function gives a kernel of a module that is loaded once.
	Function func(module string, ptx []byte, name string) (gpu.Function, error)
	// Free gives memory of the context back.
	Free func(p gpu.Ptr) error
}

// Rig is the means to measure on a set of GPUs.
type Rig struct {
	clock gpu.Clock
	gpus  []GPU
	on    []kernelSet
	pages []gpu.Ptr
	fault gpu.HostMemory
	limit time.Duration
}

type kernelSet struct{ barrier, flag, empty, spin, copy gpu.Function }

// setupLimit is more than filling in a page takes.
const setupLimit = 10 * time.Second

// New makes a rig; limit is how long a barrier may wait.
func New(ctx context.Context, clock gpu.Clock, gpus []GPU, limit time.Duration) (*Rig, error) {
	if len(gpus) < 1 || len(gpus) > MaxGPUs {
		return nil, gpu.Refuse("meter", gpu.ErrInvalid, "%d GPUs, a rig has 1 to %d", len(gpus), MaxGPUs)
	}
	r := &Rig{clock: clock, gpus: gpus, limit: limit}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Rig) start(ctx context.Context) error {
	var err error
	if r.fault, err = r.gpus[0].Context.AllocHost(64); err != nil {
		return err
	}
	for _, g := range r.gpus {
		var k kernelSet
		for name, to := range map[string]*gpu.Function{"meter_barrier": &k.barrier, "meter_flag": &k.flag, "meter_empty": &k.empty, "meter_spin": &k.spin, "meter_copy": &k.copy} {
			if *to, err = g.Function("meter.ptx", kernels.Meter, name); err != nil {
				return err
			}
		}
		p, err := g.Context.Alloc(pageBytes)
		if err != nil {
			return err
		}
		r.on, r.pages = append(r.on, k), append(r.pages, p)
	}
	for i := range r.gpus {
		if err := r.fill(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// fill writes the page of a GPU by way of pinned memory.
func (r *Rig) fill(ctx context.Context, i int) error {
	g := r.gpus[i]
	h, err := g.Context.AllocHost(pageBytes)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	le.PutUint32(h.Bytes[pageRank:], uint32(i))
	le.PutUint32(h.Bytes[pageWorld:], uint32(len(r.gpus)))
	le.PutUint64(h.Bytes[pageLimit:], r.cycles(i, r.limit))
	le.PutUint64(h.Bytes[pageFault:], uint64(r.fault.Ptr))
	for p, page := range r.pages {
		le.PutUint64(h.Bytes[pagePeers+8*p:], uint64(page))
	}
	err = g.Stream.Copy(r.pages[i], h.Ptr, pageBytes)
	if err == nil {
		err = gpu.Wait(ctx, r.clock, setupLimit, g.Stream)
	}
	return errors.Join(err, g.Free(h.Ptr))
}

// cycles is a time at the highest clock of a GPU.
func (r *Rig) cycles(i int, d time.Duration) uint64 {
	khz := uint64(r.gpus[i].Context.Device().Info().ClockKHz)
	return uint64(d.Nanoseconds()) * khz / 1_000_000
}

// Barrier queues, on the stream of one GPU, the wait for all others.
func (r *Rig) Barrier(i int) error {
	return r.gpus[i].Stream.Launch(gpu.Launch{Function: r.on[i].barrier, Block: gpu.Dim3{X: barrierThreads}, Args: new(gpu.Args).Ptr(r.pages[i])})
}

// Flag queues one flag from each GPU to each, in the plainest form; k is the number
// of flags since a barrier. Above 9 GPUs it is a barrier.
func (r *Rig) Flag(i, k int) error {
	if len(r.gpus)-1 > flagPeers {
		return r.Barrier(i)
	}
	var slots [2 * flagPeers * 8]byte
	n := 0
	at := func(page, from int) uint64 { return uint64(r.pages[page]) + pageFlags + 4*uint64(2*from+k%2) }
	for p := range r.gpus {
		if p != i {
			binary.LittleEndian.PutUint64(slots[8*n:], at(i, p))
			binary.LittleEndian.PutUint64(slots[8*(flagPeers+n):], at(p, i))
			n++
		}
	}
	return r.gpus[i].Stream.Launch(gpu.Launch{Function: r.on[i].flag, Args: new(gpu.Args).Struct(slots[:], 8).Uint64(r.cycles(i, r.limit)).Ptr(r.fault.Ptr).Uint32(uint32(n))})
}

// Empty queues a kernel that does nothing.
func (r *Rig) Empty(i int) error {
	return r.gpus[i].Stream.Launch(gpu.Launch{Function: r.on[i].empty, Block: gpu.Dim3{X: barrierThreads}, Args: new(gpu.Args).Uint64(0)})
}

// Spin queues a kernel that keeps all multiprocessors of a GPU busy for a time at
// its highest clock.
func (r *Rig) Spin(i int, d time.Duration) error {
	return r.gpus[i].Stream.Launch(gpu.Launch{Function: r.on[i].spin, Grid: gpu.Dim3{X: uint32(r.gpus[i].Context.SMs())}, Block: gpu.Dim3{X: copyThreads},
		Args: new(gpu.Args).Uint64(r.cycles(i, d))})
}

// Copy queues, on the stream of one GPU, a copy by loads and stores of 16 bytes.
// Both addresses and the size are multiples of 16.
func (r *Rig) Copy(i int, dst, src gpu.Ptr, bytes uint64) error {
	if uint64(dst)%lineBytes != 0 || uint64(src)%lineBytes != 0 || bytes%lineBytes != 0 {
		return gpu.Refuse("meter_copy", gpu.ErrInvalid, "%d bytes from %#x to %#x are not lines of %d", bytes, uint64(src), uint64(dst), lineBytes)
	}
	// No more blocks than have work for all their threads.
	grid := uint32(min(uint64(2*r.gpus[i].Context.SMs()), max(1, bytes/lineBytes/copyThreads/copyFlight)))
	return r.gpus[i].Stream.Launch(gpu.Launch{Function: r.on[i].copy, Grid: gpu.Dim3{X: grid}, Block: gpu.Dim3{X: copyThreads},
		Args: new(gpu.Args).Ptr(dst).Ptr(src).Uint64(bytes / lineBytes).Uint32(grid)})
}

// Late is an error once a barrier has given up. The streams are idle.
func (r *Rig) Late() error {
	if r.fault.Bytes != nil && r.fault.Load32(0) != 0 {
		return fmt.Errorf("a barrier of the GPUs: %w", gpu.ErrDeadline)
	}
	return nil
}

// Close releases the rig's memory. The streams are idle, and no graph with a
// barrier is launched any more.
func (r *Rig) Close() error {
	var errs []error
	for i, p := range r.pages {
		errs = append(errs, r.gpus[i].Free(p))
	}
	if r.fault.Bytes != nil {
		errs = append(errs, r.gpus[0].Free(r.fault.Ptr))
	}
	r.pages, r.fault = nil, gpu.HostMemory{}
	return errors.Join(errs...)
}
