package nvls

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// profileText is a profile of one exact cell, changed by replacing texts.
func profileText(replace ...string) string {
	const whole = `{"schema":"tandem.nvls_profile/1","of":"hw:nvls","cells":[
{"dtype":"bf16","op":"sum","ranks":4,"exact":true,"verdict":"exact","evidence":["seen"],"model":{"name":"probed","kind":"fold","acc":"f32","step":"rne","order":"1-0-2-3","final":"rne"}},
{"dtype":"f16","op":"sum","ranks":4,"exact":false,"verdict":"faithful, direction unknown","evidence":[],"model":{"name":"probed","kind":"window","granule":16,"result_bits":38,"final":"seeded"}},
{"dtype":"bf16","op":"min","ranks":4,"exact":true,"verdict":"exact","evidence":[],"model":{"name":"probed","kind":"exact","final":"rne"}}],
"refused":["sum of f64: no"]}`
	return strings.NewReplacer(replace...).Replace(whole)
}

// TestProfilesThatContradict: what a profile says must be known, whole and of
// one mind; each of these differs from a good one in one thing.
func TestProfilesThatContradict(t *testing.T) {
	_, err := ParseProfile([]byte(profileText()))
	require.NoError(t, err)
	for _, c := range []struct{ from, to, says string }{
		{`"of"`, `"off"`, `unknown field "off"`},
		{`"verdict":"exact"`, `"verdikt":"exact"`, `unknown field "verdikt"`},
		{`"acc"`, `"accu"`, `unknown field "accu"`},
		{`"refused":["sum of f64: no"]}`, `"refused":[]} {}`, "something follows"},
		{`profile/1`, `profile/2`, `its schema is "tandem.nvls_profile/2"`},
		{`"dtype":"bf16"`, `"dtype":"half"`, "half"},
		{`"op":"sum"`, `"op":"avg"`, "no such reduction"},
		{`"op":"min"`, `"op":"sum"`, "cells 0 and 2 are both of sum of bf16, on 4 and 4 ranks: keep one"},
		{`"ranks":4`, `"ranks":1`, "measured on 1 ranks, and a switch has 2 to 72"},
		{`"ranks":4`, `"ranks":73`, "2 to 72"},
		{`"ranks":4`, `"ranks":8`, "order 1-0-2-3 names 4 ranks, and it was measured on 8"},
		{`"order":"1-0-2-3"`, `"order":"1-0-2-2"`, "unknown order"},
		{`"acc":"f32"`, `"acc":"f32","granule":16`, "granule means nothing where the kind is fold"},
		{`"acc":"f32"`, `"acc":"f32","term_bits":9`, "term_bits means nothing"},
		{`"acc":"f32"`, `"acc":"f32","align_bits":25`, "align_bits means nothing"},
		{`"granule":16`, `"granule":16,"acc":"f32"`, "acc means nothing where the kind is window"},
		{`"granule":16`, `"granule":16,"step":"rz"`, "step means nothing"},
		{`"granule":16`, `"granule":16,"order":"rank"`, "order means nothing"},
		{`"granule":16`, `"granule":16,"unordered":true`, "unordered means nothing"},
		{`"granule":16,`, ``, "a window without granule"},
		{`"exact":false`, `"exact":true`, "it says that it is exact, and by its own model (last rounding seeded)"},
		{`"order":"1-0-2-3"`, `"order":"1-0-2-3","unordered":true`, "it says that it is exact"},
		{`"kind":"exact"`, `"kind":"tree","order":"rank"`, "kind tree is of floating sums"},
		{`"exact":true`, `"exact":false`, "none of its cells is exact"},
	} {
		text := profileText(c.from, c.to)
		require.NotEqual(t, profileText(), text, c.from)
		_, err := ParseProfile([]byte(text))
		require.ErrorContains(t, err, c.says, "%s", c.to)
	}
	_, err = ParseProfile([]byte(`{"schema":"tandem.nvls_profile/1","of":"x","cells":[]}`))
	require.ErrorContains(t, err, "none of its cells")

	name := filepath.Join(t.TempDir(), "p.json")
	require.NoError(t, os.WriteFile(name, []byte(profileText(`"acc"`, `"accu"`)), 0o600))
	_, err = ReadProfile(name)
	var bad *api.InvalidError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, name, bad.Value)
	require.Contains(t, bad.Hint, "compare probe")
}

// TestPlansSayWhatAProfileLeaves: a plan tells what the profile decides, on how
// many ranks that was measured, and where the preset stands in.
func TestPlansSayWhatAProfileLeaves(t *testing.T) {
	name := filepath.Join(t.TempDir(), "p.json")
	require.NoError(t, os.WriteFile(name, []byte(profileText()), 0o600))
	spec := api.Spec{Implementation: FamilyName, Params: map[string]string{"profile": name}}
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 8}
	for _, c := range []struct {
		d     api.DType
		op    api.Op
		ranks int
		says  string // of the plan, or the refusal
	}{
		{api.BF16, api.Sum, 4, "fitted to the fabric by a probe, on 4 ranks; that other teams"},
		{api.BF16, api.Sum, 8, "order 1-0-2-3 names 4 ranks, the team has 8 (4 ranks; or another order, or a profile that was probed on 8)"},
		{api.BF16, api.Min, 8, "min of bf16: fitted to the fabric by a probe, on 4 ranks"},
		{api.BF16, api.Max, 4, "the preset's, since the profile has no max of bf16"},
		{api.F16, api.Sum, 4, "the preset's, since the profile does not know it exactly (faithful, direction unknown)"},
		{api.F32, api.Sum, 4, "the preset's, since the profile has no sum of f32"},
	} {
		call.DType, call.Op, call.Ranks = c.d, c.op, c.ranks
		plan, err := Family{}.Plan(spec, call)
		if err != nil {
			require.ErrorIs(t, err, api.ErrRefused)
			require.Contains(t, err.Error(), c.says)
			continue
		}
		require.Contains(t, plan.Notes[0], c.says)
	}
	without := Config{Fabric: NVLink5}
	m, err := without.Model(num.F32, num.Sum, true)
	require.NoError(t, err)
	require.NotContains(t, m.Says(api.F32, api.Sum), "profile")
}

// TestProfileFieldsAreAll: every field of a cell comes back.
func TestProfileFieldsAreAll(t *testing.T) {
	p, err := ParseProfile([]byte(profileText()))
	require.NoError(t, err)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	again, err := ParseProfile(text)
	require.NoError(t, err)
	require.Equal(t, p, again)
	require.Equal(t, []string{"seen"}, p.Cells[0].Evidence)
}
