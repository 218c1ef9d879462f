//go:build gpu && linux && cgo

package cuda

/*
#include "abi.h"

#cgo noescape call_cuDeviceGet
#cgo nocallback call_cuDeviceGet
#cgo noescape call_cuDeviceGetName
#cgo nocallback call_cuDeviceGetName
#cgo noescape call_cuDeviceGetUuid_v2
#cgo nocallback call_cuDeviceGetUuid_v2
#cgo noescape call_cuDeviceGetPCIBusId
#cgo nocallback call_cuDeviceGetPCIBusId
#cgo noescape call_cuDeviceTotalMem_v2
#cgo nocallback call_cuDeviceTotalMem_v2
#cgo noescape call_cuDeviceGetAttribute
#cgo nocallback call_cuDeviceGetAttribute
#cgo noescape call_cuDeviceCanAccessPeer
#cgo nocallback call_cuDeviceCanAccessPeer
#cgo noescape call_cuDeviceGetP2PAttribute
#cgo nocallback call_cuDeviceGetP2PAttribute
*/
import "C"

import (
	"context"
	"os"
	"unsafe"

	"example.com/tandem/api/gpu"
)

// device is one GPU.
type device struct {
	d       *driver
	ordinal int
	dev     C.CUdevice
	info    gpu.Info
	locking chan struct{} // full while a goroutine takes the lock
}

// attributes are numbers of CUdevice_attribute, and where their values go.
func attributes(i *gpu.Info, mode *int, flags *[7]int) map[int]*int {
	return map[int]*int{
		1: &i.MaxThreadsPerBlock, 8: &i.SharedPerBlock, 10: &i.WarpSize, 13: &i.ClockKHz,
		16: &i.SMs, 20: mode, 38: &i.L2, 39: &i.MaxThreadsPerSM, 75: &i.Major, 76: &i.Minor,
		81: &i.SharedPerSM, 82: &i.RegistersPerSM, 97: &i.SharedPerBlockMax, 106: &i.MaxBlocksPerSM,
		95: &flags[0], 102: &flags[1], 103: &flags[2], 128: &flags[3], 132: &flags[4], 19: &flags[5], 41: &flags[6],
	}
}

// Compute modes.
const (
	modeProhibited = 2
	modeExclusive  = 3
)

func (d *driver) newDevice(ordinal int) (*device, error) {
	v := &device{d: d, ordinal: ordinal, locking: make(chan struct{}, 1)}
	if rc := C.call_cuDeviceGet(d.table, &v.dev, C.int(ordinal)); rc != 0 {
		return nil, d.fail(rc, "cuDeviceGet", "GPU %d", ordinal)
	}
	i := &v.info
	var mode int
	var flags [7]int
	for attribute, to := range attributes(i, &mode, &flags) {
		if err := v.attribute(attribute, to); err != nil {
			return nil, err
		}
	}
	for first, dim := range map[int]*gpu.Dim3{2: &i.MaxBlock, 5: &i.MaxGrid} {
		for k, to := range []*uint32{&dim.X, &dim.Y, &dim.Z} {
			var n int
			if err := v.attribute(first+k, &n); err != nil {
				return nil, err
			}
			*to = uint32(n)
		}
	}
	for k, to := range []*bool{&i.CooperativeLaunch, &i.VirtualMemory, &i.FileHandles, &i.FabricHandles, &i.Multicast, &i.HostMapping, &i.UnifiedAddresses} {
		*to = flags[k] != 0
	}
	i.Exclusive, i.Prohibited = mode == modeExclusive, mode == modeProhibited
	return v, v.identify()
}

func (v *device) attribute(attribute int, to *int) error {
	var n C.int
	if rc := C.call_cuDeviceGetAttribute(v.d.table, &n, C.int(attribute), v.dev); rc != 0 {
		return v.d.fail(rc, "cuDeviceGetAttribute", "attribute %d of GPU %d", attribute, v.ordinal)
	}
	*to = int(n)
	return nil
}

