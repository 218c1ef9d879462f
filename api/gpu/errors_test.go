package gpu

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err  *Error
		is   error
		text string
	}{
		{&Error{Call: "cuMemAlloc", Code: OutOfMemory, Name: "CUDA_ERROR_OUT_OF_MEMORY", Detail: "1 byte"}, ErrOutOfMemory, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): 1 byte"},
		{&Error{Call: "cuStreamQuery", Code: MisalignedAddress}, ErrContextLost, "cuStreamQuery: CUDA_ERROR_MISALIGNED_ADDRESS (716)"},
		{&Error{Call: "x", Code: 12345}, ErrDriver, "x: CUresult 12345 (12345)"},
		{&Error{Call: "x", Code: Unknown, Err: ErrUnavailable}, ErrUnavailable, "x: CUDA_ERROR_UNKNOWN (999)"},
		{Refuse("cuMemFree", ErrBusy, "stream %d", 3), ErrBusy, "cuMemFree: device busy: stream 3"},
		{Refuse("", ErrNoDriver, "gone"), ErrNoDriver, "no CUDA driver: gone"},
	} {
		require.EqualError(t, c.err, c.text)
		require.ErrorIs(t, c.err, c.is)
		require.Equal(t, c.text, fmt.Sprintf("%v", c.err))
		require.Equal(t, c.text, fmt.Sprintf("%s", c.err))
		require.Equal(t, fmt.Sprintf("%q", c.text), fmt.Sprintf("%q", c.err))
	}
	e := &Error{Call: "x", Code: InvalidPTX, Log: "line 1\nline 2"}
	require.Equal(t, "x: CUDA_ERROR_INVALID_PTX (218)", fmt.Sprintf("%v", e))
	require.Equal(t, "x: CUDA_ERROR_INVALID_PTX (218)\nline 1\nline 2", fmt.Sprintf("%+v", e))
	for _, s := range []error{ErrNotBuiltIn, ErrNoDriver, ErrDriverTooOld, ErrNoDevice} {
		require.ErrorIs(t, Refuse("", s, ""), api.ErrUnavailable)
		require.False(t, errors.Is(s, ErrNotBuiltIn) && s != ErrNotBuiltIn)
	}
	require.True(t, (&Error{Code: IllegalAddress}).Sticky())
	require.False(t, (&Error{Code: OutOfMemory}).Sticky())
}

func TestCodes(t *testing.T) {
	for c, i := range codes {
		require.True(t, strings.HasPrefix(i.name, "CUDA_"), i.name)
		require.Equal(t, i.sticky, errors.Is(i.is, ErrContextLost), "%s: a sticky code is one that loses the context", i.name)
		require.Equal(t, c == Success, i.is == nil)
	}
	require.ErrorIs(t, Code(777).Sentinel(), ErrDriver)
}

func TestMulticastPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		asked bool
		env   map[string]string
		off   string
	}{
		"by default":      {off: "multicast: multicast is off: it was not asked for (multicast=on or TANDEM_MULTICAST=1 does)"},
		"asked":           {asked: true},
		"by variable":     {env: map[string]string{"TANDEM_MULTICAST": "1"}},
		"by a bad word":   {env: map[string]string{"TANDEM_MULTICAST": "true"}, off: "not asked for"},
		"NCCL off":        {asked: true, env: map[string]string{"NCCL_NVLS_ENABLE": "0"}, off: "the environment has NCCL_NVLS_ENABLE=0"},
		"NCCL on":         {asked: true, env: map[string]string{"NCCL_NVLS_ENABLE": "1"}},
		"NCCL auto":       {asked: true, env: map[string]string{"NCCL_NVLS_ENABLE": "2"}},
		"NCCL unclear":    {asked: true, env: map[string]string{"NCCL_NVLS_ENABLE": "off"}, off: "NCCL_NVLS_ENABLE=off"},
		"NVSHMEM off":     {asked: true, env: map[string]string{"NVSHMEM_DISABLE_NVLS": "1"}, off: "NVSHMEM_DISABLE_NVLS=1"},
		"NVSHMEM unclear": {asked: true, env: map[string]string{"NVSHMEM_DISABLE_NVLS": " yes"}, off: "NVSHMEM_DISABLE_NVLS=yes"},
		"NVSHMEM on":      {asked: true, env: map[string]string{"NVSHMEM_DISABLE_NVLS": "0"}},
		"PyTorch off":     {asked: true, env: map[string]string{"TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}, off: "TORCH_SYMM_MEM_DISABLE_MULTICAST=1"},
	} {
		err := MulticastPolicy(c.asked, func(n string) string { return c.env[n] })
		if c.off == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, ErrMulticastOff, name)
		require.ErrorContains(t, err, c.off, name)
	}
	// A child with the switches stays off whatever it is asked.
	child := map[string]string{}
	for _, kv := range MulticastOffEnv() {
		name, value, ok := strings.Cut(kv, "=")
		require.True(t, ok)
		child[name] = value
	}
	require.Len(t, child, 4)
	for name, value := range child {
		one := func(n string) string { return map[string]string{name: value}[n] }
		require.Equal(t, name != MulticastEnv, MulticastPolicy(true, one) != nil, name)
	}
	require.Error(t, MulticastPolicy(true, func(n string) string { return child[n] }))
}
