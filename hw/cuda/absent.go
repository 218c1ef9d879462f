//go:build !(gpu && linux && cgo)

package cuda

import "example.com/tandem/api/gpu"

// Open gives gpu.ErrNotBuiltIn, and says what this build lacks.
func Open(Options) (gpu.Driver, error) {
	return nil, gpu.Refuse("", gpu.ErrNotBuiltIn, "%s", absent)
}
