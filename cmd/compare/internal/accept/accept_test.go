package accept

import (
	"bytes"
	"flag"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu/gputest"
	"example.com/tandem/hw"
	"example.com/tandem/sim"
	"example.com/tandem/sim/nvshmem"
	"example.com/tandem/sim/ptx"
	"example.com/tandem/sim/tandemnvls"
)

var (
	dir   = flag.String("bundle", "", "where TestAccept leaves its vectors")
	whole = flag.Bool("accept", false, "TestAccept takes its minute")
)

// model is the simulator.
func model() *sim.Backend { return sim.New(nvshmem.Family{}, tandemnvls.Family{}) }

// TestAccept is the acceptance on a virtual machine.
func TestAccept(t *testing.T) {
	if testing.Short() {
		t.Skip("tens of seconds; the test runs without -short")
	}
	if *whole && gputest.Meant() != "" {
		t.Skip("there are GPUs here: TestAcceptGPU is about them")
	}
	// Longer rows take minutes here, and seconds on a GPU.
	most, probed := int64(4*1024), int64(0)
	if *whole {
		most, probed = 2*131105, 256
	}
	if os.Getenv("TANDEM_EXHAUSTIVE") != "" {
		most = math.MaxInt64 // all rows; with no limit the calls around them would be a GPU's, hours here
	}
	d := ptx.Open(ptx.Options{Devices: 8, Seed: 1})
	b := hw.New("ptx", d)
	var out bytes.Buffer
	s, err := Run(t.Context(), Options{HW: b, Sim: model(), Driver: d, Most: most, Probe: probed, ProbeTypes: []api.DType{api.F32}, Params: "threads=32", Dir: *dir, Out: &out, Getenv: os.Getenv})
	t.Log(out.String())
	require.NoError(t, err)
	require.Empty(t, s.Problems)
	require.Len(t, s.Rows, 22)
	require.NoError(t, b.Close())
	require.NoError(t, d.Close())
}

// TestRows: the table is whole.
func TestRows(t *testing.T) {
	rows, err := Rows()
	require.NoError(t, err)
	require.Len(t, rows, 22)
	var before, after int64
	for _, r := range rows {
		before, after = before+r.Before, after+r.After
		require.NoError(t, r.Call.Validate())
	}
	require.Equal(t, int64(2113634), before)
	require.Zero(t, after)
}
