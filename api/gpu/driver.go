package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Driver is a GPU driver: a real one or a virtual one.
type Driver interface {
	// Name says what it is in a few words: "CUDA 13.0".
	Name() string
	// Devices are the GPUs it can see, by ordinal; at least one.
	Devices() []Device
	// Clock is the time that deadlines are counted in.
	Clock() Clock
	// Counts says what lives and what is quarantined, in all contexts.
	Counts() Counts
	// Close ends the use of the driver. It is a *LeakError where something
	// still lives, and the driver stays open then.
	Close() error
}

// Device is one GPU.
type Device interface {
	Ordinal() int
	Info() Info
	// Peer says how this device reaches the memory of another.
	Peer(other Device) (PeerInfo, error)
	// Open gives a context of the device: the primary one on a real driver.
	// Each Context is closed by itself.
	Open() (Context, error)
	// Lock keeps other processes off the device until unlock, so that tests
	// that run side by side do not share it. It waits until ctx ends. It is
	// advisory: only users of this method see it.
	Lock(ctx context.Context) (unlock func() error, err error)
}

// UUID names a GPU across processes and machines.
type UUID [16]byte

// String is the form that nvidia-smi prints: GPU-8-4-4-4-12.
func (u UUID) String() string {
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// Info is what is known of a device without opening it.
type Info struct {
	Name         string
	UUID         UUID
	PCI          string // 0000:1b:00.0
	Major, Minor int    // compute capability
	SMs          int    // of the whole device; Context.SMs is what a launch gets
	ClockKHz     int    // highest SM clock
	Memory       uint64 // bytes
	L2           int    // bytes

	WarpSize           int
	MaxThreadsPerBlock int
	MaxThreadsPerSM    int
	MaxBlocksPerSM     int
	MaxBlock           Dim3
	MaxGrid            Dim3
	RegistersPerSM     int // 32-bit
	SharedPerSM        int // bytes
	SharedPerBlock     int // bytes, without opting in
	SharedPerBlockMax  int // bytes, after Function.SetDynamicShared

	// What the driver's attributes say. They promise nothing: whether fabric
	// handles work is found by create, export and import.
	CooperativeLaunch bool
	VirtualMemory     bool
	FileHandles       bool
	FabricHandles     bool
	Multicast         bool
	HostMapping       bool
	UnifiedAddresses  bool
	// Exclusive says that only one process may open the device; Prohibited
	// that none may.
	Exclusive, Prohibited bool
}

// PeerInfo says how a device reaches another's memory.
type PeerInfo struct {
	Access  bool // loads and stores
	Atomics bool // all native atomics over the link
	Rank    int  // relative performance of the link; lower is faster
}

// AtLeast reports whether the compute capability is major.minor or higher.
func (i Info) AtLeast(major, minor int) bool {
	return i.Major > major || i.Major == major && i.Minor >= minor
}

// LockAll locks several devices, in the order of their UUIDs so that two
// processes that want the same ones cannot wait for each other. A device that
// is named twice is locked once.
func LockAll(ctx context.Context, devices ...Device) (unlock func() error, err error) {
	order := slices.Clone(devices)
	key := func(d Device) string { return d.Info().UUID.String() }
	slices.SortStableFunc(order, func(a, b Device) int { return cmp.Compare(key(a), key(b)) })
	order = slices.CompactFunc(order, func(a, b Device) bool { return key(a) == key(b) })
	var held []func() error
	release := func() error {
		var errs []error
		for _, u := range slices.Backward(held) {
			errs = append(errs, u())
		}
		held = nil
		return errors.Join(errs...)
	}
	for _, d := range order {
		u, err := d.Lock(ctx)
		if err != nil {
			return nil, errors.Join(err, release())
		}
		held = append(held, u)
	}
	return release, nil
}
