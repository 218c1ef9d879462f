package cascade

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/hw/hwtest"
	"example.com/tandem/hw/kernels"
)

func planned(t require.TestingT, text string, call api.Call) (*api.Plan, error) {
	s, err := api.ParseSpec(text)
	require.NoError(t, err)
	return Plan(nil, s, call)
}

// TestLimits holds select.go to the kernels' header.
func TestLimits(t *testing.T) {
	text, err := kernels.Sources.ReadFile("src/nvls_layout.h")
	require.NoError(t, err)
	for name, want := range map[string]int{"SegmentBytes": segmentBytes, "ExchangeLimit": exchangeLimit, "LineLimit": lineLimit, "LineTotal": lineTotal} {
		m := regexp.MustCompile(name + ` = (\d+)`).FindSubmatch(text)
		require.NotNil(t, m, name)
		got, err := strconv.Atoi(string(m[1]))
		require.NoError(t, err)
		require.Equal(t, want, got, name)
	}
	require.Regexp(t, `Before\b[^,}]*, After\b[^,}]*, AfterTeam\b[^,}]*, AfterTail\b`, string(text))
	require.Equal(t, []string{Before, After, AfterTeam, AfterTail}, versions)
}

// TestPublishedHoles are the rows of the pull request: outputs that stay unwritten
// before it; none does after it.
func TestPublishedHoles(t *testing.T) {
	for _, c := range []struct {
		ranks  int
		count  int64
		offset int64
		scope  api.Scope
		want   int64
	}{
		{2, 1048576, 0, api.OnStream, 0}, {2, 1048574, 0, api.OnStream, 0}, {2, 1048573, 0, api.OnStream, 65548}, {2, 1048575, 0, api.OnStream, 32776},
		{2, 131104, 0, api.OnStream, 65568}, {2, 131105, 0, api.OnStream, 61470}, {2, 1048574, 0, api.Block, 524288},
		{2, 1024, 1, api.OnStream, 1024}, {2, 1024, 1, api.Block, 1024}, {2, 131072, 1, api.OnStream, 131072}, {2, 131072, 1, api.Block, 131072},
		{4, 1048576, 0, api.OnStream, 0}, {4, 1048572, 0, api.OnStream, 0}, {4, 1048573, 0, api.OnStream, 32776}, {4, 524292, 0, api.OnStream, 16388}, {4, 131104, 0, api.OnStream, 0},
		{4, 1048572, 0, api.Block, 524288}, {4, 524292, 0, api.Block, 262148},
		{4, 1024, 1, api.OnStream, 1024}, {4, 1024, 1, api.Block, 1024}, {4, 131072, 1, api.OnStream, 131072}, {4, 131072, 1, api.Block, 131072},
	} {
		for _, d := range []api.DType{api.BF16, api.F16} {
			call := api.Call{Collective: api.AllReduce, DType: d, Op: api.Sum, Ranks: c.ranks, Count: c.count, Scope: c.scope, SrcOffset: api.Offsets{c.offset}, DstOffset: api.Offsets{c.offset}}
			for i, version := range versions {
				p, err := planned(t, "hw:cascade@"+version, call)
				require.NoError(t, err)
				want := c.want
				if i > 0 {
					want = 0
				}
				for _, n := range p.Unwritten {
					require.Equal(t, want, n, "%s %v", version, &call)
				}
			}
		}
	}
}

