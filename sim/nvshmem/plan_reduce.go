package nvshmem

import (
	"fmt"

	"example.com/tandem/api"
)

func (pl *planner) bytesAt(elems int64) uint64 { return uint64(elems * pl.size) }

func (pl *planner) planAllReduce(cta *api.CTA) {
	at := pl.bytesAt(cta.Start)
	c := pl.allReduce(cta.Count, pl.dst[0]+at, pl.src[0]+at)
	if head := pl.headOf(cta.Count, c, at); head > 0 {
		pl.planHeadAndTail(cta, head)
		return
	}
	cta.Algorithm, cta.Why = c.alg, c.why
	pl.planRange(cta)
}

// planRange plans a CTA, or a part of one, whose algorithm is chosen.
func (pl *planner) planRange(cta *api.CTA) {
	pl.checkReduce(cta)
	switch cta.Algorithm {
	case algOneShot, algTwoShot:
		pl.inSwitch(cta)
	default:
		pl.costReduce(cta)
	}
}

// headOf is how many of a CTA's n elements version pr131-tail keeps in the
// switch where pr131 would send all of them P2P for their number alone; 0 where
// it does not split.
func (pl *planner) headOf(n int64, c choice, at uint64) int64 {
	if pl.p.Version != versionTail || !pl.half() || c.alg == algOneShot || c.alg == algTwoShot {
		return 0
	}
	head := n - n%(16/pl.size*pl.ranks)
	if head == 0 {
		return 0
	}
	switch pl.allReduce(head, pl.dst[0]+at, pl.src[0]+at).alg {
	case algOneShot, algTwoShot:
		return head
	}
	return 0
}

// planHeadAndTail plans a CTA that puts its head through the switch and then its
// tail through P2P.
func (pl *planner) planHeadAndTail(cta *api.CTA, n int64) {
	at := pl.bytesAt(cta.Start)
	head, tail := *cta, *cta
	head.Count = n
	tail.Start, tail.Count = cta.Start+n, cta.Count-n
	h := pl.allReduce(head.Count, pl.dst[0]+at, pl.src[0]+at)
	t := pl.p2p(tail.Count, fmt.Sprintf("the last %d elements, no multiple of 16 bytes x %d ranks", tail.Count, pl.ranks))
	head.Algorithm, tail.Algorithm = h.alg, t.alg
	pl.planRange(&head)
	pl.planRange(&tail)
	pl.use(t.alg)
	cta.Algorithm, cta.Why = h.alg, fmt.Sprintf("%s; a tail of %d is split off", h.why, tail.Count)
	cta.Words, cta.Rounds = head.Words, head.Rounds+tail.Rounds
	cta.Slices = append(head.Slices, api.Slice{Start: tail.Start, Count: tail.Count, Algorithm: t.alg, Why: t.why})
}

// inSwitch plans the slices of one-shot and two-shot.
func (pl *planner) inSwitch(cta *api.CTA) {
	cta.Slices = make([]api.Slice, pl.ranks)
	local := cta.Algorithm == algOneShot
	for r := range cta.Slices {
		part := span{0, cta.Count}
		if !local {
			part = slicesOf(cta.Count, pl.ranks, int64(r))
		}
		s := &cta.Slices[r]
		*s = api.Slice{Rank: r, Start: cta.Start + part.start, Count: part.count, Local: local}
		at := pl.bytesAt(s.Start)
		touched := pl.walk(cta, s, pl.starts(cta, pl.dst[0]+at, pl.src[0]+at), widthsAll)
		if !local {
			pl.bytes[r] += touched
		}
	}
}

// starts completes the addresses of a slice of cta. Rank 0's buffers begin where
// the caller's do, in place too.
func (pl *planner) starts(cta *api.CTA, dst, src uint64) starts {
	return starts{dst: dst, src: src, ptrDst: pl.dst[0], ptrSrc: pl.src[0], cta: pl.bytesAt(cta.Start)}
}

