package tandem

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/hw/host"
)

// pathNames are the algorithms of plans and reports, as the kernels number paths.
var pathNames = [...]string{pathPush: "push", pathDirect: "direct", pathTwoShot: "two_shot", pathStaged: "staged"}

const (
	unit        = 16 // bytes that are dealt out to blocks
	lineUnit    = 32 // bytes of a pushed unit: half of a line is flags
	headerBytes = 16
)

// Plan is what a team would do with a call. Where m is nil there is no GPU: then
// the table of thresholds has to be named, and GPUs are assumed to hold as many
// blocks as a call may have.
func Plan(m *host.Machine, spec api.Spec, call api.Call) (*api.Plan, error) {
	c, err := read(spec)
	if err != nil {
		return nil, err
	}
	if err := call.Validate(); err != nil {
		return nil, err
	}
	if err := c.admitRanks(call.Ranks); err != nil {
		return nil, err
	}
	if err := c.admit(&call); err != nil {
		return nil, err
	}
	e := &Engine{config: c, machine: m, most: maxBlocks}
	switch {
	case m != nil:
		err = e.ready(call.Ranks)
	case c.named == "":
		err = &api.Unavailable{Spec: spec.String(), Reason: "thresholds go by the GPU's name, and there is no GPU", Hint: fmt.Sprintf("say whose: table= one of %q", Tables())}
	default:
		c.look("", call.Ranks)
	}
	if err != nil {
		return nil, err
	}
	return e.explain(&call), nil
}

// explained is a call and what the host decides for it.
type explained struct {
	p     plan
	c     *config
	call  *api.Call
	total int64 // units of a block of all lanes
}

func (e *Engine) explain(call *api.Call) *api.Plan {
	x := &explained{e.config.plan(call, e.most), e.config, call, units(call)}
	p := host.NewPlan(e.config.spec, call)
	p.Algorithms[x.name()] = api.Algorithm{Evidence: api.FromSource, Contract: api.Exact}
	base := int64(0)
	for lane := range call.Lanes() {
		k := api.Kernel{Name: kernelNames[x.p.kernel], Lane: lane, CTAs: x.ctas(lane, base)}
		if len(k.CTAs) == 0 {
			k.CTAs = []api.CTA{x.cta(0, "nothing to move; the call still synchronises")}
		}
		p.Kernels = append(p.Kernels, k)
		base += unitsOf(call.Lane(lane))
	}
	p.Cost = api.Cost{Launches: 1, Rounds: x.barriers(), Bytes: x.linkBytes()}
	p.Notes = []string{x.c.row(call.Ranks).String(), host.Launched(kernelNames[x.p.kernel], x.p.blocks, threads, e.on)}
	if call.Collective.Reduces() {
		how := "rounded at every node in the element type"
		if x.c.modeOf(call) == modeF32 {
			how = "accumulated in f32 and rounded once"
		}
		p.Notes = append(p.Notes, "the balanced tree over the ranks, "+how+"; the same bits on every path")
	}
	return p
}

func (x *explained) name() string { return pathNames[x.p.path] }

func unitsOf(l api.LaneShape) int64 { return (l.Count*int64(l.DType.Size()) + unit - 1) / unit }

func (x *explained) cta(block int, why string) api.CTA {
	return api.CTA{CTA: block, Algorithm: x.name(), Why: why, Rounds: x.barriers()}
}

// ctas are the blocks that do something of a lane whose first unit is number base
// of all. Units that are dealt to blocks in turn are one entry.
func (x *explained) ctas(lane int, base int64) []api.CTA {
	l := x.call.Lane(lane)
	n := unitsOf(l)
	if n == 0 {
		return nil
	}
	if x.dealt() && x.total > int64(x.p.blocks)*threads {
		cta := x.cta(0, fmt.Sprintf("%s; units of %d bytes, dealt to the threads of all %d blocks in turn", x.why(), unit, x.p.blocks))
		x.claim(&cta, l, 0, n)
		return []api.CTA{cta}
	}
	var out []api.CTA
	for b := range x.p.blocks {
		cta := x.cta(b, x.why())
		if x.p.path == pathTwoShot {
			x.shots(&cta, l, n)
		} else if lo, hi := x.part(b, n, base); lo < hi {
			x.claim(&cta, l, lo, hi)
		}
		if cta.Count > 0 {
			out = append(out, cta)
		}
	}
	return out
}

// dealt reports whether threads take every so many-th unit.
func (x *explained) dealt() bool {
	switch x.p.kernel {
	case push2Kernel, pushKernel:
		return true
	}
	return false
}

// share is where part i of so many of n units begins.
func share(n int64, i, parts int) int64 { return n * int64(i) / int64(parts) }

// part is what a block has of n units of a lane: a part of every lane in the
// general kernels, of all lanes together in the others.
func (x *explained) part(b int, n, base int64) (lo, hi int64) {
	switch {
	case x.p.kernel.general():
		return share(n, b, x.p.blocks), share(n, b+1, x.p.blocks)
	case x.dealt():
		lo, hi = int64(b)*threads, int64(b+1)*threads
	default:
		lo, hi = share(x.total, b, x.p.blocks), share(x.total, b+1, x.p.blocks)
	}
	return min(max(lo-base, 0), n), min(max(hi-base, 0), n)
}

