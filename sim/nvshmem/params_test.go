package nvshmem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/sim/nvls"
)

func parse(text string) (Params, error) {
	spec, err := api.ParseSpec("sim:" + text)
	if err != nil {
		return Params{}, err
	}
	return ParseParams(spec)
}

// lastOf is the last rounding of in-switch sums.
func lastOf(t *testing.T, p Params, d api.DType) nvls.Final {
	m, err := p.Switch(d, api.Sum)
	require.NoError(t, err)
	return m.Final
}

func TestDefaults(t *testing.T) {
	for _, v := range versions {
		p, err := parse("nvshmem@" + v)
		require.NoError(t, err)
		require.Equal(t, Params{
			Version: v, NVLS: true, NVLSThreshold: 2048, ScratchSize: 524288, RecExchRadix: 2, LLThreshold: 2048,
			Arith: nvls.Config{Fabric: nvls.NVLink5},
		}, p)
		require.Equal(t, int64(262144), p.Half())
		require.Equal(t, int64(32768), p.SegmentBytes())
		require.Equal(t, nvls.DIR, lastOf(t, p, api.BF16))
		require.Equal(t, nvls.DIR, lastOf(t, p, api.F16))
		require.Equal(t, nvls.RNE, lastOf(t, p, api.F32))
		require.Equal(t, nvls.RNE, lastOf(t, p, api.F64))
	}
}

func TestParametersAreRead(t *testing.T) {
	p, err := parse("nvshmem@pr131?nvls=off&nccl=on&reduce_algo=-1&reduce_nvls_threshold=7&reduce_scratch_size=1280&reduce_recexch_kval=5" +
		"&reducescatter_algo=3&fcollect_ll_threshold=0&max_ctas=32&rounding=away&rs_align=shifted")
	require.NoError(t, err)
	require.Equal(t, Params{
		Version: "pr131", NCCL: true, ReduceAlgo: -1, NVLSThreshold: 7, ScratchSize: 1280, RecExchRadix: 5, ReduceScatterAlgo: 3,
		MaxCTAs: 32, rounding: "away", rsAlign: "shifted", Arith: nvls.Config{Fabric: nvls.NVLink5},
	}, p)
	require.Equal(t, nvls.RA, lastOf(t, p, api.F32))
	require.Equal(t, 4, p.Radix(4))
	require.Equal(t, 2, p.Radix(1))
	require.Equal(t, int64(80), p.SegmentBytes())

	rne, err := parse("nvshmem@3.4.5?rounding=rne&max_ctas=unset")
	require.NoError(t, err)
	require.Equal(t, nvls.RNE, lastOf(t, rne, api.BF16))
	require.Zero(t, rne.MaxCTAs)
}

