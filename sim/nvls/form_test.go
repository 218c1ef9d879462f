package nvls

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

func TestForms(t *testing.T) {
	for _, c := range []struct {
		form   string
		sm     int
		family bool
		bad    string // "" where the form exists
	}{
		{"multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2", 90, false, ""},
		{"multimem.ld_reduce.weak.global.add.acc::f32.f16x2", 90, false, ""},
		{"multimem.ld_reduce.global.add.v8.f16", 90, false, ""},
		{"multimem.ld_reduce.global.add.v2.f16", 90, false, ""},
		{"multimem.ld_reduce.global.add.f16", 90, false, "vectors [2 4 8]"},
		{"multimem.ld_reduce.global.add.v8.bf16x2", 90, false, "vectors [1 2 4]"},
		{"multimem.ld_reduce.global.add.v4.f64", 90, false, "vectors [1]"},
		{"multimem.ld_reduce.global.add.f64", 90, false, ""},
		{"multimem.ld_reduce.global.add.v4.f32", 90, false, ""},
		{"multimem.ld_reduce.global.add.acc::f32.v4.f32", 90, false, "no .acc::f32 with .f32"},
		{"multimem.ld_reduce.global.min.acc::f32.v4.bf16x2", 90, false, ".acc belongs to ld_reduce.add"},
		{"multimem.ld_reduce.global.min.v4.f16x2", 90, false, ""},
		{"multimem.ld_reduce.global.max.f32", 90, false, "operations on .f32 are [add]"},
		{"multimem.ld_reduce.global.add.s64", 90, false, "operations on .s64 are [min max]"},
		{"multimem.ld_reduce.global.max.s64", 90, false, ""},
		{"multimem.ld_reduce.global.add.u64", 90, false, ""},
		{"multimem.ld_reduce.global.and.b32", 90, false, ""},
		{"multimem.ld_reduce.global.xor.u32", 90, false, "operations on .u32"},
		{"multimem.ld_reduce.global.and.v2.b32", 90, false, "vectors [1]"},
		{"multimem.ld_reduce.global.add.acc::f16.v4.e4m3x4", 90, false, "fp8 needs sm_100"},
		{"multimem.ld_reduce.global.add.acc::f16.v4.e4m3x4", 100, false, ""},
		{"multimem.ld_reduce.global.add.acc::f16.v4.e4m3x4", 103, false, "family build"},
		{"multimem.ld_reduce.global.add.acc::f16.v4.e4m3x4", 103, true, ""},
		{"multimem.ld_reduce.global.add.acc::f32.v4.e4m3x4", 100, false, "no .acc::f32 with .e4m3x4"},
		{"multimem.ld_reduce.global.add.v4.e5m2", 100, false, ""},
		{"multimem.st.global.v4.f32", 90, false, ""},
		{"multimem.st.global.add.f32", 90, false, "a store reduces nothing"},
		{"multimem.red.relaxed.sys.global.add.f32", 90, false, ""},
		{"multimem.red.global.max.v2.f16x2", 90, false, "add only"},
		{"multimem.ld_reduce.global.add.u16", 90, false, "no type .u16"},
		{"multimem.ld_reduce.global.add.u32", 80, false, "needs sm_90"},
		{"multimem.ld_reduce.global.f32", 90, false, "names no operation"},
		{"multimem.xor.global.f32", 90, false, "no instruction"},
	} {
		f, err := ParseForm(c.form)
		require.NoError(t, err, c.form)
		err = f.Check(c.sm, c.family)
		if c.bad == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.bad, c.form)
		}
	}
	for _, text := range []string{"ld.global.b32", "multimem.f32", "multimem.ld_reduce.global.add.add.f32", "multimem.ld_reduce.ftz.add.f32"} {
		_, err := ParseForm(text)
		require.Error(t, err, text)
	}
	f, _ := ParseForm("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2")
	require.Equal(t, "multimem.ld_reduce.add.acc::f32.v4.bf16x2", f.String())
	require.Equal(t, 16, f.Bytes())
}

// TestTable: which (type, operation) the switch can do, and at which widths.
func TestTable(t *testing.T) {
	all, wide, eight, four, bits := []int{16, 8, 4}, []int{16, 8, 4}, []int{8}, []int{4}, []int{8, 4}
	want := map[num.Op]map[num.DType][]int{
		num.Sum: {num.F16: all, num.BF16: all, num.F32: wide, num.F64: eight, num.U32: four, num.I32: four, num.U64: eight, num.I64: eight, num.E4M3: all, num.E5M2: all},
		num.Min: {num.F16: all, num.BF16: all, num.U32: four, num.I32: four, num.U64: eight, num.I64: eight, num.E4M3: all, num.E5M2: all},
	}
	want[num.Max] = want[num.Min]
	for _, op := range []num.Op{num.And, num.Or, num.Xor} {
		want[op] = map[num.DType][]int{}
		for _, d := range num.DTypes() {
			if !d.Float() {
				want[op][d] = bits
			}
		}
	}
	for _, op := range num.Ops() {
		for _, d := range num.DTypes() {
			require.Equal(t, want[op][d], Widths(d, op), "%v of %v", op, d)
		}
	}
}

