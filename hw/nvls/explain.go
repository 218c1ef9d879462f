package nvls

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/inswitch"
	"example.com/tandem/hw/tandem"
)

// The algorithms of plans and reports.
const (
	algSwitch = "nvls"
	algTree   = "fixed_tree"
)

const word = 16 // bytes of an access

// Plan is what a team would do with a call; addresses do not matter. m is nil where
// there is no GPU: then as many blocks as there can be are taken to fit, and calls
// that are tandem's have no plan.
func Plan(m *host.Machine, spec api.Spec, call api.Call) (*api.Plan, error) {
	c, err := read(spec)
	if err != nil {
		return nil, err
	}
	if err := call.Validate(); err != nil {
		return nil, err
	}
	collective, _, ok := inSwitch(&call)
	if !ok {
		p, err := tandem.Plan(m, c.rest(), call)
		if p != nil {
			p.Spec = spec.String()
			p.Notes = append([]string{"the switch has no form for this call: it is tandem's"}, p.Notes...)
		}
		return p, err
	}
	if err := tandem.Admit(c.rest(), &call); err != nil {
		return nil, err
	}
	most, on, err := inswitch.Fit(c.options(m, api.TeamConfig{Ranks: call.Ranks}))
	if err != nil {
		return nil, err
	}
	x := c.shape(&call, collective, c.grid(&call, most))
	p := host.NewPlan(spec, &call)
	x.explain(p)
	p.Notes = []string{
		host.Launched(kernelOf(collective), x.blocks, c.choice.Threads, on),
		"words of 16 bytes of every rank's go through the switch, in team memory; what is shorter is reduced in the fixed tree. Neither depends on addresses",
	}
	if c.choice.Native {
		p.Notes = append(p.Notes, "multimem instructions: the switch's own arithmetic")
	} else {
		p.Notes = append(p.Notes, "multicast is emulated, with an arithmetic of the kernels' own")
	}
	return p, nil
}

// shape is how the kernels divide a call.
type shape struct {
	call        *api.Call
	collective  uint32
	size, bytes int64 // of an element, of a block
	unit, rows  int64 // bytes that are dealt out together, and how many of these
	most        int64 // rows of a chunk
	blocks      int
}

func (c *config) shape(call *api.Call, collective uint32, blocks int) *shape {
	x := &shape{call: call, collective: collective, size: int64(call.DType.Size()), blocks: blocks, unit: word}
	x.bytes = call.Count * x.size
	x.rows = x.bytes / word
	part := (int64(c.stage/2) - inswitch.RestBytes) / int64(blocks) / word
	switch collective {
	case inswitch.AllReduce:
		x.unit = word * int64(call.Ranks)
		x.rows = x.bytes / x.unit
		x.most = part / int64(call.Ranks)
	case inswitch.ReduceScatter:
		x.most = part / int64(call.Ranks+1)
	default:
		x.rows = (x.bytes + word - 1) / word
		x.most = part / int64(call.Ranks)
	}
	return x
}

// rest is the elements that the switch leaves.
func (x *shape) rest() int64 { return (x.bytes - min(x.rows*x.unit, x.bytes)) / x.size }

// rowsOf are those of a block.
func (x *shape) rowsOf(b int) (lo, hi int64) {
	return x.rows * int64(b) / int64(x.blocks), x.rows * int64(b+1) / int64(x.blocks)
}

// rounds is how often a block waits for all ranks: for the headers, and in every
// chunk after the stage is filled and, of a reduction, after the switch.
func (x *shape) rounds(rows int64) int64 {
	chunks := max(1, (rows+x.most-1)/x.most)
	if x.collective == inswitch.AllGather {
		return 1 + chunks
	}
	return 1 + 2*chunks
}

func (x *shape) explain(p *api.Plan) {
	k := api.Kernel{Name: kernelOf(x.collective)}
	for b := range x.blocks {
		lo, hi := x.rowsOf(b)
		cta := x.cta(b, lo, hi)
		p.Cost.Rounds = max(p.Cost.Rounds, x.rounds(hi-lo))
		p.Cost.Words += cta.Words
		if cta.Count > 0 {
			k.CTAs = append(k.CTAs, cta)
		}
	}
	if len(k.CTAs) > 0 {
		p.Algorithms[algSwitch] = api.Algorithm{Evidence: api.FromSource, Contract: x.contract()}
	}
	if n := x.rest(); n > 0 || len(k.CTAs) == 0 {
		why := fmt.Sprintf("less than %d bytes: every rank reduces them for itself", x.unit)
		if n == 0 {
			why = "nothing to move; the call still synchronises"
		}
		p.Algorithms[algTree] = api.Algorithm{Evidence: api.FromSource, Contract: api.Exact}
		k.CTAs = append(k.CTAs, api.CTA{CTA: x.blocks - 1, Start: x.call.Count - n, Count: n, Algorithm: algTree, Why: why, Rounds: x.rounds(0)})
	}
	p.Kernels = []api.Kernel{k}
	p.Cost.Launches = 1
}

// cta is what a block puts through the switch, all of its chunks.
func (x *shape) cta(b int, lo, hi int64) api.CTA {
	start, end := min(lo*x.unit, x.bytes)/x.size, min(hi*x.unit, x.bytes)/x.size
	cta := api.CTA{CTA: b, Start: start, Count: end - start, Algorithm: algSwitch, Why: "whole words of every rank", Rounds: x.rounds(hi - lo), Words: hi - lo}
	if x.collective == inswitch.AllGather {
		cta.Why = "every rank stores its words at all others"
		for r := range x.call.Ranks {
			cta.Slices = append(cta.Slices, api.Slice{Rank: r, Start: int64(r)*x.call.Count + start, Count: cta.Count, Words: api.WordCount{W16: hi - lo}})
		}
	}
	return cta
}

// contract of what the switch makes: sums of floating numbers round where nobody
// can see.
func (x *shape) contract() api.Contract {
	if x.call.Collective.Reduces() && x.call.Op == api.Sum && x.call.DType.Float() {
		return api.Faithful
	}
	return api.Exact
}
