package machine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestClocksAreVectors compares clocks with plain vectors of times.
func TestClocksAreVectors(t *testing.T) {
	const agents, many = 12, 5
	rapid.Check(t, func(rt *rapid.T) {
		var k clocks
		var fast [many]clock
		var slow [many][agents]uint32
		pick := func(name string) int { return rapid.IntRange(0, many-1).Draw(rt, name) }
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			a, b := pick("a"), pick("b")
			switch rapid.IntRange(0, 3).Draw(rt, "kind") {
			case 0:
				who := rapid.Uint32Range(0, agents-1).Draw(rt, "agent")
				time := rapid.Uint32Range(1, 9).Draw(rt, "time")
				k.set(&fast[a], who, time)
				slow[a][who] = max(slow[a][who], time)
			case 1:
				k.join(&fast[a], fast[b].share())
				slow[a] = later(slow[a], slow[b])
			case 2:
				fast[a] = fast[b].share()
				slow[a] = slow[b]
			case 3:
				self := tick{rapid.Uint32Range(0, agents-1).Draw(rt, "self"), rapid.Uint32Range(1, 9).Draw(rt, "now")}
				met := k.meet([]clock{fast[a], fast[b]}, []tick{self})
				all := later(slow[a], slow[b])
				all[self.agent] = max(all[self.agent], self.time)
				fast[a], fast[b], slow[a], slow[b] = met, met.share(), all, all
			}
			for i := range fast {
				for who := range uint32(agents) {
					require.Equal(rt, slow[i][who], fast[i].at(who), "clock %d, agent %d", i, who)
				}
			}
		}
	})
}

func later(a, b [12]uint32) [12]uint32 {
	for i := range a {
		a[i] = max(a[i], b[i])
	}
	return a
}
