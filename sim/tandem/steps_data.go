package tandem

import "example.com/tandem/sim/machine"

// span is the units that this block works on in a chunk; in two shots those of
// what rank r reduces.
func (k *kernel) span(chunk int64, r int) span {
	all := k.all()
	if k.path == pathTwoShot {
		all = k.share(all, r, k.block)
	} else {
		all = all.cut(k.block, k.grid)
	}
	return all.cut(int(chunk), int(k.chunks))
}

// piecesOf is the number of pieces of this block's span of the phase's chunk.
func (k *kernel) piecesOf(p *phase) int { return k.pieces(k.span(int64(p.chunk), k.rank)) }

// lined makes the step write or want the flag of this epoch on lines.
func (k *kernel) lined(s *machine.Step) { s.Base = k.epoch() }

// push sends lines to the peers' boxes.
func (k *kernel) pushSize(p *phase) int {
	if !k.pushes() {
		return 0
	}
	return (k.ranks() - 1) * k.piecesOf(p)
}

func (k *kernel) push(s *machine.Step, p *phase, i int) {
	in := k.span(0, k.rank)
	n := k.pieces(in)
	to, pc := k.peer(i/n), k.piece(in, i%n)
	move(s, k.box(to, k.rank, int(p.parity), pc), k.user(k.rank, machine.Src, k.blockOf(to), pc), pc.bytes())
	k.lined(s)
}

// stamp gives a flag of this epoch to all lines of the own boxes that the call
// leaves alone, in some epochs.
func (k *kernel) stampSize(*phase) int {
	if k.block > 0 || k.ranks() == 1 {
		return 0
	}
	return 2 + (k.ranks()-1)*k.stampRanges()
}

// stampRanges is the number of ranges of a box that are stamped: what is left of
// the last unit of each lane, and what lies behind the lanes, tier by tier.
func (k *kernel) stampRanges() int {
	if !k.pushes() {
		return tiers
	}
	return tiers + len(k.lanes)
}

// stampRange is one of them, in bytes of a box.
func (k *kernel) stampRange(i int) (lo, hi int64) {
	if i -= tiers; i >= 0 {
		l := &k.lanes[i]
		return l.first*unit + l.count*l.size(), (l.first + l.units) * unit
	}
	i += tiers
	lo, hi = tier(i), boxBytes(k.ranks())
	if i+1 < tiers {
		hi = min(hi, tier(i+1))
	}
	if k.pushes() {
		lo = max(lo, k.bytes())
	}
	return lo, max(lo, hi)
}

// pushes reports whether this rank writes data to boxes.
func (k *kernel) pushes() bool {
	return k.path == pathPush && (!k.base.Rooted() || k.rank == k.call.Root)
}

func (k *kernel) stamp(s *machine.Step, p *phase, i int) {
	after := int(p.start) + k.stampSize(p)
	switch i {
	case 0:
		test(s, k.epoch(), machine.Equal, 0, after)
		s.Mask, s.Note = stampMask, noteStamp
		return
	case 1:
		test(s, k.epoch(), machine.AtLeast, stampEvery, after)
		return
	}
	n := k.stampRanges()
	to := k.peer((i - 2) / n)
	lo, hi := k.stampRange((i - 2) % n)
	if lo < hi {
		s.Kind, s.Bytes = machine.Stamp, hi-lo
		s.Dst = machine.Lines(to, k.rank, boxPlace(k.ranks(), int(p.parity), k.rank, lo))
		k.lined(s)
	}
}

// senders is the number of peers that push to this rank.
func (k *kernel) senders() int {
	switch {
	case !k.base.Rooted():
		return k.ranks() - 1
	case k.rank == k.call.Root:
		return 0
	}
	return 1
}

func (k *kernel) sender(i int) int {
	if k.base.Rooted() {
		return k.call.Root
	}
	return k.peer(i)
}

// arrivals waits for the lines of all peers.
func (k *kernel) arrivalsSize(p *phase) int {
	if k.senders() == 0 {
		return 0
	}
	return k.piecesOf(p)
}

func (k *kernel) arrivals(s *machine.Step, p *phase, i int) {
	k.arrival(s, p, i)
	k.patient(s, machine.Progress, machine.Nobody, int(p.twin))
}

// arrival makes the step a wait for the lines of a piece, of all peers.
func (k *kernel) arrival(s *machine.Step, p *phase, i int) {
	pc := k.piece(k.span(0, k.rank), i)
	s.Kind, s.Bytes, s.Note = machine.Wait, pc.bytes(), noteLines
	for n := range k.senders() {
		s.Srcs = append(s.Srcs, k.box(k.rank, k.sender(n), int(p.parity), pc))
	}
	k.lined(s)
}

