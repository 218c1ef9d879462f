package accept

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/probe"
	"example.com/tandem/conformance/vectors"
)

// Options are what Run needs.
type Options struct {
	// HW executes the kernels, Sim their model.
	HW, Sim api.Backend
	Driver  gpu.Driver
	// Params are added to the specs of kernels, as "multicast=on".
	Params string
	// Model are added to the specs of the model.
	Model string
	// Most is the largest number of source elements of all ranks that is run, for
	// virtual machines; 0 is no limit.
	Most int64
	// Probe is the number of elements of the calls that the probe makes; 0 leaves
	// it out. ProbeTypes are the types; none is all that switches sum.
	Probe      int64
	ProbeTypes []api.DType
	// Bench is the sizes that are timed, in bytes of a rank's source; none leaves
	// times out, also those of the rows.
	Bench []int64
	// Dir is where the vectors go; "" is nowhere.
	Dir string
	Out io.Writer
	// Getenv is read for the switches of multicast.
	Getenv func(string) string
}

// Result is one row on the kernels.
type Result struct {
	Row
	Unwritten [2]int64   // of rank 0, before and after
	MS        [2]float64 // the slowest rank's median; 0 is not timed
	Run       bool
	Problem   string // "" where all bits and all holes are the model's
}

// Summary is how it went.
type Summary struct {
	Rows       []Result
	Neighbours int
	Directions int
	Nvls       int
	Problems   []string
}

// Run does all of it. The error is of what could not be tried at all; what was
// tried and is wrong is in Summary.Problems.
func Run(ctx context.Context, o Options) (sum *Summary, err error) {
	o.preflight()
	s := &Summary{}
	bundle, err := o.newBundle()
	if err != nil {
		return nil, err
	}
	rows, err := Rows()
	if err != nil {
		return nil, err
	}
	var both runners
	defer func() { err = errors.Join(err, both.close(context.WithoutCancel(ctx))) }()
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Call.Ranks, b.Call.Ranks) })
	for _, r := range rows {
		s.Rows = append(s.Rows, Result{Row: r})
	}
	for i, version := range []string{"2dca770", "pr131"} {
		for k := range s.Rows {
			if o.Most > 0 && s.Rows[k].Call.Count*int64(s.Rows[k].Call.Ranks) > o.Most {
				continue
			}
			s.Rows[k].Run = true
			if err := o.row(ctx, &both, bundle, version, i, &s.Rows[k]); err != nil {
				return nil, err
			}
		}
	}
	if err := o.timeRows(ctx, s); err != nil {
		return nil, err
	}
	s.table(&o)
	if err := s.neighbours(ctx, &both, bundle, &o); err != nil {
		return nil, err
	}
	if err := s.directions(ctx, &both, o); err != nil {
		return nil, err
	}
	if err := s.nvls(ctx, &both, bundle, &o); err != nil {
		return nil, err
	}
	if err := o.probe(ctx); err != nil {
		return nil, err
	}
	if err := o.bench(ctx); err != nil {
		return nil, err
	}
	run := 0
	for _, r := range s.Rows {
		if r.Run {
			run++
		}
		if r.Problem != "" {
			s.Problems = append(s.Problems, r.Problem)
		}
	}
	fmt.Fprintf(o.Out, "%d of %d rows before and after, %d neighbours, %d rows in other directions or on 8 ranks, %d calls of tandem-nvls: %d problems\n", run, len(s.Rows), s.Neighbours, s.Directions, s.Nvls, len(s.Problems))
	return s, bundle.close()
}

// runners keep one team open each.
type runners struct{ hw, sim conformance.Runner }

func (r *runners) close(ctx context.Context) error {
	return errors.Join(r.hw.Close(ctx), r.sim.Close(ctx))
}

// spec parses "implementation" on a backend, with parameters.
func spec(b api.Backend, implementation, params string) (conformance.Side, error) {
	text := b.Name() + ":" + implementation
	if params != "" {
		text += "?" + params
	}
	s, err := api.ParseSpec(text)
	return conformance.Side{Backend: b, Spec: s}, err
}

