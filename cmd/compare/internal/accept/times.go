package accept

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/bench"
	"example.com/tandem/cmd/compare/internal/term"
)

// The samples of a row's time.
const (
	warmUp  = 2
	samples = 9
)

// timeRows times the rows that were run, each call launched by itself.
func (o *Options) timeRows(ctx context.Context, s *Summary) error {
	if len(o.Bench) == 0 {
		return nil
	}
	for i, version := range []string{"2dca770", "pr131"} {
		var team api.Team
		for k := range s.Rows {
			r := &s.Rows[k]
			if !r.Run {
				continue
			}
			if team == nil || len(team.Members()) != r.Call.Ranks {
				next, err := o.reopen(ctx, team, "cascade@"+version, r.Call.Ranks)
				if err != nil {
					return err
				}
				team = next
			}
			took, err := timed(ctx, team, r.Call)
			if err != nil {
				return errors.Join(fmt.Errorf("the time of %v: %w", &r.Call, err), team.Close(ctx))
			}
			r.MS[i] = float64(took.Microseconds()) / 1e3
		}
		if team != nil {
			if err := team.Close(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// reopen closes a team, if there is one, and opens another.
func (o *Options) reopen(ctx context.Context, old api.Team, implementation string, ranks int) (api.Team, error) {
	if old != nil {
		if err := old.Close(ctx); err != nil {
			return nil, err
		}
	}
	side, err := spec(o.HW, implementation, o.Params)
	if err != nil {
		return nil, err
	}
	return o.HW.Open(ctx, side.Spec, api.TeamConfig{Ranks: ranks})
}

// timed is the slowest rank's median.
func timed(ctx context.Context, team api.Team, call api.Call) (slowest time.Duration, err error) {
	timer, ok := team.(api.Timer)
	if !ok {
		return 0, errors.New("it runs on no device that tells the time")
	}
	m, err := timer.Time(ctx, api.Timing{Call: call, Calls: 1})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ranks := make([][]time.Duration, call.Ranks)
	for n := range warmUp + samples {
		if err := m.Prepare(ctx); err != nil {
			return 0, err
		}
		took, err := m.Sample(ctx)
		if err != nil {
			return 0, err
		}
		for r := range took {
			if n >= warmUp {
				ranks[r] = append(ranks[r], took[r])
			}
		}
	}
	for _, list := range ranks {
		slices.Sort(list)
		slowest = max(slowest, list[len(list)/2])
	}
	return slowest, nil
}

// bench times tandem and tandem-nvls side by side, a rank on every GPU and two
// on one.
func (o *Options) bench(ctx context.Context) (err error) {
	if len(o.Bench) == 0 {
		fmt.Fprintln(o.Out, "times: none, as a virtual GPU has none")
		return nil
	}
	ranks := max(2, len(o.Driver.Devices()))
	var sides []bench.Side
	defer func() {
		for _, s := range sides {
			err = errors.Join(err, s.Team.Close(context.WithoutCancel(ctx)))
		}
	}()
	for _, s := range []struct{ implementation, params string }{{"tandem", ""}, {"tandem-nvls", o.Params}} {
		side, err := spec(o.HW, s.implementation, s.params)
		if err != nil {
			return err
		}
		team, err := o.HW.Open(ctx, side.Spec, api.TeamConfig{Ranks: ranks})
		if err != nil {
			return err
		}
		sides = append(sides, bench.Side{Spec: side.Spec.String(), Team: team})
	}
	rep, err := bench.Run(ctx, bench.Config{Points: points(ranks, o.Bench), Samples: 30, WarmUp: 5, Calls: 20}, sides)
	if err != nil {
		return err
	}
	rep.GPU = cmp.Or(o.Driver.Devices()[0].Info().Name, "a GPU without a name")
	rep.Environment = map[string]string{"driver": o.Driver.Name(), "go": runtime.Version(), "gpus": fmt.Sprint(len(o.Driver.Devices()))}
	rep.Flags = []string{"accept"}
	fmt.Fprintf(o.Out, "\n%s\n", rep.Text(term.Coloured(false)))
	return o.keep(rep)
}

func points(ranks int, sizes []int64) (out []bench.Point) {
	for _, c := range []api.Collective{api.AllGather, api.AllReduce, api.ReduceScatter} {
		op := ""
		if c.Reduces() {
			op = api.Sum.String()
		}
		for _, n := range sizes {
			out = append(out, bench.Point{Collective: c.Name(), DType: api.BF16.String(), Op: op, Ranks: ranks, Bytes: n, Launch: bench.Graph})
		}
	}
	return out
}

// keep writes the times beside the vectors.
func (o *Options) keep(rep *bench.Report) (err error) {
	if o.Dir == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(o.Dir, "bench.json"))
	if err != nil {
		return err
	}
	return errors.Join(rep.Write(f), f.Close())
}