// stage copies this block's part of the source into the own stage.
func (k *kernel) stageSize(p *phase) int {
	if k.base.Rooted() && k.rank != k.call.Root {
		return 0
	}
	if k.path == pathTwoShot {
		return k.ranks()
	}
	return int(k.sources()) * k.piecesOf(p)
}

func (k *kernel) stage(s *machine.Step, p *phase, i int) {
	room, block, in := i, 0, span{}
	if k.path == pathTwoShot {
		in, i = k.span(int64(p.chunk), i), 0
	} else {
		in = k.span(int64(p.chunk), k.rank)
		n := k.pieces(in)
		room, i = i/n, i%n
		block = room
	}
	if in.empty() {
		return
	}
	pc := k.piece(in, i)
	move(s, k.stagePlace(k.rank, k.block, int64(room), in, pc), k.user(k.rank, machine.Src, block, pc), pc.bytes())
}

// source is where this rank reads what rank from gives to a piece.
func (k *kernel) source(from int, p *phase, in span, pc piece) machine.Ref {
	block := k.blockOf(k.rank)
	switch {
	case from == k.rank || k.path == pathLocal || k.path != pathPush && !k.staged:
		return k.user(from, machine.Src, block, pc)
	case k.path == pathPush:
		return k.box(k.rank, from, int(p.parity), pc)
	case k.path == pathTwoShot:
		block = k.rank
	}
	return k.stagePlace(from, k.block, int64(block), in, pc)
}

// resultRoom is the room of the stage for results.
func (k *kernel) resultRoom() int64 { return k.sources() }

// target is where this rank puts a piece of a row of its destination.
func (k *kernel) target(row int, in span, pc piece) machine.Ref {
	if k.holds() || k.path == pathTwoShot && k.staged {
		return k.stagePlace(k.rank, k.block, k.resultRoom(), in, pc)
	}
	return k.user(k.rank, machine.Dst, row, pc)
}

// work reduces or copies what this block makes of a chunk.
func (k *kernel) workSize(p *phase) int {
	n := k.piecesOf(p)
	if k.path == pathTwoShot {
		n = 1
	}
	if k.base.Reduces() {
		return n
	}
	return k.rows() * n
}

func (k *kernel) work(s *machine.Step, p *phase, i int) {
	in := k.span(int64(p.chunk), k.rank)
	if in.empty() {
		return
	}
	n := k.pieces(in)
	row, pc := i/n, k.piece(in, i%n)
	if k.path == pathPush {
		k.lined(s)
	}
	if k.own(row) && !(k.path == pathTwoShot && k.staged) {
		return
	}
	if !k.base.Reduces() {
		move(s, k.target(row, in, pc), k.source(k.giver(row), p, in, pc), pc.bytes())
		return
	}
	s.Kind, s.Dst, s.Bytes, s.DType, s.Scheme = machine.Reduce, k.target(0, in, pc), pc.bytes(), pc.lane.dtype, k.scheme
	for from := range k.ranks() {
		s.Srcs = append(s.Srcs, k.source(from, p, in, pc))
	}
}

// gather is the second shot: the shares of all ranks.
func (k *kernel) gatherSize(*phase) int { return k.ranks() }

func (k *kernel) gather(s *machine.Step, p *phase, i int) {
	from := k.peer(i + k.ranks() - 1) // the own share first
	in := k.span(int64(p.chunk), from)
	if in.empty() {
		return
	}
	pc := k.piece(in, 0)
	dst := k.user(k.rank, machine.Dst, 0, pc)
	switch {
	case k.base.Rooted() && k.rank == k.call.Root:
		if !k.own(0) && (k.staged || from != k.rank) {
			move(s, dst, k.user(k.rank, machine.Src, 0, pc), pc.bytes())
		}
	case k.staged:
		move(s, dst, k.stagePlace(from, k.block, k.resultRoom(), in, pc), pc.bytes())
	case from != k.rank:
		move(s, dst, k.user(from, machine.Dst, 0, pc), pc.bytes())
	}
}

// unstage moves results that had to wait.
func (k *kernel) unstageSize(p *phase) int {
	if !k.holds() {
		return 0
	}
	return k.piecesOf(p)
}

func (k *kernel) unstage(s *machine.Step, p *phase, i int) {
	in := k.span(int64(p.chunk), k.rank)
	pc := k.piece(in, i)
	move(s, k.user(k.rank, machine.Dst, 0, pc), k.stagePlace(k.rank, k.block, k.resultRoom(), in, pc), pc.bytes())
}
