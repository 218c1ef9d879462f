//go:build !(gpu && linux && cgo)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

func TestAbsent(t *testing.T) {
	d, err := Open(Options{})
	require.Nil(t, d)
	require.ErrorIs(t, err, gpu.ErrNotBuiltIn)
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.EqualError(t, err, "no GPU support built in: "+absent)
}
