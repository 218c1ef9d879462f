package inswitch

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/num"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/kernels"
)

func header(t *testing.T, name string) string {
	text, err := kernels.Sources.ReadFile("src/" + name)
	require.NoError(t, err)
	return regexp.MustCompile(`//.*`).ReplaceAllString(string(text), "")
}

// constants are the enumerators of a header, in C's way: with a value or one more
// than the one before.
func constants(t *testing.T, text string) map[string]uint64 {
	values := map[string]uint64{}
	value := func(expr string) (sum uint64) {
		for _, term := range strings.Split(expr, "+") {
			product := uint64(1)
			for _, f := range strings.Split(term, "*") {
				f = strings.TrimSuffix(strings.TrimSpace(f), "ull")
				v, err := strconv.ParseUint(f, 0, 64)
				if err != nil {
					var ok bool
					v, ok = values[f]
					require.True(t, ok, expr)
				}
				product *= v
			}
			sum += product
		}
		return sum
	}
	for _, body := range regexp.MustCompile(`enum[^{;]*\{([^}]*)\}`).FindAllStringSubmatch(text, -1) {
		next := uint64(0)
		for _, e := range strings.Split(body[1], ",") {
			if strings.TrimSpace(e) == "" {
				continue
			}
			name, expr, given := strings.Cut(e, "=")
			if given {
				next = value(expr)
			}
			values[strings.TrimSpace(name)] = next
			next++
		}
	}
	return values
}

// TestLayout holds layout.go and forms.go to nvls_layout.h.
func TestLayout(t *testing.T) {
	text := header(t, "nvls_layout.h")
	got := constants(t, text)
	for name, want := range map[string]uint64{
		"RankLimit": MaxRanks, "BlockLimit": MaxBlocks, "PeerSlots": peerSlots,
		"PageGeneration": pageGeneration, "PageEpoch": pageEpoch, "PageHeaders": pageHeaders, "PageFlags": pageFlags, "PageBytes": pageBytes,
		"ReportStop": host.ReportStop, "ReportFault": host.ReportFault, "ReportStep": host.ReportStep, "ReportEpoch": host.ReportEpoch, "ReportPeer": host.ReportPeer,
		"ReportBlock": host.ReportBlock, "ReportHash": host.ReportHash, "ReportBytes": host.ReportBytes,
		"Fine": uint64(host.Fine), "Deadline": uint64(host.Deadline), "Aborted": uint64(host.Aborted), "Differs": uint64(host.Differs), "Claimed": uint64(host.Claimed), "Stopped": uint64(host.Stopped), "Killed": uint64(host.Killed),
		"StepEntry": uint64(StepEntry), "StepBarrier": uint64(StepBarrier), "StepLeave": uint64(StepLeave),
		"ObjectStage": ObjectStage, "ObjectSource": ObjectSource, "ObjectTarget": ObjectTarget, "Objects": objects, "ObjectAlign": ObjectAlign, "ObjectShift": objectShift, "ObjectTag": objectTag,
		"AllReduce": AllReduce, "ReduceScatter": ReduceScatter, "AllGather": AllGather,
		"SumBF16": uint64(SumBF16), "SumF64": uint64(SumF64), "MinBF16x2": uint64(MinBF16), "MaxF16x2": uint64(MaxF16), "SumU32": uint64(SumU32), "MaxU32x1": uint64(MaxU32),
		"SumU64": uint64(SumU64), "MaxU64x1": uint64(MaxU64), "AndB64": uint64(AndB64), "OrB64": uint64(OrB64), "XorB64": uint64(XorB64), "Forms": uint64(XorB64) + 1,
		"Nearest": uint64(Nearest), "TowardZero": uint64(TowardZero), "Away": uint64(Away), "Seeded": uint64(Seeded),
		"FlagInPlace": FlagInPlace, "FlagDiffers": flagDiffers, "FlagSwitch": FlagSwitch, "FlagWorld": FlagWorld, "FlagTernary": FlagTernary, "FlagHalf": FlagHalf,
	} {
		v, ok := got[name]
		require.True(t, ok, "%s is in the header", name)
		require.Equal(t, want, v, name)
	}
	rest, err := kernels.Sources.ReadFile("src/nvls.cu")
	require.NoError(t, err)
	require.Contains(t, string(rest), "enum { RestBytes = "+strconv.Itoa(RestBytes)+" };")
}

