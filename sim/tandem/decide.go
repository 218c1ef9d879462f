package tandem

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// The table: where paths change, in bytes. A pure function of count, dtype and
// world; it decides time, never bits. Measured on 2 x H200;
// larger worlds follow from what moves over a link and are not measured.
const (
	// boxes is the data a rank takes in boxes in one call, from all its peers
	// together: with the flags twice that crosses its link.
	boxes = 256 << 10
	// barrierBytes is what a link moves in the time of a flag round trip:
	// 1.24 us at 365 GB/s. A second shot has to save as much.
	barrierBytes = 452_600
	// pairTwoShot: two ranks save nothing by two shots, but each reads and
	// adds half as much; above this it was faster.
	pairTwoShot = 1 << 20

	blockUnits   = 1024 // work that is worth a CTA: two vectors for each of its threads
	threads      = 512  // of a CTA
	resident     = 128  // CTAs of a GPU that run at once, whatever else it does
	defaultStage = 16 << 20
	maxChunks    = 1 << 16 // of a call that is executed
	minStage     = 1 << 10 // or one vector for each CTA and block, if that is more
)

// mostCTAs is the grid of a team whose ranks have a GPU each. Every CTA keeps a
// flag for every peer and phase, so a large world takes fewer.
func mostCTAs(ranks int) int {
	switch {
	case ranks <= 4:
		return 16
	case ranks <= 16:
		return 8
	}
	return 4
}

// boxBytes is the data one peer's box holds; 0 for a rank alone.
func boxBytes(ranks int) int64 {
	if ranks < 2 {
		return 0
	}
	return boxes / int64(ranks-1) / unit * unit
}

// decision is everything that is decided about a call. It is the same on all
// ranks: nothing in it comes from an address, an in-place form or a GPU.
type decision struct {
	shape
	call    api.Call
	base    api.Collective
	mode    string
	scheme  num.Scheme
	path    string
	why     string
	grid    int // CTAs of a rank
	gridWhy string
	staged  bool  // sources are read from the stage
	room    int64 // units of the stage for one block of one CTA's chunk
	chunks  int64
}

// decide plans a call that admit has accepted.
func (c *config) decide(call *api.Call) *decision {
	d := &decision{shape: shapeOf(call), call: *call, base: api.Base(call.Collective), chunks: 1}
	if call.Collective.Reduces() {
		d.scheme, d.mode = c.scheme(call), c.modeOf(call)
	}
	d.path, d.why = d.choose(c.path)
	d.grid, d.gridWhy = d.blocks(c)
	if d.path == pathPush {
		for t := 1; t < tiers; t++ {
			d.cutAt(tier(t) / unit)
		}
	}
	if d.path == pathDirect || d.path == pathTwoShot {
		d.staged = !c.registered
		d.split(c.stage)
	}
	return d
}

func (d *decision) bytes() int64 { return d.units * unit }

// shots reports whether the collective has a two-shot form.
func (d *decision) shots() bool { return d.base == api.AllReduce || d.base == api.Broadcast }

func (d *decision) choose(forced string) (path, why string) {
	ranks, bytes, box := d.call.Ranks, d.bytes(), boxBytes(d.call.Ranks)
	switch {
	case d.units == 0:
		return pathEmpty, "nothing to move; the call still synchronises"
	case ranks == 1:
		return pathLocal, "one rank"
	case forced == pathDirect:
		return pathDirect, "path=direct"
	case forced == pathTwoShot && d.shots():
		return pathTwoShot, "path=two_shot"
	case forced == pathTwoShot:
		return pathDirect, fmt.Sprintf("path=two_shot, which %s has not", d.call.Collective.Name())
	case bytes > box && forced == pathPush:
		return pathDirect, fmt.Sprintf("path=push, but %d bytes are more than the %d of a box", bytes, box)
	case forced == pathPush:
		return pathPush, "path=push"
	case bytes <= box:
		return pathPush, fmt.Sprintf("%d bytes to a peer, at most the %d of a box", bytes, box)
	case d.shots() && twoShot(ranks, bytes):
		return pathTwoShot, fmt.Sprintf("%d bytes over the busiest link instead of %d", shotBytes(ranks, bytes), bytes*int64(ranks-1))
	}
	return pathDirect, fmt.Sprintf("%d bytes are more than the %d of a box", bytes, box)
}

// shotBytes is what the busiest link carries in two shots, rounded up.
func shotBytes(ranks int, bytes int64) int64 {
	n := int64(ranks)
	return 2 * (n - 1) * ceil(bytes, n)
}

func twoShot(ranks int, bytes int64) bool {
	if ranks == 2 {
		return bytes > pairTwoShot
	}
	return bytes*int64(ranks-1)-shotBytes(ranks, bytes) >= barrierBytes
}

// blocks is the grid of the call.
func (d *decision) blocks(c *config) (grid int, why string) {
	fits := max(1, resident/c.shared(d.call.Ranks))
	if c.ctas > 0 {
		if c.ctas > fits {
			return fits, fmt.Sprintf("ctas=%d, of which %d fit beside the other ranks of a GPU", c.ctas, fits)
		}
		return c.ctas, fmt.Sprintf("ctas=%d", c.ctas)
	}
	most := min(fits, mostCTAs(d.call.Ranks))
	want := min(ceil(d.units, blockUnits), int64(most))
	return int(max(want, 1)), fmt.Sprintf("one CTA for each %d bytes, at most %d", blockUnits*unit, most)
}

// split cuts the shares of the CTAs into chunks that the stage holds. A rank
// whose result would overwrite what peers still read keeps it in the stage until
// they are done, and every rank must expect every other to be such a one.
func (d *decision) split(stage int64) {
	share := d.units
	if d.path == pathTwoShot {
		share = ceil(share, int64(d.call.Ranks))
	}
	share = ceil(share, int64(d.grid))
	d.room = share
	if blocks := d.stageBlocks(); blocks > 0 {
		d.room = min(d.room, max(1, stage/(unit*blocks*int64(d.grid))))
		d.chunks = ceil(share, d.room)
		d.room = ceil(share, d.chunks)
	}
}

func ceil(n, by int64) int64 { return (n + by - 1) / by }

// sources is the number of rooms that a CTA's part of a staged source takes:
// one a block of the source, or in two shots one a rank's share.
func (d *decision) sources() int64 {
	if !d.staged {
		return 0
	}
	if d.path == pathTwoShot {
		return int64(d.call.Ranks)
	}
	src, _ := d.base.Blocks(d.call.Ranks)
	return src
}

// stageBlocks is the number of rooms of a CTA in the stage.
func (d *decision) stageBlocks() int64 {
	n := d.sources()
	if d.results() {
		n++
	}
	return n
}

// stageAt is where, in bytes, a room of a CTA begins. The result's room comes
// after those of the source.
func (d *decision) stageAt(b int, room int64) int64 {
	return (int64(b)*d.stageBlocks() + room) * d.room * unit
}

// stageBytes is what the call needs of the stage.
func (d *decision) stageBytes() int64 { return d.stageAt(d.grid, 0) }

// results reports whether the stage may have to hold results: of an in-place
// reduction, or of a first shot where destinations are not registered.
func (d *decision) results() bool {
	if d.path == pathTwoShot {
		return d.staged
	}
	return !d.staged && (d.base == api.AllReduce || d.base == api.ReduceScatter)
}