// walk sends a slice through the word cascade, notes what it lost, and returns
// the bytes it touched.
func (pl *planner) walk(cta *api.CTA, s *api.Slice, at starts, widths []int64) int64 {
	bytes := s.Count * pl.size
	words, touched := cascade(at.dst, at.src, bytes, widths)
	s.Words = words
	pl.words[s.Rank] += words.Total()
	cta.Words = max(cta.Words, words.Total())
	if touched == bytes {
		return touched
	}
	done := touched / pl.size
	pl.lose(s, s.Start+done, s.Count-done, at.cause())
	s.Unwritten = s.Count - done
	if aligned4(at.dst, at.src) {
		s.Why = fmt.Sprintf("%d bytes are left after the last 4-byte word, and there is no narrower multicast access", bytes-touched)
	} else {
		s.Why = fmt.Sprintf("destination starts %d and source %d bytes past a multiple of 4, so no 16-, 8- or 4-byte word fits", at.dst%4, at.src%4)
	}
	return touched
}

func (pl *planner) lose(s *api.Slice, start, count int64, cause api.Cause) {
	s.Holes = append(s.Holes, api.Hole{Start: start, Count: count, Cause: cause})
}

// scatterStarts are the addresses between which rank r reduces cta's range.
func (pl *planner) scatterStarts(cta *api.CTA, r int) starts {
	at := pl.bytesAt(cta.Start)
	return pl.starts(cta, pl.dst[r]+at, pl.src[r]+at+pl.bytesAt(int64(r)*pl.count))
}

func (pl *planner) chooseScatter(cta *api.CTA, r int, align string) choice {
	at := pl.scatterStarts(cta, r)
	return pl.reduceScatter(cta.Count, at.dst, pl.src[r], at.src, align)
}

func (pl *planner) planReduceScatter(cta *api.CTA) {
	choices := make([]choice, pl.ranks)
	inSwitch := 0
	for r := range choices {
		choices[r] = pl.chooseScatter(cta, r, pl.align)
		if choices[r].alg == algNVLS {
			inSwitch++
		}
	}
	cta.Algorithm, cta.Why = choices[0].alg, choices[0].why
	cta.Slices = make([]api.Slice, pl.ranks)
	for r, c := range choices {
		s := &cta.Slices[r]
		*s = api.Slice{Rank: r, Start: cta.Start, Count: cta.Count, Local: true}
		if c.alg != cta.Algorithm {
			s.Algorithm, s.Why = c.alg, c.why
			pl.use(c.alg)
		}
		switch c.alg {
		case algNVLS:
			pl.checkScatterOffset(cta, r)
			pl.walk(cta, s, pl.scatterStarts(cta, r), pl.scatterWidths())
		case algLinear:
			pl.checkLinear(cta, r)
			pl.bytes[r] += (pl.ranks - 1) * cta.Count * pl.size
			pl.misread(cta, s, inSwitch > 0)
		}
	}
}

// misread notes where the linear reduce-scatter of a CTA reduces other data
// than the call asks for: it is not told the CTA's offset.
func (pl *planner) misread(cta *api.CTA, s *api.Slice, lonely bool) {
	reads, wants := int64(s.Rank)*cta.Count, int64(s.Rank)*pl.count+cta.Start
	switch {
	case lonely:
		pl.lose(s, s.Start, s.Count, api.CauseStale)
	case reads != wants:
		pl.lose(s, s.Start, s.Count, api.CauseOffset)
	}
}

// chooseAlign settles how pr131's reduce-scatter reads addresses, and refuses
// the calls on which the readings differ where the spec does not say.
func (pl *planner) chooseAlign() error {
	pl.align = pl.p.rsAlign
	if pl.align != "" || !pl.p.after() || pl.call.Collective != api.ReduceScatter {
		return nil
	}
	pl.align = alignPointer
	cta, rank, ok := pl.alignMatters()
	if !ok {
		return nil
	}
	return pl.refusal(pl.spec, fmt.Sprintf("the text of PR #131 does not say whether reduce-scatter tests the source or source + source_offset, and rank %d of CTA %d goes another way", rank, cta),
		"say rs_align=pointer or rs_align=shifted")
}

// alignMatters finds the first CTA and rank on which the readings differ.
func (pl *planner) alignMatters() (cta, rank int, ok bool) {
	for b, sp := range pl.split.spans {
		c := api.CTA{CTA: b, Start: sp.start, Count: sp.count}
		for r := 0; sp.count > 0 && r < pl.call.Ranks; r++ {
			if pl.chooseScatter(&c, r, alignPointer).alg != pl.chooseScatter(&c, r, alignShifted).alg {
				return b, r, true
			}
		}
	}
	return 0, 0, false
}