// TestArgs: what is packed is as long as the struct of the kernels, and its
// arrays and words stand where they do there.
func TestArgs(t *testing.T) {
	text := header(t, "nvls_layout.h")
	body := regexp.MustCompile(`struct Args \{([^}]*)\}`).FindStringSubmatch(text)
	require.NotNil(t, body)
	limits := map[string]int{"RankLimit": MaxRanks, "Objects": objects}
	size, at := 0, map[string]int{}
	for _, m := range regexp.MustCompile(`u(64|32) ([^;]*);`).FindAllStringSubmatch(body[1], -1) {
		for _, name := range strings.Split(m[2], ",") {
			name, array, _ := strings.Cut(strings.TrimSpace(name), "[")
			n := 1
			if array != "" {
				n = limits[strings.TrimSuffix(array, "]")]
				require.NotZero(t, n, array)
			}
			at[name] = size
			size += n * map[string]int{"64": 8, "32": 4}[m[1]]
		}
	}
	team := &Team{on: &host.Placement{Place: []int{0, 0}, Local: [][]int{{0, 1}}}, pages: make([]host.Page, 2), stages: []gpu.Ptr{1, 2}, generation: 0x77}
	list := []uint64{3, 4}
	b := team.pack(&Args{Src: list, Dst: list, Count: 0x55, Log: 0x33, Algo: 0x44, Hash: 0x66, Dir: Seeded}, 0)
	require.Equal(t, (size+7)/8*8, len(b))
	for name, want := range map[string]byte{"stage": 1, "src": 3, "dst": 3, "generation": 0x77, "hash": 0x66, "count": 0x55, "log": 0x33, "algo": 0x44, "dir": byte(Seeded), "world": 2, "faultRank": 0xff} {
		require.Equal(t, want, b[at[name]], name)
	}
}

// TestJoins: the numbers of joins are those of the list in kinds.h.
func TestJoins(t *testing.T) {
	names := regexp.MustCompile(`X\((\w+)\)`).FindAllStringSubmatch(header(t, "kinds.h"), -1)
	require.GreaterOrEqual(t, len(names), joinBits+3)
	for d, name := range map[api.DType]string{api.BF16: "BF16", api.F16: "F16", api.F32: "F32", api.F64: "F64", api.I8: "I8", api.U16: "I16", api.I32: "I32", api.U64: "I64"} {
		for op, verb := range map[api.Op]string{api.Sum: "Add", api.Prod: "Mul", api.Min: "Min", api.Max: "Max"} {
			want := verb + name
			if !d.Float() && (op == api.Min || op == api.Max) {
				want = verb + map[bool]string{true: "S", false: "U"}[d.Signed()] + strings.TrimPrefix(name, "I")
			}
			j, ok := JoinOf(d, op)
			require.True(t, ok)
			require.Equal(t, want, names[j][1], "%v %v", d, op)
		}
	}
	for i, op := range []api.Op{num.And, num.Or, num.Xor} {
		j, ok := JoinOf(api.U8, op)
		require.True(t, ok)
		require.Equal(t, []string{"AndBits", "OrBits", "XorBits"}[i], names[j][1])
	}
	_, ok := JoinOf(api.E4M3, api.Sum)
	require.False(t, ok)
	_, ok = JoinOf(api.F32, api.Avg)
	require.False(t, ok)
}

// TestWhere: later steps are further, and of one step later barriers.
func TestWhere(t *testing.T) {
	last := uint64(0)
	for s := StepEntry; s <= StepLeave; s++ {
		for barrier := range uint32(3) {
			at, far := where(uint32(s), barrier)
			require.Equal(t, s.String(), at)
			require.True(t, far > last || far == 0, "%v, barrier %d", s, barrier)
			last = far
		}
	}
}
