package cascade

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/inswitch"
)

// Plan is what the kernel will do with a call whose buffers lie at their standard
// addresses. It decides on the device; what it decides is told here by the same
// rules (select.go), and a test holds one to the other. m is nil where there is no
// GPU: then all blocks of a call are taken to fit.
func Plan(m *host.Machine, spec api.Spec, call api.Call) (*api.Plan, error) {
	c, err := read(spec)
	if err != nil {
		return nil, err
	}
	if err := call.Validate(); err != nil {
		return nil, err
	}
	if err := c.admit(&call); err != nil {
		return nil, err
	}
	most, on, err := inswitch.Fit(c.options(m, api.TeamConfig{Ranks: call.Ranks}))
	if err != nil {
		return nil, err
	}
	if err := c.admitGrid(&call, most); err != nil {
		return nil, err
	}
	p := host.NewPlan(spec, &call)
	x := newChoice(c, &call)
	k := api.Kernel{Name: kernelName}
	for b := range x.blocks {
		for _, piece := range x.pieces(b) {
			cta := x.cta(b, piece)
			p.Algorithms[cta.Algorithm] = x.algorithm(cta.Algorithm)
			p.Cost.Rounds, p.Cost.Words = max(p.Cost.Rounds, cta.Rounds), max(p.Cost.Words, cta.Words)
			k.CTAs = append(k.CTAs, cta)
		}
	}
	p.Kernels = []api.Kernel{k}
	p.Cost.Launches = 1
	for _, cta := range k.CTAs {
		for _, s := range cta.Slices {
			for r := range call.Ranks {
				if !s.Local || s.Rank == r {
					p.Unwritten[r] += s.Unwritten
				}
			}
		}
	}
	p.Notes = []string{host.Launched(kernelName, x.blocks, c.choice.Threads, on), "each block chooses for its own range, on the device"}
	if !c.choice.Native {
		p.Notes = append(p.Notes, "multicast is emulated, with an arithmetic of the kernel's own")
	}
	return p, nil
}

// algorithm says what is known of one, and what its values may be held to.
func (x *choice) algorithm(name string) api.Algorithm {
	a := api.Algorithm{Evidence: api.FromSource, Contract: api.Exact}
	if name == oneShot || name == twoShot {
		a.Contract = api.Faithful
		if x.version != before {
			a.Evidence = api.Reconstructed
		}
	}
	return a
}

// cta is a piece of a block's range.
func (x *choice) cta(b int, p piece) api.CTA {
	cta := api.CTA{CTA: b, Start: p.first, Count: p.count, Algorithm: p.algorithm, Why: p.why, Rounds: x.rounds(p)}
	local := p.algorithm == oneShot
	if !local && p.algorithm != twoShot {
		return cta
	}
	for r := range x.world {
		s := api.Slice{Rank: r, Start: p.first, Count: p.count, Local: local}
		if !local {
			per := p.count / int64(x.world)
			s.Start += per * int64(r)
			s.Count = per
			if r+1 == x.world {
				s.Count = p.first + p.count - s.Start
			}
		}
		if s.Count == 0 {
			continue
		}
		x.words(&s, p.first)
		cta.Words = max(cta.Words, s.Words.Total())
		cta.Slices = append(cta.Slices, s)
	}
	return cta
}

// words fills in how a slice goes through the switch, and what stays behind: less
// than 4 bytes at its end, or all of it where it lies at an odd place.
func (x *choice) words(s *api.Slice, first int64) {
	from, to, left := x.src+uint64(s.Start)<<x.log, x.dst+uint64(s.Start)<<x.log, s.Count<<x.log
	even := (from|to)%4 == 0
	for _, w := range []struct {
		bytes uint64
		n     *int64
	}{{16, &s.Words.W16}, {8, &s.Words.W8}, {4, &s.Words.W4}} {
		if (from|to)%w.bytes != 0 {
			continue
		}
		*w.n = left / int64(w.bytes)
		moved := *w.n * int64(w.bytes)
		from, to, left = from+uint64(moved), to+uint64(moved), left-moved
	}
	s.Unwritten = left >> x.log
	if s.Unwritten == 0 {
		return
	}
	cause := api.OddSliceStart
	switch {
	case even:
		cause = api.OddTail
	case (x.src|x.dst)%4 != 0:
		cause = api.OddPointer
	case uint64(first)<<x.log%4 != 0:
		cause = api.OddCTAStart
	}
	s.Holes = []api.Hole{{Start: s.Start + s.Count - s.Unwritten, Count: s.Unwritten, Cause: cause}}
}

// rounds is how many puts of a peer-to-peer algorithm end in a barrier.
func (x *choice) rounds(p piece) (n int64) {
	others, bytes := int64(x.world-1), p.count<<x.log
	switch p.algorithm {
	case exchange:
		return x.phases()
	case lines:
		return 1
	case segments:
		n = bytes / segmentBytes * others
		if tail := bytes % segmentBytes; tail > 0 {
			fit := segmentBytes / tail
			n += (others + fit - 1) / fit
		}
	}
	return n
}

func (x *choice) oddWhy(n int64) string {
	return fmt.Sprintf("%d elements a rank is an odd slice", n/int64(x.world))
}
