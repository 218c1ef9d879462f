package kernelfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/kernelfile"
)

// TestRead reads every member.
func TestRead(t *testing.T) {
	d, err := kernelfile.Read("k.json", []byte(`{
  "entry": "k", "collective": "all_reduce", "dtypes": ["bf16", "f32"], "ops": "sum",
  "ranks": [2, 8], "multiple": 8, "in_place": ["false", "start"],
  "grid": [4, 2], "block": 256, "shared": 1024, "cooperative": true, "sources": "all",
  "scratch": {"flags": 4096, "box": 16},
  "params": ["src", "all.dst", "flags",
    "multicast.box", "count", 18446744073709551615, -7, {"f32": 0.5}, {"f64": -1}]
}`))
	require.NoError(t, err)
	require.Equal(t, api.AllReduce, d.Collective)
	require.Equal(t, []api.DType{api.BF16, api.F32}, d.DTypes)
	require.Equal(t, []api.Op{api.Sum}, d.Ops)
	require.Equal(t, []int{2, 8}, []int{d.MinRanks, d.MaxRanks})
	require.Equal(t, []api.InPlace{api.OutOfPlace, api.InPlaceStart}, d.InPlace)
	require.Equal(t, []any{gpu.Dim3{X: 4, Y: 2, Z: 1}, gpu.Dim3{X: 256, Y: 1, Z: 1}}, []any{d.Grid, d.Block})
	require.Equal(t, []any{"k", int64(8), 1024, true, true}, []any{d.Entry, d.Multiple, d.Shared, d.Cooperative, d.AllSources})
	require.Equal(t, []kernelfile.Area{{Name: "box", Bytes: 16}, {Name: "flags", Bytes: 4096}}, d.Scratch)
	require.Equal(t, []kernelfile.Param{
		{Source: kernelfile.Own, Area: "src", Line: 6}, {Source: kernelfile.All, Area: "dst", Line: 6}, {Source: kernelfile.Own, Area: "flags", Line: 6},
		{Source: kernelfile.Multicast, Area: "box", Line: 7}, {Source: kernelfile.Word, Name: "count", Line: 7},
		{Source: kernelfile.Integer, Bits: 1<<64 - 1, Line: 7}, {Source: kernelfile.Integer, Bits: 1<<64 - 7, Line: 7},
		{Source: kernelfile.Single, Bits: 0x3F000000, Line: 7}, {Source: kernelfile.Double, Bits: 0xBFF0000000000000, Line: 7},
	}, d.Params)
}

// good is a description that is complete.
const good = `{"collective": "all_gather", "dtypes": "u8", "block": 32,
"params": ["src"],
"scratch": {"x": 8}}`

// TestReadErrors: what is wrong, with file and line.
func TestReadErrors(t *testing.T) {
	change := func(old, new string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, new, 1)
	}
	for text, want := range map[string]string{
		"":                                 "k.json:1: the text ends too early",
		"[]":                               "k.json:1: the description is no object",
		good + "1":                         "k.json:3: something follows the description",
		change(`8}}`, `8}`):                "k.json:3: the text ends too early",
		change(`"u8"`, `"u8",, `):          "k.json:1: invalid character ','",
		change(`"u8"`, `"u7"`):             `k.json:1: dtypes "u7": unknown, known are bf16`,
		change(`"u8"`, `[]`):               "k.json:1: dtypes is neither a name nor a list",
		change(`"u8"`, `7`):                "k.json:1: dtypes is neither a name nor a list",
		change(`"all_gather"`, `"gather"`): `k.json:1: collective "gather": unknown`,
		change(`"all_gather"`, `["all_gather", "all_reduce"]`): "k.json:1: a kernel is one collective",
		change(`"all_gather"`, `"all_gather_many"`):            "k.json:1: the many forms are not known here",
		change(`"all_gather"`, `"all_reduce"`):                 "k.json:3: ops is missing",
		change(`"block"`, `"ops": "sum", "block"`):             "k.json:1: all_gather reduces nothing",
		change(`32`, `0`):                                      "k.json:1: block is 0, it can be 1 to",
		change(`32`, `1025`):                                   "k.json:1: a block of 1025x1x1, at most 1024",
		change(`32`, `2048`):                                   "k.json:1: a block of 2048x1x1, at most 1024",
		change(`32`, `[1,2,3,4]`):                              "k.json:1: block is neither an integer nor a list of up to three",
		change(`32`, `1.5`):                                    "k.json:1: block is neither",
		change(`32`, `null`):                                   "k.json:1: block is neither",
		change(`"block": 32,`, ``):                             "k.json:3: block is missing",
		change(`"block": 32`, `"block": 32, "block": 32`):      `k.json:1: "block" is there twice`,
		change(`"block": 32`, `"blocks": 32`):                  `k.json:1: there is no "blocks"; known are entry,`,
		change(`"block": 32`, `"block": 32, "ranks": [0, 2]`):  "k.json:1: ranks are 0 to 2, they can be 1 to 72",
		change(`"block": 32`, `"block": 32, "ranks": [3, 2]`):  "k.json:1: ranks are 3 to 2",
		change(`"block": 32`, `"block": 32, "sources": "x"`):   `k.json:1: sources are "x"`,
		change(`"block": 32`, `"block": 32, "cooperative": 1`): "k.json:1: cooperative is a JSON number",
		change(`["src"]`, `"src"`):                             "k.json:2: params are no list",
		change(`"src"`, `"foo"`):                               `k.json:2: there is no buffer "foo"`,
		change(`"src"`, `"all.count"`):                         `k.json:2: there is no buffer "count"`,
		change(`"src"`, `"peer.src"`):                          `k.json:2: "peer.src" is no parameter; before a dot`,
		change(`"src"`, `{"f32": 1e300}`):                      "k.json:2: ",
		change(`"src"`, `{"f16": 1}`):                          "is no parameter: give a name",
		change(`"src"`, `18446744073709551616`):                "is no parameter",
		change(`"src"`, `null`):                                "is no parameter",
		change(`"x": 8`, `"src": 8`):                           `k.json:3: "src" cannot be the name`,
		change(`"x": 8`, `"x.y": 8`):                           `k.json:3: "x.y" cannot be the name`,
		change(`"x": 8`, `"x": 0`):                             "k.json:3: the bytes of scratch x is 0",
		change(`"x": 8`, `"x": 1073741824, "y": 1`):            "k.json:3: more than 1073741824 bytes",
		strings.Repeat(" ", 1<<20+1):                           "k.json:1: 1048577 bytes, at most",
	} {
		_, err := kernelfile.Read("k.json", []byte(text))
		require.ErrorIs(t, err, api.ErrInvalid, text)
		require.ErrorContains(t, err, want, "%.80s", text)
	}
	_, err := kernelfile.Read("k.json", []byte(good))
	require.NoError(t, err)
}

// FuzzRead: no text makes the reader panic, and every error has its line.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"", good, "{", `{"params": [{}]}`, `{"scratch": {"a": 1}, "params": ["all.a", 1e999, {"f32": null}]}`, `{"grid": [], "ranks": [1,2,3]}`, `{"entry": {}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := kernelfile.Read("f.json", []byte(text))
		if err == nil {
			require.NotNil(t, d.Collective)
			return
		}
		var bad *kernelfile.Error
		require.ErrorAs(t, err, &bad)
		require.Positive(t, bad.Line)
		require.LessOrEqual(t, bad.Line, strings.Count(text, "\n")+1)
	})
}
