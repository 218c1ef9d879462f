package tandem

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/kernels"
)

// TestLayout holds layout.go to the kernels' layout.h.
func TestLayout(t *testing.T) {
	text, err := kernels.Sources.ReadFile("src/layout.h")
	require.NoError(t, err)
	values := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)\b([A-Z]\w+) = ([^,/}]+?)[\s,}]*(?:$|//|,| })`).FindAllStringSubmatch(string(text), -1) {
		total := 0
		for _, term := range strings.Split(m[2], "+") {
			product := 1
			for _, f := range strings.Split(term, "*") {
				f = strings.TrimSpace(f)
				v, err := strconv.Atoi(f)
				if err != nil {
					var ok bool
					v, ok = values[f]
					require.True(t, ok, "%s in %s", f, m[0])
				}
				product *= v
			}
			total += product
		}
		values[m[1]] = total
	}
	for name, want := range map[string]int{
		"MaxRanks": MaxRanks, "MaxBlocks": maxBlocks, "Peers": peers, "PageGeneration": pageGeneration, "PageEpoch": pageEpoch, "PageOwner": pageOwner,
		"PageLeave": pageLeave, "PageAbort": pageAbort, "PageClaim": pageClaim, "PageHeaders": pageHeaders, "PageFlags": pageFlags, "PageTable": pageTable,
		"PageBytes": pageBytes, "TableWorld": tableWorld, "TableSlot": tableSlot, "TableArrive": tableArrive, "TableProgress": tableProgress,
		"TableStage": tableStage, "TablePages": tablePages, "TableBoxes": tableBoxes, "TableStages": tableStages, "TableReports": tableReports,
		"TableLocal": tableLocal, "ReportStop": host.ReportStop, "ReportFault": host.ReportFault, "ReportStep": host.ReportStep, "ReportEpoch": host.ReportEpoch,
		"ReportPeer": host.ReportPeer, "ReportBlock": host.ReportBlock, "ReportHash": host.ReportHash, "ReportBytes": host.ReportBytes, "InlineWords": inlineWords,
		"Deadline": int(host.Deadline), "Aborted": int(host.Aborted), "Differs": int(host.Differs), "Claimed": int(host.Claimed), "Stopped": int(host.Stopped), "Killed": int(host.Killed),
		"StepLeave": int(StepLeave), "StepBarrier": int(StepBarrier), "PathStaged": pathStaged, "AllToAll": kernelAllToAll, "FlagDiffers": flagDiffers,
	} {
		got, ok := values[name]
		require.True(t, ok, "%s is in layout.h", name)
		require.Equal(t, want, got, name)
	}
	require.LessOrEqual(t, tableLocal+4*MaxRanks, pageBytes-pageTable)
}

// TestTypeWords: what differs has different words, or the same arithmetic.
func TestTypeWords(t *testing.T) {
	joins, err := kernels.Sources.ReadFile("src/kinds.h")
	require.NoError(t, err)
	names := regexp.MustCompile(`X\((\w+)\)`).FindAllStringSubmatch(string(joins), -1)
	require.Len(t, names, joinBits+3)
	for _, d := range api.DTypes() {
		for _, s := range schemes(d) {
			w := typeWord(d, s)
			require.Equal(t, d.Size(), 1<<(w&0xff))
			if s.Op == api.NoOp || w>>24 != 0 {
				continue
			}
			name := names[w>>8&0xff][1]
			want := map[api.Op]string{api.Sum: "Add", api.Avg: "Add", api.Prod: "Mul", api.Min: "Min", api.Max: "Max", api.And: "And", api.Or: "Or", api.Xor: "Xor"}[s.Op]
			require.True(t, strings.HasPrefix(name, want), "%v %v is %s", d, s, name)
			if !s.Op.Bitwise() {
				size := strconv.Itoa(d.Bits())
				require.True(t, strings.HasSuffix(name, size), "%v is %s", d, name)
			}
		}
	}
}

// TestPaths: what is chosen is uniform, safe in place, and changes where it says.
func TestPaths(t *testing.T) {
	path := func(text string, call api.Call) uint32 {
		c, _ := mustRead(t, text)
		return c.plan(&call, 16).path
	}
	for _, ranks := range []int{2, 3, 8, 72} {
		slot := slotBytes(ranks) / 2
		for _, k := range everyCollectiveOf() {
			call := api.Call{Collective: k, DType: api.BF16, Ranks: ranks, Count: slot}
			require.EqualValues(t, pathPush, path("hw:tandem", call))
			call.Count++
			require.NotEqualValues(t, pathPush, path("hw:tandem", call))
			require.NotEqualValues(t, pathPush, path("hw:tandem?path=push", call), "boxes are no larger")
			call.InPlace = api.InPlaceOwn
			if k == api.AllReduce {
				require.EqualValues(t, pathTwoShot, path("hw:tandem?path=direct", call), "peers read what would be overwritten")
			}
			call.InPlace = api.InPlaceStart
			if k == api.ReduceScatter {
				require.EqualValues(t, pathStaged, path("hw:tandem?path=direct", call))
			}
		}
	}
	require.EqualValues(t, pathDirect, path("hw:tandem?path=push", api.Call{Collective: api.AllReduce, DType: api.U8, Op: api.Sum, Ranks: 1, Count: 9}))
	require.Equal(t, []int64{2048, 32768}, Thresholds(api.Call{Collective: api.AllReduce, DType: api.BF16, Ranks: 8}))
}

func everyCollectiveOf() []api.Collective {
	return []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.Broadcast, api.AllToAll}
}
