package accept

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/hw"
	"example.com/tandem/sim"
	"example.com/tandem/sim/nvshmem"
	"example.com/tandem/sim/ptx"
	"example.com/tandem/sim/tandemnvls"
)

var dir = flag.String("bundle", "", "where TestAccept leaves its vectors")

// model is the simulator.
func model() *sim.Backend { return sim.New(nvshmem.Family{}, tandemnvls.Family{}) }

// TestAccept is the acceptance on a virtual machine.
func TestAccept(t *testing.T) {
	if testing.Short() {
		t.Skip("tens of seconds; the test runs without -short")
	}
	d := ptx.Open(ptx.Options{Devices: 8, Seed: 1})
	b := hw.New("ptx", d)
	var out bytes.Buffer
	s, err := Run(t.Context(), Options{HW: b, Sim: model(), Driver: d, Scaled: true, Params: "threads=32", Dir: *dir, Out: &out, Getenv: os.Getenv})
	t.Log(out.String())
	require.NoError(t, err)
	require.Empty(t, s.Problems)
	require.Len(t, s.Rows, 22)
	require.NoError(t, b.Close())
	require.NoError(t, d.Close())
}

// TestRows: the table is whole, and shorter calls keep its remainders.
func TestRows(t *testing.T) {
	full, err := Rows(false)
	require.NoError(t, err)
	short, err := Rows(true)
	require.NoError(t, err)
	require.Len(t, full, 22)
	for i := range full {
		require.Equal(t, full[i].Call.Count, short[i].Reported)
		require.Equal(t, full[i].Call.Count%64, short[i].Call.Count%64)
		require.LessOrEqual(t, short[i].Call.Count, int64(1<<18+8))
	}
}
