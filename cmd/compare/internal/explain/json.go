package explain

import "example.com/tandem/api"

// PlanJSON is the JSON form of a plan, schema tandem.plan/1.
type PlanJSON struct {
	Schema    string                  `json:"schema"`
	Spec      string                  `json:"spec"`
	Call      api.Call                `json:"call"`
	Contract  api.Contract            `json:"contract"`
	Evidence  map[string]api.Evidence `json:"evidence"`
	Kernels   []api.Kernel            `json:"kernels"`
	Cost      api.Cost                `json:"cost"`
	Unwritten []int64                 `json:"unwritten"`
	Fault     *api.Fault              `json:"fault"`
	Unknown   string                  `json:"unknown,omitempty"`
	Notes     []string                `json:"notes"`
}

// DiffJSON is the JSON form of two plans of one call, schema
// tandem.plan_diff/1. Left and right of Difference are totals.
type DiffJSON struct {
	Schema     string     `json:"schema"`
	Left       PlanJSON   `json:"left"`
	Right      PlanJSON   `json:"right"`
	Difference Difference `json:"difference"`
}

// JSON is the JSON form of a plan.
func JSON(p *api.Plan) PlanJSON {
	j := PlanJSON{
		Schema: "tandem.plan/1", Spec: p.Spec, Call: p.Call, Contract: p.Contract(), Evidence: p.Evidence(),
		Kernels: p.Kernels, Cost: p.Cost, Unwritten: p.Unwritten, Fault: p.Fault, Unknown: p.Unknown, Notes: p.Notes,
	}
	if j.Kernels == nil {
		j.Kernels = []api.Kernel{}
	}
	if j.Unwritten == nil {
		j.Unwritten = []int64{}
	}
	if j.Notes == nil {
		j.Notes = []string{}
	}
	return j
}

// Diff is the JSON form of two plans and what sets them apart.
func Diff(left, right *api.Plan, d Difference) DiffJSON {
	return DiffJSON{"tandem.plan_diff/1", JSON(left), JSON(right), d}
}
