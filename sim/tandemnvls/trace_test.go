package tandemnvls_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
	"example.com/tandem/sim/tandemnvls"
)

var update = flag.Bool("update", false, "rewrite testdata/trace.txt")

// TestTrace is every step of three small calls, as text: one unit through the
// switch, and a rest as lines where there is one.
func TestTrace(t *testing.T) {
	var b strings.Builder
	for _, c := range []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather} {
		call := api.Call{Collective: c, DType: api.BF16, Ranks: 2, Count: 20, SrcOffset: api.Offsets{1, 0}, DstOffset: api.Offsets{0, 3}}
		if c.Reduces() {
			call.Op = api.Sum
		}
		session, err := tandemnvls.Family{}.Open(specOf(nil), api.TeamConfig{Ranks: 2})
		require.NoError(t, err)
		plan, err := tandemnvls.Family{}.Plan(specOf(nil), call)
		require.NoError(t, err)
		program, err := session.Program(plan)
		require.NoError(t, err)
		mem := memoryOf(&call, func(int, int64) uint64 { return 0x3F80 })
		result, err := machine.New(machine.Config{Ranks: 2}).Run(program, mem, machine.Options{Trace: true})
		require.NoError(t, err)
		b.WriteString(call.String() + "\n" + result.Trace + "\n")
	}
	const name = "testdata/trace.txt"
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "go test -run Trace -update rewrites it")
}
