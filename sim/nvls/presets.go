package nvls

import (
	"maps"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// Preset is a model with a name, what it is good for and how it is known.
type Preset struct {
	Model
	DTypes   []num.DType
	Evidence api.Evidence
	Says     string
}

var (
	wides  = []num.DType{num.F32, num.F64}
	halves = []num.DType{num.BF16, num.F16}
	fp8s   = []num.DType{num.E4M3, num.E5M2}
	floats = slices.Concat(halves, wides, fp8s)
)

// halfWindow is what is measured of 16-bit sums on Blackwell, but for the last
// rounding.
func halfWindow(name string, last Final) Model {
	return Model{Name: name, Kind: KindWindow, Granule: 16, ResultBits: 38, Final: last}
}

func fold(name string, acc Acc, step Final) Model {
	return Model{Name: name, Kind: KindFold, Acc: acc, Step: step, Order: OrderPerm, Unordered: true, Final: RNE}
}

// Presets lists the presets, in the order in which they are documented.
func Presets() []Preset {
	hopNative := fold("hop_native", AccSame, RNE)
	hopNative.AccEffect = AccSelects
	fp8 := fold("bw_fp8", AccF16, RNE)
	fp8.Final, fp8.Overflow = RHU, OverflowNaN
	tree := fold("hop_tree", AccSame, RNE)
	tree.Kind = KindTree
	stepwise := Model{Name: "ref_stepwise", Kind: KindFold, Acc: AccSame, Step: RNE, Order: OrderRank, Final: RNE, KeepNeg0: true}
	return []Preset{
		{Model{Name: "bw_wide", Kind: KindWindow, Granule: 16, TermBits: 95, ResultBits: 86, Final: RNE}, wides, api.Reported,
			"Blackwell f32 and f64: a fixed-point window, rounded once to nearest even; measured on GB200 with 2 and 4 GPUs"},
		{halfWindow("bw_half", DIR), halves, api.Reported,
			"Blackwell 16-bit: a neighbour of the exact sum, which one is unknown; the set is measured, the direction seeded"},
		{halfWindow("bw_half_rz", RZ), halves, api.Assumed, "Blackwell 16-bit, always toward zero: a member of the class, no claim"},
		{halfWindow("bw_half_rne", RNE), halves, api.Assumed, "Blackwell 16-bit to nearest even: known to be wrong in the last bit"},
		{halfWindow("bw_half_g1", G1), halves, api.Assumed, "Blackwell 16-bit with one guard bit and no sticky bit: an open alternative"},
		{fp8, fp8s, api.Assumed, "Blackwell fp8: a fold in f16 in unknown order, half up, NaN out of range; from one code comment"},
		{hopNative, floats, api.Assumed, "Hopper: a fold in the element type, in unknown order"},
		{fold("hop_acc32", AccF32, RNE), halves, api.Assumed, "Hopper 16-bit with .acc::f32: a fold in f32 in unknown order, rounded once"},
		{fold("hop_native_rz", AccSame, RZ), floats, api.Assumed, "a fold in the element type that truncates at every step: contrast"},
		{tree, floats, api.Assumed, "a balanced tree in the element type, in unknown order: contrast"},
		{stepwise, floats, api.FromSource, "one addition a rank in rank order in the element type, as without a switch"},
		{Model{Name: "mma_like", Kind: KindAligned, AlignBits: 25, Final: RNE}, floats, api.Assumed,
			"a tensor core's fused sum: 25 bits below the greatest exponent; contrast, ruled out on GB200"},
		{Model{Name: "ideal_rne", Kind: KindExact, Final: RNE}, floats, api.FromSource, "the exact sum, rounded once to nearest even"},
	}
}

// PresetOf returns the preset of that name.
func PresetOf(name string) (Preset, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// PresetNames lists the names.
func PresetNames() []string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// Fabric is a generation of switches: the preset for each kind of sum, "" where
// the switch has none. The arithmetic is the switch's, not the GPU's.
type Fabric struct {
	Name    string
	Says    string
	Wide    string // f32 and f64
	Half    string // bf16 and f16
	HalfAcc string // the same with .acc::f32
	FP8     string
}

// The fabrics.
const (
	NVSwitch3 = "nvswitch3"
	NVLink5   = "nvlink5"
	Custom    = "custom"
)

var fabrics = map[string]Fabric{
	NVSwitch3: {NVSwitch3, "the switch of sm_90: no bits published, an order-dependent fold", "hop_native", "hop_native", "hop_acc32", ""},
	NVLink5:   {NVLink5, "the switch of sm_100 and sm_103: f32 and f64 measured, 16-bit sums one of two neighbours", "bw_wide", "bw_half", "bw_half", "bw_fp8"},
	Custom:    {Name: Custom, Says: "what preset, profile and the parameters of the space say"},
}

// FabricOf returns the fabric of that name.
func FabricOf(name string) (Fabric, bool) {
	f, ok := fabrics[name]
	return f, ok
}

// FabricNames lists the names.
func FabricNames() []string { return slices.Sorted(maps.Keys(fabrics)) }

// Preset is the name of the preset for sums of d; "" where there is none.
func (f Fabric) Preset(d num.DType, acc32 bool) string {
	switch {
	case !d.Float():
		return ""
	case d.Size() > 2:
		return f.Wide
	case d.Size() == 1:
		return f.FP8
	case acc32:
		return f.HalfAcc
	}
	return f.Half
}
