package gpu

import (
	"slices"
	"sync/atomic"
	"unsafe"
)

// Ptr is an address in the one address space that all devices and pinned host
// memory share. It is never a Go pointer.
type Ptr uint64

// Add is the address n bytes further on.
func (p Ptr) Add(n uint64) Ptr { return p + Ptr(n) }

// Context is a device in use. Everything made from it is released before it is
// closed.
type Context interface {
	Device() Device
	// SMs is the number of multiprocessors that launches of this context get:
	// the device's, or fewer where they are partitioned.
	SMs() int

	// Alloc gives device memory, aligned to 256 bytes or more and not
	// cleared. Zero bytes are ErrInvalid.
	Alloc(bytes uint64) (Ptr, error)
	// AllocHost gives pinned host memory, cleared, that every device can
	// reach. The only host memory that Stream.Copy takes.
	AllocHost(bytes int) (HostMemory, error)
	// Free releases what Alloc or AllocHost gave. It does not wait: where a
	// stream of the device still has work it is ErrBusy, since the driver
	// would wait for it. Kernels of other devices are the caller's care.
	Free(p Ptr) error
	// Quarantine sets aside what Alloc, AllocHost or Map gave, for memory
	// that a late store may still reach: it is never freed nor given out
	// again while the process lives, and no longer counted as live.
	Quarantine(p Ptr) error
	// MemInfo is the device's free and total memory.
	MemInfo() (free, total uint64, err error)
	// Range is the allocation that holds p, whoever made it; ErrInvalid if
	// none does, as after Free.
	Range(p Ptr) (Range, error)

	// EnablePeer lets kernels of this context reach the memory of another
	// device's. It is one-way, idempotent, and lasts.
	EnablePeer(peer Context) error

	// NewStream gives a stream that does not wait for the legacy stream.
	NewStream(o StreamOptions) (Stream, error)
	NewEvent(o EventOptions) (Event, error)
	// LoadModule compiles PTX for this device; name stands for it in errors.
	// What the compiler finds is in Error.Detail, its log in Error.Log.
	LoadModule(name string, ptx []byte) (Module, error)

	VirtualMemory
	// Multicast is the way to multicast objects, or why there is none here.
	// It fails closed: [MulticastPolicy] first, then the attribute of every
	// visible device.
	Multicast() (Multicaster, error)

	// Abandon quarantines all that lives in the context, for when a kernel
	// hangs in it: releasing anything would wait for that kernel. Only Close
	// is useful afterwards.
	Abandon()
	// Close gives the context back. It is a *LeakError where something of it
	// still lives, and the context stays open then. Quarantined memory keeps
	// the device's context alive without being an error.
	Close() error
}

// Range is an allocation.
type Range struct {
	Base   Ptr
	Bytes  uint64
	Device int  // ordinal; -1 if host memory
	Owned  bool // made by this driver, not by another user of the process
	Share  Share
}

// End is the address after the last byte.
func (r Range) End() Ptr { return r.Base + Ptr(r.Bytes) }

// Holds reports whether n bytes at p lie inside the range.
func (r Range) Holds(p Ptr, n uint64) bool {
	return p >= r.Base && uint64(p-r.Base) <= r.Bytes && n <= r.Bytes-uint64(p-r.Base)
}

// HostMemory is pinned host memory: Bytes on this side, Ptr on the GPU's. The
// slice is dead after Context.Free.
type HostMemory struct {
	Bytes []byte
	Ptr   Ptr
}

// Load32 reads the word at a byte offset that is a multiple of 4, atomically;
// for words that a running kernel writes.
func (m HostMemory) Load32(off int) uint32 { return atomic.LoadUint32(m.word32(off)) }

// Store32 writes the word at a byte offset that is a multiple of 4,
// atomically; for words that a running kernel reads.
func (m HostMemory) Store32(off int, v uint32) { atomic.StoreUint32(m.word32(off), v) }

// Load64 reads the word at a byte offset that is a multiple of 8, atomically.
func (m HostMemory) Load64(off int) uint64 { return atomic.LoadUint64(m.word64(off)) }

// Store64 writes the word at a byte offset that is a multiple of 8, atomically.
func (m HostMemory) Store64(off int, v uint64) { atomic.StoreUint64(m.word64(off), v) }

func (m HostMemory) word32(off int) *uint32 {
	return (*uint32)(unsafe.Pointer(unsafe.SliceData(m.aligned(off, 4))))
}

func (m HostMemory) word64(off int) *uint64 {
	return (*uint64)(unsafe.Pointer(unsafe.SliceData(m.aligned(off, 8))))
}

// aligned is the word of that size; it panics where there is none, as indexing
// a slice does.
func (m HostMemory) aligned(off, size int) []byte {
	if off%size != 0 {
		panic("gpu: offset into host memory is not aligned to the word")
	}
	return slices.Clip(m.Bytes)[off : off+size]
}