func TestBadSpecs(t *testing.T) {
	for text, want := range map[string]string{
		"nvshmem@3.4.6":                           "known are [2dca770 pr131 pr131-team pr131-tail 3.4.5]",
		"nvshmem":                                 "known are [2dca770 pr131 pr131-team pr131-tail 3.4.5]",
		"nccl@3.4.5":                              "it is called nvshmem",
		"nvshmem@3.4.5?nvsl=off":                  "known are [nvls nccl reduce_algo",
		"nvshmem@3.4.5?reduce_nthreads=32":        "unknown to nvshmem@3.4.5",
		"nvshmem@3.4.5?rs_align=pointer":          "unknown to nvshmem@3.4.5",
		"nvshmem@2dca770?rs_align=pointer":        "unknown to nvshmem@2dca770",
		"nvshmem@pr131?rs_align=both":             "pointer|shifted",
		"nvshmem@3.4.5?nvls=1":                    "on|off",
		"nvshmem@3.4.5?max_ctas=0":                "1..1024",
		"nvshmem@3.4.5?max_ctas=1025":             "1..1024",
		"nvshmem@3.4.5?reduce_algo=two":           "3 two-shot",
		"nvshmem@3.4.5?reduce_algo=2147483648":    "3 two-shot",
		"nvshmem@3.4.5?reduce_scratch_size=0":     "multiple of 128",
		"nvshmem@3.4.5?reduce_scratch_size=1000":  "multiple of 128",
		"nvshmem@3.4.5?reduce_nvls_threshold=-1":  "0..2147483647",
		"nvshmem@3.4.5?fcollect_ll_threshold=1e3": "bytes",
		"nvshmem@3.4.5?rounding=up":               "rz|rne|away",
		"nvshmem@3.4.5?reduce_recexch_kval=1025":  "below 2 the library asserts",
		"nvshmem@3.4.5?reducescatter_algo=":       "0 automatic",
		"nvshmem@3.4.5?nccl=yes":                  "off|on",
	} {
		_, err := parse(text)
		require.ErrorIs(t, err, api.ErrInvalid, text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestImplementations(t *testing.T) {
	all := Family{}.Implementations()
	require.Len(t, all, 5)
	for _, impl := range all {
		require.Equal(t, "nvshmem", impl.Name)
		require.Len(t, impl.DTypes, 12)
		require.Len(t, impl.Collectives, 5)
		require.Equal(t, api.Faithful, impl.Contract)
		require.NotContains(t, impl.Promises, api.CheckRankAgreement, "segment gives ranks different bits")
		for _, p := range impl.Params {
			require.NotEmpty(t, p.Help)
			if !strings.Contains(p.Default, " ") && p.Name != "rs_align" {
				_, err := ParseParams(api.Spec{Implementation: Name, Version: impl.Version, Params: map[string]string{p.Name: p.Default}})
				require.NoError(t, err, "the default of %s is a value of it", p.Name)
			}
		}
		// Whatever a plan uses, the listing knows.
		for _, c := range api.Collectives() {
			for _, n := range []int64{1, 64, 1000, 1 << 20} {
				call := api.Call{Collective: c, DType: api.F32, Ranks: 4, Count: n}
				if c.Reduces() {
					call.Op = api.Sum
				}
				if api.IsMany(c) {
					continue
				}
				p, err := Family{}.Plan(api.Spec{Backend: "sim", Implementation: Name, Version: impl.Version}, call)
				require.NoError(t, err)
				for alg := range p.Algorithms {
					require.Contains(t, impl.Evidence, alg)
				}
			}
		}
	}
	require.Contains(t, paramNames(all[1]), "rs_align")
	require.NotContains(t, paramNames(all[4]), "rs_align")
}

func paramNames(impl api.Implementation) []string {
	var out []string
	for _, p := range impl.Params {
		out = append(out, p.Name)
	}
	return out
}

func TestThresholds(t *testing.T) {
	impl := Family{}.Implementations()[2]
	for _, call := range []api.Call{
		allReduce(4, 0, 0), gather(4, api.F32, 0, 0), gather(2, api.BF16, 0, 0),
		{Collective: api.Broadcast, DType: api.F32, Ranks: 4},
	} {
		list := impl.Thresholds(call)
		require.NotEmpty(t, list)
		for i, n := range list {
			require.Positive(t, n)
			if i > 0 {
				require.Greater(t, n, list[i-1])
			}
		}
		require.Contains(t, list, map[string]int64{"all_reduce": 2048, "all_gather": 2048 / int64(call.DType.Size()), "broadcast": 4096}[call.Collective.Name()])
	}
	require.Contains(t, impl.Thresholds(allReduce(4, 0, 0)), int64(4681))
	require.Contains(t, impl.Thresholds(allReduce(4, 0, 0)), int64(5461))
	require.Contains(t, impl.Thresholds(allReduce(4, 0, 0)), int64(131072))
	require.Contains(t, impl.Thresholds(scatter(4, api.BF16, api.Sum, 0)), int64(131072))
	require.Empty(t, impl.Thresholds(api.Call{}))
	require.Empty(t, impl.Thresholds(api.Call{Collective: api.AllToAll, DType: api.F32, Ranks: 4}))
}

func FuzzParseParams(f *testing.F) {
	f.Add("nvshmem@pr131?nvls=off&rs_align=pointer")
	f.Add("nvshmem@3.4.5?reduce_scratch_size=99999999999999999999")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parse(text)
		if err != nil {
			require.ErrorIs(t, err, api.ErrInvalid)
			return
		}
		require.Positive(t, p.SegmentBytes())
		require.GreaterOrEqual(t, p.Radix(3), 2)
	})
}
