package cascade

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/hw/inswitch"
)

// The algorithms of plans and reports, as the library's source calls them.
const (
	local    = "copy"
	oneShot  = "one_shot"
	twoShot  = "two_shot"
	exchange = "recexch"
	segments = "segment"
	lines    = "ll"
)

// Limits of nvls_layout.h; a test reads that file.
const (
	segmentBytes  = 32768
	exchangeLimit = 32768
	lineLimit     = 2048
	lineTotal     = 262144
)

// The versions by number, as nvls_layout.h has them.
const (
	before = iota
	after
	afterTeam
	afterTail
)

// choice is what a block chooses by: the rules of cascade_select.h.
type choice struct {
	version   uint32
	algo      uint32
	threshold int64
	world     int
	blocks    int
	count     int64
	log       uint32
	src, dst  uint64 // of rank 0; all ranks' lie alike
	reach     bool   // the switch has a form
	half      bool
	whole     bool // the team is the world
}

func newChoice(c *config, call *api.Call) *choice {
	a := c.args(call)
	x := &choice{version: a.Version, algo: a.Algo, threshold: a.Threshold, world: call.Ranks, blocks: a.Blocks, count: call.Count, log: a.Log,
		reach: a.Flags&inswitch.FlagSwitch != 0, half: a.Flags&inswitch.FlagHalf != 0, whole: a.Flags&inswitch.FlagWorld != 0}
	x.src, x.dst = call.Addrs(0, 0)
	return x
}

// piece is a part of a block's range that one algorithm does.
type piece struct {
	first, count int64
	algorithm    string
	why          string
}

// pieces are those of a block: none, one, or the two that the second follow-up
// makes of a range.
func (x *choice) pieces(b int) []piece {
	per, unit := x.count/int64(x.blocks), int64(16>>x.log)
	if x.version == afterTeam {
		unit *= int64(x.world)
	}
	if x.version != before {
		per -= per % unit
	}
	first, n := per*int64(b), per
	if b+1 == x.blocks {
		n = x.count - first
	}
	if n == 0 {
		return nil
	}
	head := x.head(first, n)
	if head == 0 || head == n {
		alg, why := x.pick(first, n)
		return []piece{{first, n, alg, why}}
	}
	alg, why := x.pick(first, head)
	rest, peers := x.peers(n - head)
	return []piece{{first, head, alg, why}, {first + head, n - head, rest, "what does not fit words of every rank; " + peers}}
}

// phases is log2 of the number of ranks, rounded down.
func (x *choice) phases() (n int64) {
	for 2<<n <= x.world {
		n++
	}
	return n
}

// peers is the algorithm where the switch is not used.
func (x *choice) peers(n int64) (alg, why string) {
	bytes := n << x.log
	switch phases := x.phases(); {
	case x.world == 1:
		return local, "a team of one"
	case x.whole && x.log >= 2 && n%2 == 0 && bytes <= lineLimit && bytes*int64(x.world) <= lineTotal:
		return lines, fmt.Sprintf("%d bytes, at most %d", bytes, lineLimit)
	case x.whole && 1<<phases == x.world && n <= exchangeLimit/(1+3*phases):
		return exchange, fmt.Sprintf("%d elements, at most %d", n, exchangeLimit/(1+3*phases))
	}
	return segments, "puts of segments to one peer after another"
}

// evenly reports whether n elements divide into slices for two shots.
func (x *choice) evenly(n int64) bool {
	w := int64(x.world)
	return !x.half || n > w && n%w == 0 && (x.version == before || n/w%2 == 0)
}

// reachable reports whether the switch may be used at these addresses. Nobody looked
// at the addresses before the pull request.
func (x *choice) reachable(first int64) bool {
	at := uint64(first) << x.log
	return x.reach && (x.version == before || (x.src+at|x.dst+at)%4 == 0)
}

// pick is the algorithm for n elements from one on, and why.
func (x *choice) pick(first, n int64) (alg, why string) {
	may := x.reachable(first) && n<<x.log%4 == 0
	one, two := may && x.src != x.dst, may && x.evenly(n)
	if x.algo <= 2 && n <= x.threshold && one {
		return oneShot, fmt.Sprintf("%d elements, at most %d", n, x.threshold)
	}
	if x.algo <= 3 && two {
		return twoShot, "slices of the same size for all ranks"
	}
	if x.algo == 4 && one {
		return oneShot, "reduce_algo=4"
	}
	alg, peers := x.peers(n)
	return alg, x.obstacle(first, n) + "; " + peers
}

// obstacle is why n elements do not go through the switch.
func (x *choice) obstacle(first, n int64) string {
	switch {
	case !x.reach:
		return "the switch has no form for the call, or nvls=off"
	case !x.reachable(first):
		return "an address no multiple of 4"
	case n<<x.log%4 != 0:
		return "byte length no multiple of 4"
	case x.algo >= 4:
		return fmt.Sprintf("reduce_algo=%d", x.algo)
	case n%int64(x.world) != 0 || n <= int64(x.world):
		return fmt.Sprintf("%d elements do not divide over %d ranks", n, x.world)
	}
	return x.oddWhy(n)
}

// head is how many of n elements go through the switch where the second follow-up
// splits a range that its count alone keeps off it; 0 where it does not.
func (x *choice) head(first, n int64) int64 {
	if x.version != afterTail || !x.half || x.algo > 4 || !x.reachable(first) {
		return 0
	}
	head := n - n%(int64(16>>x.log)*int64(x.world))
	if head == 0 {
		return 0
	}
	through := []string{oneShot, twoShot}
	whole, _ := x.pick(first, n)
	part, _ := x.pick(first, head)
	if slices.Contains(through, whole) || !slices.Contains(through, part) {
		return 0
	}
	return head
}