// pair records a call on kernels and model.
func pair(ctx context.Context, r *runners, o *Options, kernels, model string, call api.Call) (got, want *vectors.Row, err error) {
	hw, err := spec(o.HW, kernels, o.Params)
	if err != nil {
		return nil, nil, err
	}
	sim, err := spec(o.Sim, model, o.Model)
	if err != nil {
		return nil, nil, err
	}
	if got, err = r.hw.Record(ctx, hw, call); err != nil {
		return nil, nil, fmt.Errorf("%v: %w", hw.Spec, err)
	}
	if want, err = r.sim.Record(ctx, sim, call); err != nil {
		return nil, nil, fmt.Errorf("%v: %w", sim.Spec, err)
	}
	return got, want, nil
}

// differs says how two rows differ; "" if no bit does.
func differs(got, want *vectors.Row) string {
	if got.Fault != nil || want.Fault != nil {
		return fmt.Sprintf("fault %v, the model's %v", got.Fault, want.Fault)
	}
	for rank := range want.Hash {
		switch {
		case got.Unwritten[rank] != nil && want.Unwritten[rank] != nil && *got.Unwritten[rank] != *want.Unwritten[rank]:
			return fmt.Sprintf("rank %d: %d unwritten, the model leaves %d", rank, *got.Unwritten[rank], *want.Unwritten[rank])
		case got.GuardHits[rank] != 0:
			return fmt.Sprintf("rank %d: %d guard bytes were overwritten", rank, got.GuardHits[rank])
		case got.Hash[rank] != want.Hash[rank]:
			return fmt.Sprintf("rank %d: other bits than the model", rank)
		}
	}
	return ""
}

func (o *Options) row(ctx context.Context, both *runners, b *bundle, version string, i int, r *Result) error {
	got, want, err := pair(ctx, both, o, "cascade@"+version, "nvshmem@"+version, r.Call)
	if err != nil {
		return err
	}
	if got.Unwritten != nil && got.Unwritten[0] != nil {
		r.Unwritten[i] = *got.Unwritten[0]
	}
	why := differs(got, want)
	if reported := []int64{r.Before, r.After}[i]; why == "" && r.Unwritten[i] != reported {
		why = fmt.Sprintf("%d unwritten, the pull request has %d", r.Unwritten[i], reported)
	}
	if why != "" {
		r.Problem = fmt.Sprintf("%s: %v: %s", version, &r.Call, why)
	}
	return b.add("cascade@"+version, "nvshmem@"+version, got)
}

func (s *Summary) check(what string, call api.Call, got, want *vectors.Row) {
	if why := differs(got, want); why != "" {
		s.Problems = append(s.Problems, fmt.Sprintf("%s: %v: %s", what, &call, why))
	}
}

// neighbours are calls beside the rows, in every version.
func (s *Summary) neighbours(ctx context.Context, r *runners, b *bundle, o *Options) error {
	for _, ranks := range []int{2, 4} {
		for k, version := range []string{"2dca770", "pr131", "pr131-team", "pr131-tail"} {
			for n, call := range Neighbours(ranks) {
				if o.Most > 0 && (n+k)%8 != 0 {
					continue
				}
				got, want, err := pair(ctx, r, o, "cascade@"+version, "nvshmem@"+version, call)
				if err != nil {
					return err
				}
				s.check(version, call, got, want)
				if err := b.add("cascade@"+version, "nvshmem@"+version, got); err != nil {
					return err
				}
				s.Neighbours++
			}
		}
	}
	return nil
}

// probe says what the outputs of sums through the switch tell of it.
func (o *Options) probe(ctx context.Context) error {
	if o.Probe == 0 {
		return nil
	}
	side, err := spec(o.HW, "tandem-nvls", o.Params)
	if err != nil {
		return err
	}
	rep, err := probe.Run(ctx, probe.Backend{Backend: o.HW, Spec: side.Spec}, side.Spec.String(), probe.Options{Count: o.Probe, DTypes: o.ProbeTypes})
	if err != nil {
		return err
	}
	for _, c := range rep.Cells {
		fmt.Fprintf(o.Out, "probe: %s of %s, %d ranks: %s\n", c.Op, c.DType, c.Ranks, c.Verdict)
	}
	return nil
}
