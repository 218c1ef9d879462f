package gpu

import "context"

// Share is a set of ways in which memory can travel to another process.
type Share uint8

// The ways. NotShared memory stays in the process.
const (
	NotShared  Share = 0
	ByFile     Share = 1 << 0 // a POSIX file descriptor, on one machine
	ByFabric   Share = 1 << 1 // a fabric handle, across machines of one NVLink domain
	shareLimit Share = 1 << 2
)

// Valid reports whether s is a set of known ways.
func (s Share) Valid() bool { return s < shareLimit }

// String is the ways in words.
func (s Share) String() string {
	return [...]string{"not shared", "by file", "by fabric", "by file and fabric"}[min(s, shareLimit-1)]
}

// FabricHandle names memory across the machines of one NVLink domain.
type FabricHandle [64]byte

// Descriptor is a file descriptor that names memory on this machine. It is
// counted as live until Close; a copy sent to another process is not.
type Descriptor interface {
	FD() int
	Close() error
}

// VirtualMemory is the part of a context that separates memory from addresses,
// so that memory can travel between processes.
type VirtualMemory interface {
	// Granularity is what sizes are rounded up to.
	Granularity(share Share) (uint64, error)
	// Create gives device memory without an address. The size is a multiple
	// of the granularity.
	Create(bytes uint64, share Share) (Physical, error)
	// ImportFile gives the memory behind a descriptor, which stays the
	// caller's; bytes is its size, which the sender says.
	ImportFile(fd int, bytes uint64) (Physical, error)
	ImportFabric(h FabricHandle, bytes uint64) (Physical, error)
	// Map gives the memory an address for reading and writing from this
	// device and from the others named.
	Map(p Physical, others ...Device) (Ptr, error)
	// Unmap ends what Map and MulticastObject.Map gave; ErrBusy as for
	// Context.Free.
	Unmap(p Ptr) error
}

// Physical is memory without an address.
type Physical interface {
	Bytes() uint64
	Share() Share
	ExportFile() (Descriptor, error)
	ExportFabric() (FabricHandle, error)
	// Release gives the handle back. Mappings and other processes keep the
	// memory alive.
	Release() error
}

// Multicaster makes multicast objects. The order of calls matters, and a
// mistake can block the whole NVLink domain: create on one rank; export and
// import; AddDevice on every rank; agree that all succeeded; only then Bind and
// Map; agree again; clear and synchronise before the first use.
type Multicaster interface {
	// Granularity is what sizes and offsets are multiples of, at least and
	// for best speed.
	Granularity(o MulticastOptions) (minimum, recommended uint64, err error)
	Create(o MulticastOptions) (MulticastObject, error)
	ImportFile(fd int, o MulticastOptions) (MulticastObject, error)
	ImportFabric(h FabricHandle, o MulticastOptions) (MulticastObject, error)
}

// MulticastOptions describe a multicast object, alike on all ranks.
type MulticastOptions struct {
	Devices int    // that will be added
	Bytes   uint64 // a device
	Share   Share
}

// MulticastObject is a range that is bound to memory on each of several
// devices: a store reaches all, a load reduces over all.
type MulticastObject interface {
	Physical
	AddDevice(d Device) error
	// Bind puts bytes of memory, from an offset in it, behind the object at
	// an offset. It blocks until all devices were added; when ctx ends first
	// the call is abandoned with its thread, and the error is ErrDeadline.
	Bind(ctx context.Context, offset uint64, memory Physical, from, bytes uint64) error
	Unbind(d Device, offset, bytes uint64) error
	// Map gives the object an address for multimem instructions of that
	// context. It blocks as Bind does. Context.Unmap ends it.
	Map(ctx context.Context, c Context) (Ptr, error)
}
