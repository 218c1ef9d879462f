package nvshmem

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The shape of recursive exchange holds together for every team and radix:
// radix^phases ranks stay, each of the others sends to exactly one of them, and
// a folder receives the ranks just below it.
func TestExchangeShape(t *testing.T) {
	for ranks := 1; ranks <= 130; ranks++ {
		for radix := int64(2); radix <= 17; radix++ {
			e := newExchange(ranks, Params{RecExchRadix: radix})
			stay, into := 0, map[int][]int{}
			for r := range ranks {
				if to := e.sendsTo(r); to >= 0 {
					into[to] = append(into[to], r)
				} else {
					stay++
				}
			}
			require.Equal(t, e.power, stay, "%d ranks, radix %d", ranks, radix)
			require.LessOrEqual(t, e.power, ranks)
			require.Greater(t, e.power*e.radix, ranks)
			for r := range ranks {
				require.Len(t, into[r], e.received(r), "%d ranks, radix %d, rank %d", ranks, radix, r)
				for i, from := range into[r] {
					require.Equal(t, -1, e.sendsTo(r), "a folder stays")
					require.Equal(t, r-e.received(r)+i, from)
				}
			}
		}
	}
}

// The table of the description: the largest count of recursive exchange.
func TestExchangeLimits(t *testing.T) {
	p, err := parse("nvshmem@3.4.5")
	require.NoError(t, err)
	for ranks, want := range map[int]int64{2: 8192, 3: 8192, 4: 4681, 5: 4681, 6: 4681, 7: 4681, 8: 3276, 16: 2520} {
		require.Equal(t, want, newExchange(ranks, p).limit(p))
		at, over := block(allReduce(ranks, want, 0)), block(allReduce(ranks, want+1, 0))
		require.Equal(t, map[string]int{"recexch": 1}, mix(plan(t, "3.4.5?nvls=off", at)))
		require.Equal(t, map[string]int{"segment": 1}, mix(plan(t, "3.4.5?nvls=off", over)))
	}
}

func TestWhoUsesRecursiveExchange(t *testing.T) {
	sub := block(allReduce(4, 100, 0))
	sub.Team = 1
	for _, c := range []struct {
		spec, want string
		ranks      int
	}{
		{"3.4.5?nvls=off", "recexch", 6}, {"2dca770?nvls=off", "segment", 6}, {"pr131?nvls=off", "segment", 6},
		{"3.4.5?nvls=off", "recexch", 8}, {"2dca770?nvls=off", "recexch", 8}, {"pr131?nvls=off", "recexch", 8},
		{"3.4.5?nvls=off&reduce_recexch_kval=4", "recexch", 8}, {"pr131?nvls=off&reduce_recexch_kval=4", "segment", 8},
		// Clamped to the team's size.
		{"pr131?nvls=off&reduce_recexch_kval=4", "recexch", 2}, {"pr131", "recexch", 1},
	} {
		p := plan(t, c.spec, block(allReduce(c.ranks, 100, 0)))
		require.Equal(t, map[string]int{c.want: 1}, mix(p), "%s, %d ranks", c.spec, c.ranks)
	}
	require.Equal(t, map[string]int{"segment": 1}, mix(plan(t, "3.4.5?nvls=off", sub)))
	require.Equal(t, map[string]int{"one_shot": 1}, mix(plan(t, "3.4.5", sub)), "a sub team has multicast")
}