// elements are those of units [lo, hi) of a lane.
func elements(l api.LaneShape, lo, hi int64) (start, count int64) {
	size := int64(l.DType.Size())
	start = min(lo*unit/size, l.Count)
	return start, min(hi*unit/size, l.Count) - start
}

// claim gives units to a block: of every rank's part, where there are several.
func (x *explained) claim(cta *api.CTA, l api.LaneShape, lo, hi int64) {
	cta.Start, cta.Count = elements(l, lo, hi)
	if _, parts := x.call.Collective.Blocks(x.call.Ranks); parts > 1 && cta.Count > 0 {
		for r := range x.call.Ranks {
			cta.Slices = append(cta.Slices, api.Slice{Rank: r, Start: int64(r)*l.Count + cta.Start, Count: cta.Count})
		}
	}
}

// shots gives a block its part of the slice of every rank.
func (x *explained) shots(cta *api.CTA, l api.LaneShape, n int64) {
	for r := range x.call.Ranks {
		first := share(n, r, x.call.Ranks)
		all := share(n, r+1, x.call.Ranks) - first
		start, count := elements(l, first+share(all, cta.CTA, x.p.blocks), first+share(all, cta.CTA+1, x.p.blocks))
		if count <= 0 {
			continue
		}
		if cta.Count == 0 {
			cta.Start = start
		}
		cta.Count += count
		cta.Slices = append(cta.Slices, api.Slice{Rank: r, Start: start, Count: count})
	}
}

// why says what the path follows from.
func (x *explained) why() string {
	bytes := x.total * unit
	t := x.c.row(x.call.Ranks)
	switch {
	case x.call.Ranks == 1:
		return "a team of one copies"
	case x.p.path == pathPush:
		return fmt.Sprintf("%d bytes of a block, at most the %d of a box", bytes, x.c.slot(x.call.Ranks))
	case x.p.path == pathStaged && x.c.path != "staged" && !x.c.staged:
		return "in place at the start of the source: peers would read what is overwritten"
	case x.p.path == pathStaged:
		return "the spec asks that peers read copies in team memory"
	case x.p.path == pathTwoShot && x.c.path != "two_shot" && bytes >= t.TwoShot:
		return fmt.Sprintf("%d bytes, at least the %d of two shots", bytes, t.TwoShot)
	case x.p.path == pathTwoShot && x.c.path != "two_shot":
		return "in place: nobody reads a slice but the rank that writes it"
	case x.c.path != "auto":
		return fmt.Sprintf("%d bytes of a block, path=%s", bytes, x.c.path)
	}
	return fmt.Sprintf("%d bytes of a block, more than the %d of a box", bytes, x.c.slot(x.call.Ranks))
}

// barriers is how often the busiest block waits for all ranks: for their headers,
// before a second shot or a staged chunk is read, and at the end where peers read
// its memory.
func (x *explained) barriers() int64 {
	switch {
	case x.call.Ranks == 1:
		return 0
	case x.p.path == pathPush:
		return 1
	case x.p.path == pathDirect:
		return 2
	case x.p.path == pathTwoShot && x.alike():
		return 2
	case x.p.path == pathTwoShot:
		return 3
	}
	return 2 + x.chunks()
}

// alike reports whether a slice is stored at all ranks as it is made, since all
// buffers lie alike in their lines of 16 bytes.
func (x *explained) alike() bool {
	if x.p.kernel.general() {
		return false
	}
	first, _ := x.call.Addrs(0, 0)
	for r := range x.call.Ranks {
		if src, dst := x.call.Addrs(0, r); (src^first|dst^first)%unit != 0 {
			return false
		}
	}
	return true
}

// chunks is how many parts of the stage the busiest block fills.
func (x *explained) chunks() (n int64) {
	room := x.c.stage / int64(x.p.blocks) / unit
	switch x.p.collective {
	case kernelReduceScatter, kernelAllToAll:
		room /= int64(x.call.Ranks)
	}
	for lane := range x.call.Lanes() {
		all, most := unitsOf(x.call.Lane(lane)), int64(0)
		for b := range x.p.blocks {
			most = max(most, share(all, b+1, x.p.blocks)-share(all, b, x.p.blocks))
		}
		n += (most + room - 1) / room
	}
	return n
}

// linkBytes is what the rank that sends most puts on its links, or others fetch
// from it: headers, and data as lines that are half flags, or as it is.
func (x *explained) linkBytes() int64 {
	others := int64(x.call.Ranks - 1)
	if others == 0 {
		return 0
	}
	sent := headerBytes * others
	if x.p.path == pathPush {
		return sent + lineUnit*x.total*others
	}
	for lane := range x.call.Lanes() {
		l := x.call.Lane(lane)
		bytes := l.Count * int64(l.DType.Size())
		if x.p.path != pathTwoShot {
			sent += bytes * others
			continue
		}
		most := int64(0)
		for r := range x.call.Ranks {
			if x.p.collective == kernelBroadcast && r != x.call.Root {
				continue // the root has all to give
			}
			_, n := elements(l, share(unitsOf(l), r, x.call.Ranks), share(unitsOf(l), r+1, x.call.Ranks))
			most = max(most, n*int64(l.DType.Size()))
		}
		sent += bytes + (others-1)*most
	}
	return sent
}

// Admit says whether a team of a spec takes a valid call.
func Admit(spec api.Spec, call *api.Call) error {
	c, err := read(spec)
	if err != nil {
		return err
	}
	if err := c.admitRanks(call.Ranks); err != nil {
		return err
	}
	return c.admit(call)
}
