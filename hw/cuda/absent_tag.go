//go:build !gpu

package cuda

const absent = "this build has no gpu tag (go build -tags gpu, on Linux with cgo)"
