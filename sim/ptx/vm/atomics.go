package vm

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// Words of pinned memory are read and written by the host while a kernel runs,
// so aligned words are accessed atomically.

func aligned(p []byte, n uintptr) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(p)))%n == 0 }

// little says whether the machine is little-endian; elsewhere words go byte by
// byte.
var little = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

func load32(p []byte) uint32 {
	if little && aligned(p[:4], 4) {
		return atomic.LoadUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(p))))
	}
	return binary.LittleEndian.Uint32(p)
}

func load64(p []byte) uint64 {
	if little && aligned(p[:8], 8) {
		return atomic.LoadUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(p))))
	}
	return binary.LittleEndian.Uint64(p)
}

func store32(p []byte, v uint32) {
	if little && aligned(p[:4], 4) {
		atomic.StoreUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(p))), v)
		return
	}
	binary.LittleEndian.PutUint32(p, v)
}

func store64(p []byte, v uint64) {
	if little && aligned(p[:8], 8) {
		atomic.StoreUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(p))), v)
		return
	}
	binary.LittleEndian.PutUint64(p, v)
}
