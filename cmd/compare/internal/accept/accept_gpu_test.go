//go:build gpu

package accept

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
	"example.com/tandem/hw"
	"example.com/tandem/hw/cuda"
)

// TestAcceptGPU is the acceptance on the GPUs there are, with multicast emulated
// unless TANDEM_ACCEPT_NATIVE=1 asks for it and the environment allows it.
func TestAcceptGPU(t *testing.T) {
	o := cuda.Options{}
	params := ""
	if os.Getenv("TANDEM_ACCEPT_NATIVE") == "1" {
		o.Multicast, params = true, "multicast=on"
	}
	d := gputest.Open(t, func() (gpu.Driver, error) { return cuda.Open(o) })
	b := hw.New("hw", d)
	defer func() { require.NoError(t, b.Close()) }()
	s, err := Run(t.Context(), Options{HW: b, Sim: model(), Driver: d, Probe: 32768, Bench: []int64{1 << 10, 64 << 10, 1 << 20, 16 << 20}, Params: params, Dir: *dir, Out: os.Stdout, Getenv: os.Getenv})
	require.NoError(t, err)
	require.Empty(t, s.Problems)
	// Nothing is made to find out whether multicast works.
	_, err = b.Open(t.Context(), api.Spec{Backend: "hw", Implementation: "cascade", Version: "pr131", Params: map[string]string{"multicast": "on"}}, api.TeamConfig{Ranks: 2})
	if params == "" {
		require.ErrorIs(t, err, api.ErrUnavailable)
	}
}
