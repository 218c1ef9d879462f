package gpubook

import (
	"fmt"

	"example.com/tandem/api/gpu"
)

// Info is what a device says of itself: the shape of a Hopper GPU, with a clock of
// 1 GHz and without multicast. mark is the beginning of its UUID.
func Info(name string, ordinal int, mark ...byte) gpu.Info {
	uuid := gpu.UUID{15: byte(ordinal)}
	copy(uuid[:15], mark)
	return gpu.Info{
		Name: fmt.Sprintf("%s %d", name, ordinal), UUID: uuid, PCI: fmt.Sprintf("0000:%02x:00.0", ordinal+1),
		Major: 9, ClockKHz: 1_000_000, L2: 1 << 20,
		WarpSize: 32, MaxThreadsPerBlock: 1024, MaxThreadsPerSM: 2048, MaxBlocksPerSM: 32,
		MaxBlock: gpu.Dim3{X: 1024, Y: 1024, Z: 64}, MaxGrid: gpu.Dim3{X: 1<<31 - 1, Y: 65535, Z: 65535},
		RegistersPerSM: 65536, SharedPerSM: 228 << 10, SharedPerBlock: 48 << 10, SharedPerBlockMax: 227 << 10,
		CooperativeLaunch: true, VirtualMemory: true, FileHandles: true, FabricHandles: true, HostMapping: true, UnifiedAddresses: true,
	}
}

// Resident is how many blocks of so many threads, each with so many bytes of
// shared memory, one multiprocessor holds.
func Resident(i gpu.Info, threads, shared int) int {
	n := min(i.MaxBlocksPerSM, i.MaxThreadsPerSM/threads)
	if shared > 0 {
		n = min(n, i.SharedPerSM/shared)
	}
	return n
}

// CheckFill refuses fills of n words of size bytes that no driver takes.
func CheckFill(call string, dst gpu.Ptr, size, n uint64) error {
	if uint64(dst)%size != 0 || n > 1<<60 {
		return gpu.Refuse(call, gpu.ErrInvalid, "%d words at %#x: an address that is no multiple of %d, or too many", n, uint64(dst), size)
	}
	return nil
}

// Fill repeats a pattern all over b, whose length is a multiple of the pattern's.
func Fill(b, pattern []byte) {
	copy(b, pattern)
	for done := len(pattern); done < len(b); done *= 2 {
		copy(b[done:], b[:done])
	}
}
