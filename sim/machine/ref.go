package machine

import (
	"fmt"
	"math"
)

// Space is a kind of memory that every rank has.
type Space uint8

// The spaces. Nothing is the absence of a reference.
const (
	Nothing Space = iota
	Src           // the caller's source, by lane
	Dst           // the caller's destination, by lane
	Scratch       // bytes; undefined at the start of every run
	Box           // bytes that persist from run to run
	Line          // bytes that persist, each 4 with a 32-bit flag beside them; Lane names the rank that writes there
	Word          // 64-bit words that persist
	Temp          // 64-bit words that are 0 at the start of every run
)

var spaceNames = [...]string{"nothing", "source", "destination", "scratch", "box", "line", "word", "temp"}

// String is the space as traces write it.
func (s Space) String() string { return spaceNames[min(int(s), len(spaceNames)-1)] }

// All is the rank of a multicast address: the same place on every rank.
const All = -1

// Ref is a place in the memory of a rank. Off counts bytes, in Word and Temp
// words. In Src and Dst it may lead into the guards of the image, no further.
type Ref struct {
	Rank  int32
	Lane  uint16
	Space Space
	Off   int64
}

// At is a place in space of rank.
func At(rank int, space Space, off int64) Ref {
	return Ref{Rank: int32(rank), Space: space, Off: off}
}

// User is a place in the source or destination of a lane.
func User(rank int, space Space, lane int, off int64) Ref {
	return Ref{Rank: int32(rank), Space: space, Lane: narrow(lane), Off: off}
}

// Lines is a place among the lines of rank, written by rank from.
func Lines(rank, from int, off int64) Ref {
	return Ref{Rank: int32(rank), Lane: narrow(from), Space: Line, Off: off}
}

// narrow is a number of a lane; what is none stays none.
func narrow(lane int) uint16 {
	if uint(lane) > math.MaxUint16 {
		return math.MaxUint16
	}
	return uint16(lane)
}

func (r Ref) isWord() bool { return r.Space == Word || r.Space == Temp }

func (r Ref) isUser() bool { return r.Space == Src || r.Space == Dst }

// String is the place as traces write it: rank.space[offset].
func (r Ref) String() string {
	who := fmt.Sprintf("r%d", r.Rank)
	if r.Rank == All {
		who = "all"
	}
	lane := ""
	if r.isUser() && r.Lane != 0 || r.Space == Line {
		lane = fmt.Sprintf("%d", r.Lane)
	}
	return fmt.Sprintf("%s.%s%s[%d]", who, r.Space, lane, r.Off)
}