// TestPlansCover: every element has its place, and holes add up.
func TestPlansCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.SampledFrom(versions).Draw(t, "version")
		text := fmt.Sprintf("hw:cascade@%s?reduce_algo=%d&max_ctas=%d", version, rapid.IntRange(0, 5).Draw(t, "algo"), rapid.SampledFrom([]int{1, 3, 16, 64}).Draw(t, "ctas"))
		offset := rapid.Int64Range(0, 9)
		call := api.Call{Collective: api.AllReduce, DType: rapid.SampledFrom([]api.DType{api.BF16, api.F16, api.F32, api.F64, api.U8}).Draw(t, "dtype"), Op: rapid.SampledFrom([]api.Op{api.Sum, api.Max}).Draw(t, "op"),
			Ranks: rapid.IntRange(1, 9).Draw(t, "ranks"), Count: rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1<<20)).Draw(t, "count"),
			SrcOffset: api.Offsets{offset.Draw(t, "src")}, DstOffset: api.Offsets{offset.Draw(t, "dst")},
			Scope: rapid.SampledFrom([]api.Scope{api.OnStream, api.Block}).Draw(t, "scope"), Team: rapid.SampledFrom([]api.TeamKind{api.World, api.SubTeam}).Draw(t, "team")}
		p, err := planned(t, text, call)
		require.NoError(t, err)
		require.NoError(t, hwtest.Covers(p), "%s %v", text, &call)
		for _, k := range p.Kernels {
			for _, c := range k.CTAs {
				require.Contains(t, p.Algorithms, c.Algorithm)
				for _, s := range c.Slices {
					got := 16*s.Words.W16 + 8*s.Words.W8 + 4*s.Words.W4 + s.Unwritten*int64(call.DType.Size())
					require.Equal(t, s.Count*int64(call.DType.Size()), got, "words and what is left make a slice")
				}
			}
		}
		if version != Before {
			require.Equal(t, make([]int64, call.Ranks), p.Unwritten, "%s %v", text, &call)
		}
	})
}

// TestPlanFigures are algorithms, causes and rounds literally.
func TestPlanFigures(t *testing.T) {
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 1048573}
	p, err := planned(t, "hw:cascade@2dca770", call)
	require.NoError(t, err)
	ctas := p.Kernels[0].CTAs
	require.Len(t, ctas, 16)
	for _, c := range ctas[:15] {
		require.EqualValues(t, 65535, c.Count)
		require.Equal(t, segments, c.Algorithm)
		require.Contains(t, c.Why, "byte length no multiple of 4")
	}
	require.Equal(t, twoShot, ctas[15].Algorithm)
	require.Equal(t, api.OddCTAStart, ctas[15].Slices[0].Holes[0].Cause)
	require.Equal(t, api.Faithful, p.Contract())

	call.Count, call.Scope = 1048574, api.Block
	for _, c := range []struct {
		version, alg  string
		words, rounds int64
	}{{Before, twoShot, 65537, 0}, {After, segments, 0, 64}, {AfterTeam, segments, 0, 64}, {AfterTail, twoShot, 65535, 1}} {
		p, err := planned(t, "hw:cascade@"+c.version, call)
		require.NoError(t, err)
		require.Equal(t, c.alg, p.Kernels[0].CTAs[0].Algorithm, c.version)
		require.Equal(t, api.Cost{Launches: 1, Words: c.words, Rounds: c.rounds}, p.Cost, c.version)
	}
	for n, alg := range map[int64]string{12: twoShot, 10: exchange} {
		call.Count = n // six elements a rank, and five, which the pull request keeps off
		p, err := planned(t, "hw:cascade@pr131?reduce_algo=3", call)
		require.NoError(t, err)
		require.Equal(t, alg, p.Kernels[0].CTAs[0].Algorithm)
		p, err = planned(t, "hw:cascade@2dca770?reduce_algo=3", call)
		require.NoError(t, err)
		require.Equal(t, twoShot, p.Kernels[0].CTAs[0].Algorithm)
	}
	for says, spoil := range map[string]func(*api.Call){
		"no sums of fp8": func(c *api.Call) { c.DType = api.E4M3 },
		"1 to 72 ranks":  func(c *api.Call) { c.Ranks = 73 },
		"count":          func(c *api.Call) { c.Count = -1 },
	} {
		bad := call
		spoil(&bad)
		_, err := planned(t, "hw:cascade@pr131", bad)
		require.ErrorContains(t, err, says)
	}
}
