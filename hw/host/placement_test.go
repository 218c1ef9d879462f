package host

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/hwtest"
)

// TestSpread: where ranks are, and what of numbers of GPUs is refused.
func TestSpread(t *testing.T) {
	d := hwtest.New(3)
	d.Info = func(i int, info *gpu.Info) { info.ClockKHz = 1_000_000 * (1 + i%2) }
	m := NewMachine(d)
	for _, c := range []struct {
		ranks, asked, want int
		cyclic             bool
		local              [][]int
	}{
		{5, 2, 2, false, [][]int{{0, 1, 2}, {3, 4}}},
		{5, 2, 2, true, [][]int{{0, 2, 4}, {1, 3}}},
		{2, 0, 2, false, [][]int{{0}, {1}}},
		{4, 0, 3, false, [][]int{{0, 1}, {2}, {3}}},
		{1, 1, 1, true, [][]int{{0}}},
	} {
		n, err := m.Share("hw:any", c.ranks, c.asked)
		require.NoError(t, err)
		require.Equal(t, c.want, n)
		p, err := m.Spread("hw:any", c.ranks, n, c.cyclic)
		require.NoError(t, err)
		require.Equal(t, c.local, p.Local)
		for g, list := range p.Local {
			for _, r := range list {
				require.Equal(t, g, p.Place[r])
				require.Same(t, p.GPUs[g], p.GPU(r))
			}
		}
		require.EqualValues(t, 3000*min(2, n), p.Cycles(3*time.Microsecond), "by the fastest")
		streams, err := p.NewStreams()
		require.NoError(t, err)
		require.Len(t, streams, n)
		require.NoError(t, DestroyStreams(streams))
	}
	_, err := m.Share("hw:any", 2, 3)
	require.ErrorIs(t, err, api.ErrInvalid)
	_, err = NewMachine(hwtest.New(0)).Share("hw:any", 2, 0)
	require.ErrorIs(t, err, api.ErrUnavailable)
	_, err = m.Spread("hw:any", 4, 4, false)
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.NoError(t, m.Close())
	require.True(t, d.Counts().None(), "%v", d.Counts())
}

// TestCheckBuffer: an address is refused for the first of its faults.
func TestCheckBuffer(t *testing.T) {
	d := hwtest.New(2)
	m := NewMachine(d)
	p, err := m.Spread("hw:any", 2, 2, false)
	require.NoError(t, err)
	var buf [2]gpu.Ptr
	for i := range buf {
		buf[i], err = p.GPUs[i].Context.Alloc(256)
		require.NoError(t, err)
	}
	for says, c := range map[string]struct {
		at    gpu.Ptr
		bytes int64
	}{
		"no multiple of the element size 4": {buf[0] + 2, 4},
		"reach beyond its allocation":       {buf[0] + 252, 8},
		"it is memory of device 1":          {buf[1], 4},
		"no allocation holds it":            {8, 4},
	} {
		err := p.CheckBuffer(0, "lane 3 of rank 0", "source", c.at, 4, c.bytes)
		require.ErrorIs(t, err, api.ErrInvalid)
		require.ErrorContains(t, err, "lane 3 of rank 0: ")
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, p.CheckBuffer(0, "", "", 8, 4, 0), "nothing is read there")
	require.NoError(t, p.CheckBuffer(1, "", "", buf[1]+252, 4, 4))
	for i := range buf {
		require.NoError(t, p.GPUs[i].Context.Free(buf[i]))
	}
	require.NoError(t, m.Close())
}

func TestReadDeadlines(t *testing.T) {
	for _, c := range []struct {
		team  api.TeamConfig
		scale int
		want  Deadlines
	}{
		{api.TeamConfig{}, 1, Deadlines{DefaultArrive, DefaultProgress}},
		{api.TeamConfig{Arrive: 10 * time.Millisecond}, 3, Deadlines{30 * time.Millisecond, 3 * DefaultProgress}},
		{api.TeamConfig{Progress: time.Minute}, 1, Deadlines{DefaultArrive, time.Minute}},
	} {
		d, err := ReadDeadlines(c.team, c.scale)
		require.NoError(t, err)
		require.Equal(t, c.want, d)
	}
	for name, team := range map[string]api.TeamConfig{"arrive": {Arrive: time.Millisecond}, "progress": {Progress: -1}} {
		_, err := ReadDeadlines(team, 1000)
		var bad *api.InvalidError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, name, bad.Field)
		require.Equal(t, "10ms or more", bad.Hint)
	}
}

// TestRetiredPages serve again, under another generation.
func TestRetiredPages(t *testing.T) {
	d := hwtest.New(1)
	m := NewMachine(d)
	p, err := m.Spread("hw:any", 1, 1, false)
	require.NoError(t, err)
	streams, err := p.NewStreams()
	require.NoError(t, err)
	page, err := m.Page(p.GPUs[0], 64, 32)
	require.NoError(t, err)
	require.NoError(t, m.Write(context.Background(), p.GPUs[0], streams[0], page.Device, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}))
	require.NoError(t, m.Retire(p.GPUs[0], page, 8))
	require.Equal(t, []byte{7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 17}, d.Bytes(page.Device)[6:17])
	again, err := m.Page(p.GPUs[0], 64, 32)
	require.NoError(t, err)
	require.Equal(t, page.Device, again.Device)
	other, err := m.Page(p.GPUs[0], 128, 32)
	require.NoError(t, err)
	require.NotEqual(t, page.Device, other.Device)
	require.NoError(t, DestroyStreams(streams))
	require.NoError(t, m.Close())
}
