package inputs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Input
	}{
		{"normal", Input{Kind: Normal, Seed: 7}},
		{"finite", Input{Kind: Finite, Seed: 7}},
		{"bits", Input{Kind: Bits, Seed: 7}},
		{"order_free", Input{Kind: OrderFree, Seed: 7}},
		{"ones", Input{Kind: Ones}},
		{"uniform:-0.5:1", Input{Kind: Uniform, Seed: 7, Lo: -0.5, Hi: 1}},
		{"file:some/dir:x", Input{Kind: Files, Dir: "some/dir:x"}},
	} {
		got, err := Parse(c.text, 7)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got)
	}
	for _, text := range []string{"", "auto", "gauss", "values", "values:1", "normal:1", "ones:2", "uniform", "uniform:1", "uniform:1:x", "uniform:1:2:3", "uniform:2:1", "uniform:nan:1", "uniform:0:inf", "uniform:-1e308:1e308", "file", "file:"} {
		_, err := Parse(text, 7)
		require.ErrorIs(t, err, api.ErrInvalid, text)
	}
	for _, text := range []string{"", "x", "1,,2", "0x1ffffffffffffffff", "-1"} {
		_, err := ParseValues(text)
		require.ErrorIs(t, err, api.ErrInvalid, text)
	}
}

func TestFlagsGiveTheInputBack(t *testing.T) {
	for _, c := range []struct {
		in   Input
		want string
	}{
		{Input{Kind: Normal, Seed: 1}, "--input normal --seed 1"},
		{Input{Kind: Uniform, Lo: -0.4, Hi: 1, Seed: 2}, "--input uniform:-0.4:1 --seed 2"},
		{Input{Kind: Ones}, "--input ones"},
		{Input{Kind: Values, Values: []uint64{0x4380, 1}}, "--values 0x4380,0x1"},
		{Input{Kind: Files, Dir: "d"}, "--input file:d"},
	} {
		require.Equal(t, c.want, c.in.String())
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		in   Input
		call *api.Call
	}{
		"normal integers":    {Input{Kind: Normal}, call(api.I32, api.Sum, 2, 1)},
		"finite integers":    {Input{Kind: Finite}, call(api.U8, api.Sum, 2, 1)},
		"uniform integers":   {Input{Kind: Uniform, Hi: 1}, call(api.I64, api.Sum, 2, 1)},
		"order-free average": {Input{Kind: OrderFree}, call(api.BF16, api.Avg, 2, 1)},
		"too few values":     {Input{Kind: Values, Values: []uint64{1}}, call(api.BF16, api.Sum, 2, 1)},
		"too wide values":    {Input{Kind: Values, Values: []uint64{1, 0x10000}}, call(api.BF16, api.Sum, 2, 1)},
		"empty uniform":      {Input{Kind: Uniform, Lo: 1}, call(api.BF16, api.Sum, 2, 1)},
		"unknown kind":       {Input{Kind: 99}, call(api.BF16, api.Sum, 2, 1)},
		"missing directory":  {Input{Kind: Files, Dir: "testdata/none"}, call(api.BF16, api.Sum, 2, 1)},
		"an empty directory": {Input{Kind: Files, Dir: t.TempDir()}, call(api.BF16, api.Sum, 2, 1)},
	} {
		_, err := c.in.Open(c.call)
		require.ErrorIs(t, err, api.ErrInvalid, name)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	c := &api.Call{Collective: api.AllGatherMany, DType: api.U8, Ranks: 2, Many: []api.LaneShape{{Count: 3}, {DType: api.U16, Count: 2}}}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "r0.bin"), []byte{0, 1, 2, 3, 4, 5, 6}, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "r1.bin"), []byte{10, 11, 12, 13, 14, 15, 16}, 0o600))
	g, err := Input{Kind: Files, Dir: dir}.Open(c)
	require.NoError(t, err)
	p := make([]byte, 2)
	require.NoError(t, g.Fill(p, 1, 1, 1))
	require.Equal(t, []byte{15, 16}, p, "element 1 of lane 1 of rank 1")
	c.Many[1].Count = 3
	_, err = Input{Kind: Files, Dir: dir}.Open(c)
	require.ErrorContains(t, err, "holds 7 bytes, the call needs 9")
}

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		in   Input
		text string
	}{
		{Input{Kind: Normal, Seed: 57345}, `{"gen":"normal","seed":57345}`},
		{Input{Kind: Bits, Seed: 1<<64 - 1}, `{"gen":"bits","seed":18446744073709551615}`},
		{Input{Kind: Ones}, `{"gen":"ones"}`},
		{Input{Kind: Uniform, Lo: -0.5, Hi: 1, Seed: 0}, `{"gen":"uniform","lo":-0.5,"hi":1,"seed":0}`},
		{Input{Kind: Values, Values: []uint64{0x4380, 1 << 63}}, `{"gen":"values","values":["0x4380","0x8000000000000000"]}`},
	} {
		b, err := json.Marshal(c.in)
		require.NoError(t, err)
		require.JSONEq(t, c.text, string(b))
		require.Equal(t, c.text, string(b))
		var back Input
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, c.in, back)
	}
	var in Input
	require.NoError(t, json.Unmarshal([]byte(`{"gen":"values","values":[17280,"0x3f80"]}`), &in))
	require.Equal(t, []uint64{17280, 0x3f80}, in.Values, "numbers are read too")
	for _, text := range []string{
		`{}`, `{"gen":"auto","seed":1}`, `{"gen":"normal"}`, `{"gen":"ones","seed":1}`, `{"gen":"file","dir":"/etc"}`,
		`{"gen":"normal","seed":1,"dir":"x"}`, `{"gen":"normal","seed":-1}`, `{"gen":"normal","seed":1,"lo":1,"hi":2}`,
		`{"gen":"uniform","lo":1,"seed":1}`, `{"gen":"values"}`, `{"gen":"values","values":["x"]}`, `{"gen":"normal","seed":1,"x":1}`, `[]`,
	} {
		require.Error(t, json.Unmarshal([]byte(text), &in), text)
	}
}
