package nvshmem

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// table reads a tab-separated file: comment lines, a header, rows by column.
func table(t *testing.T, path string) []map[string]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var header []string
	var rows []map[string]string
	for in := bufio.NewScanner(f); in.Scan(); {
		line := in.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if header == nil {
			header = cells
			continue
		}
		row := map[string]string{}
		for i, c := range cells {
			row[header[i]] = c
		}
		rows = append(rows, row)
	}
	return rows
}

func integer(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

func offset(n int64) api.Offsets { return api.Offsets{n} }

// plan plans and checks what holds for every plan.
func plan(t *testing.T, spec string, call api.Call) *api.Plan {
	t.Helper()
	p, err := tryPlan(spec, call)
	require.NoError(t, err)
	checkPlan(t, p)
	return p
}

func tryPlan(spec string, call api.Call) (*api.Plan, error) {
	parsed, err := api.ParseSpec("sim:nvshmem@" + spec)
	if err != nil {
		return nil, err
	}
	return Plan(parsed, call, nil)
}

func allReduce(ranks int, count, off int64) api.Call {
	return api.Call{
		Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: ranks, Count: count,
		SrcOffset: offset(off), DstOffset: offset(off),
	}
}

// every says that all ranks have n.
func every(ranks int, n int64) []int64 {
	out := make([]int64, ranks)
	for i := range out {
		out[i] = n
	}
	return out
}

func TestPR131Table(t *testing.T) {
	rows := table(t, "testdata/pr131.tsv")
	require.Len(t, rows, 22)
	for _, row := range rows {
		scope, err := api.ParseScope(row["scope"])
		require.NoError(t, err)
		for _, dtype := range []api.DType{api.BF16, api.F16} {
			for version, column := range map[string]string{"2dca770": "unwritten_before", "pr131": "unwritten_after", "3.4.5": "unwritten_before"} {
				call := allReduce(int(integer(t, row["pes"])), integer(t, row["count"]), integer(t, row["offset"]))
				call.DType, call.Scope = dtype, scope
				p := plan(t, version, call)
				require.Equal(t, every(call.Ranks, integer(t, row[column])), p.Unwritten, "%s %s", version, call)
				if strings.HasPrefix(row["note"], "before: whole call") && column == "unwritten_before" {
					require.Len(t, p.Kernels[0].CTAs, 16)
					for _, c := range p.Kernels[0].CTAs {
						require.Equal(t, "segment", c.Algorithm)
					}
				}
			}
		}
	}
}

func TestRecordedCoverage(t *testing.T) {
	rows := table(t, "testdata/nvls-coverage-3.4.5.tsv")
	require.Len(t, rows, 90)
	for _, row := range rows {
		collective, err := api.ParseCollective(row["collective"])
		require.NoError(t, err)
		call := api.Call{
			Collective: collective, DType: api.BF16, Ranks: int(integer(t, row["ranks"])), Count: integer(t, row["count"]), Scope: api.Block,
			SrcOffset: offset(integer(t, row["src_offset"])), DstOffset: offset(integer(t, row["dst_offset"])),
		}
		if collective.Reduces() {
			call.Op = api.Sum
		}
		p := plan(t, "3.4.5", call)
		require.Equal(t, every(call.Ranks, integer(t, row["unwritten"])), p.Unwritten, "%s", call)
	}
}
