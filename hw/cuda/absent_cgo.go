//go:build gpu && linux && !cgo

package cuda

const absent = "this build has the gpu tag but no cgo (CGO_ENABLED=1 and a C compiler)"
