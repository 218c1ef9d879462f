package tandem

import (
	"fmt"

	"example.com/tandem/sim/machine"
)

// The words of a rank's control page. It is never freed while the process
// lives, so that a kernel launched after Close finds the new generation.
const (
	wGeneration = iota // of the team; Close counts it up
	wPoison            // not 0: no call of this team runs any more; own kernels and host write it
	wAbort             // in device memory; peers write it
	wHostAbort         // in pinned host memory; the own host writes it
	wOwner             // ticket of the kernel that runs
	wEpoch             // of the running or next call
	wEntered           // epoch of the last kernel that came in
	wLeft              // epoch of the last kernel that touches no peer any more
	wAgreed            // epoch in which all headers agreed, for the other CTAs
	wState             // what the rank waited for when its call failed, see waiting
	wBusy              // the host's: a call is in flight
	wHeaders           // two halves, W peers, two words a line; then the flags
)

// header is where peer's header of a parity lies, half 0 or 1 of the line.
func header(ranks, parity, peer, half int) int64 {
	return int64(wHeaders + 2*(parity*ranks+peer) + half)
}

// flag is where block b of a peer says that it has finished a flag phase.
func flag(ranks, b, phase, peer int) int64 {
	return int64(wHeaders + 4*ranks + (b*flagPhases+phase)*ranks + peer)
}

// words is the size of the control page for a grid.
func words(ranks, grid int) int { return int(flag(ranks, grid, 0, 0)) }

// A barrier flag is the epoch, shifted, plus the number of the chunk, so that it
// only ever counts up.
const (
	chunkBits  = 24
	flagPhases = 3
)

// The flag phases of a chunk.
const (
	phaseReady  = iota // the source is staged
	phaseShared        // the own share of two shots can be read
	phaseDone          // no peer is read any more
)

// A line flag is the low half of the epoch. 0 is never used: an epoch with an
// empty low half is skipped, with the next one, so that the halves of the boxes
// keep taking turns.
const (
	flagMask  = 1<<32 - 1
	skipEpoch = 2
	// In the calls whose epochs are 0 to 3 above a multiple of 2^30 (both
	// halves, also where two are skipped) the sender stamps what it leaves
	// unused of each box, so that no flag is older than 2^31.
	stampEvery = 1 << 30
	stampMask  = (stampEvery - 1) &^ 3
)

// A box lies among the lines of a rank in tiers, each ending at four times the
// byte at which the one before ended: a team whose calls are small needs little
// memory.
const (
	firstTier = 256 // bytes
	tiers     = 6
)

// tier is the byte of a box at which a tier begins.
func tier(t int) int64 {
	if t == 0 {
		return 0
	}
	return firstTier << (2 * (t - 1))
}

// tierOf is the tier of a byte of a box.
func tierOf(at int64) int {
	t := 0
	for t+1 < tiers && tier(t+1) <= at {
		t++
	}
	return t
}

// tierPlace is where a tier of peer's box for a parity lies among the lines.
func tierPlace(ranks, t, parity, peer int) int64 {
	box := boxBytes(ranks)
	lo, hi := min(tier(t), box), box
	if t+1 < tiers {
		hi = min(tier(t+1), box)
	}
	return int64(2*ranks)*lo + int64(parity*ranks+peer)*(hi-lo)
}

// boxPlace is where a byte of peer's box for a parity lies among the lines.
func boxPlace(ranks, parity, peer int, at int64) int64 {
	t := tierOf(at)
	return tierPlace(ranks, t, parity, peer) + at - tier(t)
}

// lineBytes is the size, as data, of the tiers that boxes filled up to a byte
// need.
func lineBytes(ranks int, used int64) int64 {
	if used == 0 {
		return 0
	}
	return tierPlace(ranks, tierOf(used-1), 2, 0)
}

// cause is why a rank's call failed, as its state word says.
type cause uint8

const (
	causeNone     cause = iota
	causeHeader         // its header did not come
	causeLines          // its lines did not come
	causeReady          // it did not stage its source
	causeShare          // it did not finish its share
	causeDone           // it did not finish reading
	causeMismatch       // it started another call
	causeTwoCalls       // own: two calls at once
	causeKernel         // own: the kernel failed
	causeLaunch         // own: the launch failed
	causeHost           // own: the host failed
	causeAborted        // told to abort when it waited for nobody
	causeClosed         // the same, by a rank that closes the team
	causes
)

var causeTexts = [causes]string{
	causeHeader:   "waited for rank %d to start the call",
	causeLines:    "waited for the data of rank %d",
	causeReady:    "waited for rank %d to stage its source",
	causeShare:    "waited for rank %d to finish its share",
	causeDone:     "waited for rank %d to finish reading",
	causeMismatch: "found that rank %d started another call",
	causeTwoCalls: "rank %d ran two calls of the team at once",
	causeKernel:   "the kernel of rank %d failed",
	causeLaunch:   "the launch of rank %d failed",
	causeHost:     "the host of rank %d failed",
	causeAborted:  "was told to abort by rank %d",
	causeClosed:   "rank %d closed the team",
}

// waits reports whether the cause lies with the rank it names and not with the
// one that recorded it.
func (c cause) waits() bool { return c >= causeHeader && c <= causeDone }

// state is a state word: the cause and the rank it names. An abort word is one as
// well, and says who wrote it.
func state(c cause, rank int) uint64 { return uint64(c)<<16 | uint64(rank) }

func readState(word uint64) (c cause, rank int) { return cause(word >> 16), int(word & 0xFFFF) }

func stateText(word uint64) string {
	c, rank := readState(word)
	if c == causeNone || c >= causes {
		return ""
	}
	return fmt.Sprintf(causeTexts[c], rank)
}

// The temps of one launch on one rank: memory of that launch alone.
const (
	tLaunched  = iota // event: the host has launched the kernel
	tCancelled        // the launch failed, there is no kernel
	tCrashed          // the driver's word that the kernel failed
	tOutcome          // what the host found, see outcomes
	tGone             // a word a block: it has ended, and touches nothing any more
)

// temps is the number of temps of one launch.
func temps(ranks, grid int) int { return tGone + 2*grid + 2*ranks }

func tStatus(grid, b int) int64         { return int64(tGone + grid + b) }
func tLeaked(_, grid, peer int) int64   { return int64(tGone + 2*grid + peer) }
func tSeen(ranks, grid, peer int) int64 { return int64(tGone + 2*grid + ranks + peer) }

// The status of a CTA.
const (
	statusOK uint64 = iota
	statusAborted
	statusPoisoned // at entry: the team had failed before
	statusStale    // at entry: the team was closed
	statusTwoCalls // at entry: another kernel of the team runs
	statusCrashed
	statusUnstarted // there was no launch
)

// The outcomes of a launch for its host.
const (
	outcomeNone uint64 = iota // the host never came to an end
	outcomeGood
	outcomeFailed // the kernel has ended
	outcomeLost   // the kernel may still run
)

// ref is a word of a rank's control page.
func ref(rank int, off int64) machine.Ref { return machine.At(rank, machine.Word, off) }