// TestParse: what the parameters choose, and what is refused.
func TestParse(t *testing.T) {
	type params = map[string]string
	for _, c := range []struct {
		params   params
		d        num.DType
		op       num.Op
		name     string
		contract api.Contract
	}{
		{nil, num.BF16, num.Sum, "bw_half", api.Faithful},
		{nil, num.F32, num.Sum, "bw_wide", api.Exact},
		{nil, num.E4M3, num.Sum, "bw_fp8", api.Faithful},
		{params{"dir": "rz"}, num.F16, num.Sum, "bw_half", api.Faithful},
		{params{"fabric": "nvswitch3"}, num.F16, num.Sum, "hop_acc32", api.Faithful},
		{params{"fabric": "nvswitch3"}, num.F32, num.Sum, "hop_native", api.Faithful},
		{params{"preset": "ideal_rne"}, num.F16, num.Sum, "ideal_rne", api.Exact},
		{params{"fabric": "custom", "preset": "bw_half", "result_bits": "40"}, num.F16, num.Sum, "bw_half", api.Faithful},
		{nil, num.F16, num.Max, "ignore_nan", api.Exact},
		{nil, num.I32, num.Sum, "ignore_nan", api.Exact},
	} {
		cfg, err := Parse(c.params)
		require.NoError(t, err)
		m, err := cfg.Model(c.d, c.op, true)
		require.NoError(t, err)
		require.Equal(t, c.name, m.Name)
		require.Equal(t, c.contract, cfg.Contract(c.d, c.op), "%v %v %v", c.params, c.d, c.op)
	}
	for _, c := range []struct {
		params params
		says   string
	}{
		{params{"fabric": "nvlink4"}, "custom|nvlink5|nvswitch3"},
		{params{"preset": "bw"}, "bw_wide"},
		{params{"dir": "up"}, "seeded|rz"},
		{params{"order": "0-0"}, "2-0-1"},
		{params{"seed": "x"}, "2^64-1"},
		{params{"kind": "exact"}, "fabric=custom"},
		{params{"fabric": "custom"}, "says nothing by itself"},
		{params{"fabric": "custom", "kind": "sum"}, "exact|window"},
		{params{"profile": "/no/such/file"}, "compare probe"},
	} {
		_, err := Parse(c.params)
		require.ErrorIs(t, err, api.ErrInvalid)
		require.ErrorContains(t, err, c.says, "%v", c.params)
	}
	for _, c := range []struct {
		params params
		d      num.DType
		op     num.Op
		says   string
	}{
		{nil, num.F32, num.Min, "no multimem.ld_reduce does min of f32"},
		{nil, num.U8, num.Sum, "no multimem.ld_reduce does sum of u8"},
		{params{"fabric": "nvswitch3"}, num.E4M3, num.Sum, "no sum of e4m3"},
		{params{"preset": "bw_half"}, num.F32, num.Sum, "not about f32"},
		{params{"fabric": "custom", "kind": "fold", "acc": "f32"}, num.F64, num.Sum, "narrower"},
		{params{"fabric": "custom", "kind": "window", "granule": "16", "final": "rne", "acc": "f32"}, num.E4M3, num.Max, "nothing is known"},
	} {
		cfg, err := Parse(c.params)
		require.NoError(t, err)
		_, err = cfg.Model(c.d, c.op, true)
		require.ErrorContains(t, err, c.says)
	}
	require.Len(t, Params(), 6)
	require.Len(t, SpaceParams(), 16)
	require.True(t, Known("dir"))
	require.False(t, Known("max_ctas"))
}

// FuzzProfile: whatever a file holds, it is read or refused, and what is read
// can be evaluated.
func FuzzProfile(f *testing.F) {
	f.Add([]byte(`{"schema":"tandem.nvls_profile/1","of":"x","cells":[{"dtype":"bf16","op":"sum","ranks":2,"exact":true,"model":{"name":"a","kind":"window","granule":16,"result_bits":38,"final":"rz"}}]}`))
	f.Add([]byte(`{"schema":"tandem.nvls_profile/1","cells":[{"dtype":"f64","op":"max","exact":true,"model":{"kind":"fold","order":"1-0","final":"rne"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProfile(text)
		if err != nil {
			return
		}
		for _, c := range p.Cells {
			d, _ := num.ParseDType(c.DType)
			op, _ := num.ParseOp(c.Op)
			if _, err := NewReducer(c.Model, d, op, 2); err == nil {
				c.Model.Word(d, op, []uint64{1, 2}, 0)
			}
		}
	})
}

// FuzzForm: whatever the text, it is a form or refused, and a form that exists
// has a length that accesses have.
func FuzzForm(f *testing.F) {
	f.Add("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2", 90)
	f.Add("multimem.red.v8.e4m3", 103)
	f.Fuzz(func(t *testing.T, text string, sm int) {
		form, err := ParseForm(text)
		if err != nil || form.Check(sm, false) != nil {
			return
		}
		require.Contains(t, []int{4, 8, 16}, form.Bytes())
		again, err := ParseForm(form.String())
		require.NoError(t, err)
		require.Equal(t, form, again)
		c := Config{}
		if a, err := c.Access(form); err == nil {
			a.Word([]uint64{1, 2, 3}, 0)
		}
	})
}
