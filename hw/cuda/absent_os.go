//go:build gpu && !linux

package cuda

const absent = "the CUDA driver is used on Linux only"
