package host

import (
	"fmt"

	"example.com/tandem/api"
)

// NewPlan is a plan that leaves nothing unwritten, without kernels.
func NewPlan(spec api.Spec, call *api.Call) *api.Plan {
	return &api.Plan{Spec: spec.String(), Call: *call, Algorithms: map[string]api.Algorithm{}, Unwritten: make([]int64, call.Ranks)}
}

// Launched says what one launch is on every GPU. A nil Placement is one that is not
// known, as where there is no GPU.
func Launched(kernel string, blocks, threads int, p *Placement) string {
	text := fmt.Sprintf("%s: blocks of %d threads for a rank: %d", kernel, threads, blocks)
	if p == nil {
		return text + "; that they run all at once on a GPU for each rank is assumed, since none is here"
	}
	most := 0
	for _, local := range p.Local {
		most = max(most, len(local))
	}
	return text + fmt.Sprintf("; GPUs, with a cooperative launch each: %d; ranks of a GPU: %d", len(p.GPUs), most)
}
