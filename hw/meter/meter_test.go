package meter

import (
	"context"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/hwtest"
	"example.com/tandem/hw/kernels"
	"example.com/tandem/hw/kernels/ptxcheck"
)

// TestPTX holds the module to the rules of all kernels.
func TestPTX(t *testing.T) {
	require.Empty(t, ptxcheck.Check(kernels.Meter))
}

// TestOffsets: the page here is the page of meter.cu.
func TestOffsets(t *testing.T) {
	src, err := kernels.Sources.ReadFile("src/meter.cu")
	require.NoError(t, err)
	for name, want := range map[string]int{"MeterRank": pageRank, "MeterWorld": pageWorld, "MeterLimit": pageLimit, "MeterFault": pageFault, "MeterPeers": pagePeers} {
		m := regexp.MustCompile(name + ` = (\d+)`).FindSubmatch(src)
		require.NotNil(t, m, name)
		n, err := strconv.Atoi(string(m[1]))
		require.NoError(t, err)
		require.Equal(t, want, n, name)
	}
	require.Contains(t, string(src), "MeterFlags = 64 + 128 * 8")
	require.Equal(t, 64+128*8, pageFlags)
	require.Contains(t, string(src), fmt.Sprintf("FlagPeers = %d ", flagPeers))
}

func rig(t *testing.T, n int) (*hwtest.Driver, *Rig, []gpu.Launch) {
	d := hwtest.New(n)
	var seen []gpu.Launch
	note := func(_ *hwtest.Driver, _ int, l gpu.Launch) { seen = append(seen, l) }
	d.Kernels = map[string]hwtest.Kernel{"meter_barrier": note, "meter_flag": note, "meter_empty": note, "meter_spin": note, "meter_copy": note}
	word := []gpu.Param{{Offset: 0, Size: 8}}
	d.ParamsOf = map[string][]gpu.Param{"meter_barrier": word, "meter_flag": {{Offset: 0, Size: 128}, {Offset: 128, Size: 8}, {Offset: 136, Size: 8}, {Offset: 144, Size: 4}}, "meter_empty": word, "meter_spin": word,
		"meter_copy": {{Offset: 0, Size: 8}, {Offset: 8, Size: 8}, {Offset: 16, Size: 8}, {Offset: 24, Size: 4}}}
	var gpus []GPU
	for _, dev := range d.Devices() {
		c, err := dev.Open()
		require.NoError(t, err)
		s, err := c.NewStream(gpu.StreamOptions{})
		require.NoError(t, err)
		mod, err := c.LoadModule("meter.ptx", nil)
		require.NoError(t, err)
		gpus = append(gpus, GPU{Context: c, Stream: s, Free: c.Free, Function: func(_ string, _ []byte, name string) (gpu.Function, error) { return mod.Function(name) }})
		t.Cleanup(func() {
			require.NoError(t, mod.Unload())
			require.NoError(t, s.Destroy())
			require.NoError(t, c.Close())
		})
	}
	r, err := New(context.Background(), d.Clock(), gpus, 3*time.Millisecond)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, r.Barrier(i))
		require.NoError(t, r.Empty(i))
		require.NoError(t, r.Spin(i, 5*time.Microsecond))
		require.NoError(t, r.Copy(i, r.pages[i], r.pages[(i+1)%n], 64))
		require.NoError(t, r.Flag(i, 7))
		require.ErrorIs(t, r.Copy(i, r.pages[i], r.pages[i], 8), gpu.ErrInvalid)
	}
	return d, r, seen
}

// TestRig: pages name all GPUs, and launches have the arguments they should.
func TestRig(t *testing.T) {
	d, r, seen := rig(t, 3)
	le := binary.LittleEndian
	for i, p := range r.pages {
		b := d.Bytes(p)
		require.Equal(t, uint32(i), le.Uint32(b[pageRank:]))
		require.Equal(t, uint32(3), le.Uint32(b[pageWorld:]))
		require.Equal(t, uint64(3_000_000), le.Uint64(b[pageLimit:]), "cycles at 1 GHz")
		require.Equal(t, uint64(r.fault.Ptr), le.Uint64(b[pageFault:]))
		for k, q := range r.pages {
			require.Equal(t, uint64(q), le.Uint64(b[pagePeers+8*k:]))
		}
		require.Zero(t, le.Uint64(b[0:]), "no barrier has been")
		require.Len(t, b, pageBytes)
	}
	require.Len(t, seen, 15)
	// GPU 1 of 3 waits at the slots of 0 and 2 in its page, and writes at its own
	// in theirs, at the odd ones.
	flag := seen[9].Args.Bytes()
	for k, want := range map[int]gpu.Ptr{0: r.pages[1].Add(pageFlags + 4), 1: r.pages[1].Add(pageFlags + 20), 8: r.pages[0].Add(pageFlags + 12), 9: r.pages[2].Add(pageFlags + 12), 10: 0} {
		require.Equal(t, uint64(want), le.Uint64(flag[8*k:]), "%d", k)
	}
	require.Equal(t, uint32(2), le.Uint32(flag[144:]))
	require.Equal(t, uint64(r.pages[0]), le.Uint64(seen[0].Args.Bytes()))
	require.Equal(t, uint64(5000), le.Uint64(seen[2].Args.Bytes()))
	require.Equal(t, uint32(132), seen[2].Grid.X, "all multiprocessors")
	require.Equal(t, uint64(4), le.Uint64(seen[3].Args.Bytes()[16:]), "lines")
	require.Equal(t, seen[3].Grid.X, le.Uint32(seen[3].Args.Bytes()[24:]))
	require.NoError(t, r.Late())
	r.fault.Store32(0, 1)
	require.ErrorIs(t, r.Late(), gpu.ErrDeadline)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.NoError(t, r.Late())
	require.NoError(t, r.Close())
	_, err := New(context.Background(), d.Clock(), nil, time.Second)
	require.ErrorIs(t, err, gpu.ErrInvalid)
}
