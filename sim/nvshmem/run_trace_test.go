package nvshmem_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// Whole executions as text: one seed is one execution, byte for byte. Rewritten
// by go test -rewrite, and reviewed as a difference.
func TestTraces(t *testing.T) {
	datadriven.Walk(t, "testdata/traces", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			version, call, opt := traceOf(t, d)
			plan := planOf(t, version, call)
			opt.Trace = true
			result, err := execute(t, version, plan, memory(&call, values(&call, 1, false)), opt)
			var b strings.Builder
			b.WriteString(result.Trace)
			if err != nil {
				fmt.Fprintf(&b, "%v\n", err)
				return b.String()
			}
			for r := range result.Written {
				fmt.Fprintf(&b, "rank %d wrote %v\n", r, result.Written[r])
			}
			return b.String()
		})
	})
}

// traceOf reads: run version=.. collective=.. dtype=.. [op=..] ranks=.. count=..
// [seed=..] [in-place] [stop=(rank,step)] [delay=(rank,step,ns)].
func traceOf(t *testing.T, d *datadriven.TestData) (version string, call api.Call, opt machine.Options) {
	require.Equal(t, "run", d.Cmd)
	call.Scope = api.Block
	for _, a := range d.CmdArgs {
		number := func(i int) int {
			n, err := strconv.Atoi(a.Vals[i])
			require.NoError(t, err)
			return n
		}
		var err error
		switch a.Key {
		case "version":
			version = a.Vals[0]
		case "collective":
			call.Collective, err = api.ParseCollective(a.Vals[0])
		case "dtype":
			call.DType, err = api.ParseDType(a.Vals[0])
		case "op":
			call.Op, err = api.ParseOp(a.Vals[0])
		case "ranks":
			call.Ranks = number(0)
		case "count":
			call.Count = int64(number(0))
		case "in-place":
			call.InPlace = api.InPlaceOwn
		case "seed":
			opt.Seeded, opt.Seed = true, uint64(number(0))
		case "stop":
			opt.Inject = append(opt.Inject, machine.Injection{Rank: number(0), Step: number(1), Harm: machine.Stop})
		case "delay":
			opt.Inject = append(opt.Inject, machine.Injection{Rank: number(0), Step: number(1), Harm: machine.Delay, For: time.Duration(number(2))})
		default:
			t.Fatalf("unknown argument %q", a.Key)
		}
		require.NoError(t, err)
	}
	return version, call, opt
}
