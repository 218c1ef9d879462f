package cuda

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

// mockLibrary is a library that exists in this test only.
type mockLibrary struct {
	open    error
	missing map[string]bool
	version int
	code    gpu.Code

	opened string
	looked []string
	env    [2]string // when it was started
}

func (m *mockLibrary) Open(name string) error {
	m.opened = name
	return m.open
}

func (m *mockLibrary) Lookup(symbol string) (uintptr, error) {
	m.looked = append(m.looked, symbol)
	if m.missing[symbol] {
		return 0, errors.New("undefined symbol: " + symbol)
	}
	return uintptr(100 + len(m.looked)), nil
}

func (m *mockLibrary) Start(cuInit, cuDriverGetVersion uintptr, min int) (int, gpu.Code) {
	m.env = [2]string{os.Getenv("CUDA_MODULE_LOADING"), os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS")}
	if cuInit != 101 || cuDriverGetVersion != 102 || min != MinVersion {
		return 0, gpu.InvalidValue
	}
	return m.version, m.code
}

func TestLoad(t *testing.T) {
	symbols := []string{"cuInit", "cuMemAlloc_v2", "cuMulticastCreate"}
	for name, c := range map[string]struct {
		lib  mockLibrary
		want error
		text string
	}{
		"good":             {lib: mockLibrary{version: 13000}},
		"oldest that does": {lib: mockLibrary{version: MinVersion}},
		"optional missing": {lib: mockLibrary{version: 13000, missing: map[string]bool{"cuMulticastCreate": true}}},
		"no library": {lib: mockLibrary{open: errors.New("libcuda.so.1: cannot open shared object file: No such file or directory")},
			want: gpu.ErrNoDriver, text: "no CUDA driver: libcuda.so.1: cannot open shared object file: No such file or directory"},
		"another library": {lib: mockLibrary{missing: map[string]bool{"cuInit": true}},
			want: gpu.ErrNoDriver, text: "no CUDA driver: libcuda.so.1 is no CUDA driver: undefined symbol: cuInit"},
		"too old": {lib: mockLibrary{version: 12020},
			want: gpu.ErrDriverTooOld, text: "CUDA driver too old: libcuda.so.1 supports CUDA 12.2, 12.4 or later is needed"},
		"too old inside": {lib: mockLibrary{version: 13000, missing: map[string]bool{"cuMemAlloc_v2": true}},
			want: gpu.ErrDriverTooOld, text: "CUDA driver too old: libcuda.so.1 (CUDA 13.0) has no cuMemAlloc_v2: undefined symbol: cuMemAlloc_v2"},
		"no device": {lib: mockLibrary{version: 13000, code: gpu.NoDevice},
			want: gpu.ErrNoDevice, text: "cuInit: CUDA_ERROR_NO_DEVICE (100): libcuda.so.1: no GPU is visible; CUDA_VISIBLE_DEVICES, the container's devices and nvidia-smi tell why"},
		"any other": {lib: mockLibrary{version: 13000, code: 304},
			want: gpu.ErrUnavailable, text: "cuInit: CUresult 304 (304): libcuda.so.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CUDA_MODULE_LOADING", "LAZY")
			t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
			addresses, version, err := load(&c.lib, "libcuda.so.1", symbols, 2)
			require.Equal(t, "libcuda.so.1", c.lib.opened)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
				require.ErrorIs(t, err, gpu.ErrUnavailable)
				require.EqualError(t, err, c.text)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.lib.version, version)
			require.Equal(t, [2]string{"EAGER", "32"}, c.lib.env, "set before the start")
			want := []uintptr{103, 104, 105}
			if c.lib.missing != nil {
				want[2] = 0
			}
			require.Equal(t, want, addresses)
		})
	}
}

func TestOptionDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	require.Equal(t, "libcuda.so.1", o.Library)
	require.Equal(t, os.TempDir(), o.LockDir)
	t.Setenv("TANDEM_TEST_OF_GETENV", "x")
	require.Equal(t, "x", o.Getenv("TANDEM_TEST_OF_GETENV"))
}