// identify fills in what is no attribute.
func (v *device) identify() error {
	var name [256]C.char
	if rc := C.call_cuDeviceGetName(v.d.table, &name[0], C.int(len(name)), v.dev); rc != 0 {
		return v.d.fail(rc, "cuDeviceGetName", "GPU %d", v.ordinal)
	}
	v.info.Name = C.GoString(&name[0])
	if rc := C.call_cuDeviceGetUuid_v2(v.d.table, (*C.uchar)(&v.info.UUID[0]), v.dev); rc != 0 {
		return v.d.fail(rc, "cuDeviceGetUuid", "GPU %d", v.ordinal)
	}
	if rc := C.call_cuDeviceGetPCIBusId(v.d.table, &name[0], C.int(len(name)), v.dev); rc != 0 {
		return v.d.fail(rc, "cuDeviceGetPCIBusId", "GPU %d", v.ordinal)
	}
	v.info.PCI = C.GoString(&name[0])
	if rc := C.call_cuDeviceTotalMem_v2(v.d.table, (*C.size_t)(unsafe.Pointer(&v.info.Memory)), v.dev); rc != 0 {
		return v.d.fail(rc, "cuDeviceTotalMem", "GPU %d", v.ordinal)
	}
	return nil
}

// Ordinal is the number among the visible devices.
func (v *device) Ordinal() int { return v.ordinal }

// Info was read when the driver was opened.
func (v *device) Info() gpu.Info { return v.info }

// Peer asks how this device reaches another's memory.
func (v *device) Peer(other gpu.Device) (gpu.PeerInfo, error) {
	o, err := v.d.own("cuDeviceGetP2PAttribute", other)
	if err != nil {
		return gpu.PeerInfo{}, err
	}
	if o.ordinal == v.ordinal {
		return gpu.PeerInfo{Access: true, Atomics: true}, nil
	}
	var can, rank, atomics C.int
	if rc := C.call_cuDeviceCanAccessPeer(v.d.table, &can, v.dev, o.dev); rc != 0 {
		return gpu.PeerInfo{}, v.d.fail(rc, "cuDeviceCanAccessPeer", "GPU %d to GPU %d", v.ordinal, o.ordinal)
	}
	for attribute, to := range map[C.int]*C.int{1: &rank, 3: &atomics} {
		if rc := C.call_cuDeviceGetP2PAttribute(v.d.table, to, attribute, v.dev, o.dev); rc != 0 {
			return gpu.PeerInfo{}, v.d.fail(rc, "cuDeviceGetP2PAttribute", "attribute %d, GPU %d to GPU %d", attribute, v.ordinal, o.ordinal)
		}
	}
	return gpu.PeerInfo{Access: flag(can), Atomics: flag(atomics), Rank: int(rank)}, nil
}

// own is the device behind the interface, if it is one of this driver's.
func (d *driver) own(call string, dev gpu.Device) (*device, error) {
	v, ok := dev.(*device)
	if !ok || v == nil || v.d != d {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "the device is another driver's")
	}
	return v, nil
}

// heldLock is a lock that this driver holds, and how often.
type heldLock struct {
	file  *os.File
	times int
	entry *gpu.Entry
}

// Lock takes the file lock of the GPU's UUID. Within one driver locks nest.
func (v *device) Lock(ctx context.Context) (func() error, error) {
	if v.d.opts.NoLocks {
		return func() error { return nil }, nil
	}
	if err := v.d.open("lock"); err != nil {
		return nil, err
	}
	select {
	case v.locking <- struct{}{}:
	case <-ctx.Done():
		return nil, gpu.Refuse("lock", gpu.ErrDeadline, "%v is being locked by this process: %v", v.info.UUID, context.Cause(ctx))
	}
	defer func() { <-v.locking }()
	if !v.nest() {
		f, err := lockGPU(ctx, v.d.opts.LockDir, v.info.UUID)
		if err != nil {
			return nil, err
		}
		v.d.mu.Lock()
		v.d.locks[v.info.UUID] = &heldLock{file: f, times: 1, entry: v.d.ledger.Add(gpu.KindLock, v.info.UUID.String)}
		v.d.mu.Unlock()
	}
	once := false
	return func() error {
		v.d.mu.Lock()
		defer v.d.mu.Unlock()
		if once {
			return nil
		}
		once = true
		h := v.d.locks[v.info.UUID]
		if h.times--; h.times > 0 {
			return nil
		}
		delete(v.d.locks, v.info.UUID)
		h.entry.Release()
		return h.file.Close() // and with the file goes the lock
	}, nil
}

// nest counts another use of a lock that is already held.
func (v *device) nest() bool {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	h := v.d.locks[v.info.UUID]
	if h != nil {
		h.times++
	}
	return h != nil
}
