package gpu

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestLedger compares two ledgers, one below the other, with plain counts.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var driver Ledger
		below := []*Ledger{NewLedger(&driver), NewLedger(&driver)}
		var live [2][]*Entry
		var want [2]Counts
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i, k := rapid.IntRange(0, 1).Draw(t, "ledger"), Kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind"))
				live[i] = append(live[i], below[i].Add(k, nil))
				want[i].Live[k]++
			},
			"end": func(t *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(t, "ledger")
				if len(live[i]) == 0 {
					t.Skip("empty")
				}
				n := rapid.IntRange(0, len(live[i])-1).Draw(t, "entry")
				e := live[i][n]
				want[i].Live[e.kind]--
				if rapid.Bool().Draw(t, "quarantine") {
					e.Quarantine()
					want[i].Quarantined[e.kind]++
				} else {
					e.Release()
				}
				e.Release() // again does nothing
				e.Quarantine()
				live[i] = append(live[i][:n], live[i][n+1:]...)
			},
			"": func(t *rapid.T) {
				sum := want[0]
				for k := range kinds {
					sum.Live[k] += want[1].Live[k]
					sum.Quarantined[k] += want[1].Quarantined[k]
				}
				require.Equal(t, want[0], below[0].Counts())
				require.Equal(t, want[1], below[1].Counts())
				require.Equal(t, sum, driver.Counts())
				require.Equal(t, sum.None(), driver.Check("x") == nil)
			},
		})
	})
}

func TestLedgerLeaks(t *testing.T) {
	var l Ledger
	require.NoError(t, l.Check("GPU 0"))
	require.Equal(t, "nothing", l.Counts().String())
	for i := range 7 {
		l.Add(KindMemory, func() string { return fmt.Sprintf("number %d", i) })
	}
	l.Add(KindStream, nil)
	l.Add(KindEvent, nil).Quarantine()
	err := l.Check("GPU 0")
	require.ErrorIs(t, err, ErrLeaked)
	require.EqualError(t, err, "GPU 0: 7 allocations, 1 stream, 1 quarantined event left: number 0, number 1, number 2, number 3, number 4")
	l.QuarantineAll()
	require.NoError(t, l.Check("GPU 0"))
	require.Equal(t, "7 quarantined allocations, 1 quarantined stream, 1 quarantined event", l.Counts().String())
	(*Entry)(nil).Release()
	require.Equal(t, "device lock", Kind(200).String())
}

func TestLedgerOrphans(t *testing.T) {
	var driver Ledger
	l := NewLedger(&driver)
	var order []string
	undo := func(name string, err error) func() error {
		return func() error { order = append(order, name); return err }
	}
	l.Add(KindMapping, nil).Orphan(undo("first", nil))
	stubborn := l.Add(KindGraph, nil)
	stubborn.Orphan(undo("stubborn", errors.New("no")))
	l.Add(KindStream, nil)
	l.UndoAll()
	require.Equal(t, []string{"stubborn", "first"}, order, "newest first")
	require.Equal(t, "1 stream, 1 graph", driver.Counts().String())
	stubborn.Orphan(undo("now", nil))
	l.UndoAll()
	require.Equal(t, "1 stream", driver.Counts().String())
}
