package nvshmem_test

import (
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/nvshmem"
)

// reference gives values by the description's formulas.
type reference struct {
	plan *api.Plan
	p    nvshmem.Params
	src  [][]uint64
}

// value is what element index of rank's destination must be; false where no
// store reaches it or it is stale.
func (f reference) value(rank int, index int64) (uint64, string, bool) {
	call := &f.plan.Call
	place, ok := f.plan.Locate(0, rank, index)
	if !ok {
		return 0, "", false
	}
	for _, h := range f.plan.Holes(0, rank) {
		if index >= h.Start && index < h.Start+h.Count && h.Cause != api.CauseOffset {
			return 0, "", false
		}
	}
	inputs := make([]uint64, call.Ranks)
	at := func(i int64) []uint64 {
		for r := range inputs {
			inputs[r] = f.src[r][i]
		}
		return inputs
	}
	n := call.Count
	switch alg := place.Algorithm; alg {
	case "one_shot", "two_shot":
		return f.inSwitch(at(index), index), alg, true
	case "recexch":
		return f.exchange(at(index))[rank], alg, true
	case "segment":
		in := at(index)
		order := []uint64{in[rank]}
		for i := 1; i < call.Ranks; i++ {
			order = append(order, in[(rank-i+call.Ranks)%call.Ranks])
		}
		return f.fold(order...), alg, true
	case "ll":
		in := at(index)
		v := in[0]
		for i := 1; i < len(in); i++ {
			if i == 1 {
				v = f.fold(v, in[i])
			} else {
				v = f.fold(in[i], v)
			}
		}
		return v, alg, true
	case "linear":
		return f.fold(at(int64(rank)*place.CTA.Count + index - place.CTA.Start)...), alg, true
	case "nvls":
		if call.Collective == api.ReduceScatter {
			if !call.DType.Float() && (call.Op == api.Sum || call.Op == api.Min || call.Op == api.Max) {
				return 0, "", false // words of other widths than the type: section 10.12
			}
			return f.inSwitch(at(int64(rank)*n+index), int64(rank)*n+index), alg, true
		}
	}
	in := call.Inputs(nil, 0, rank, index)
	return f.src[in[0].Rank][in[0].Index], place.Algorithm, true
}

func (f reference) fold(in ...uint64) uint64 {
	return num.Eval(f.plan.Call.DType, num.Scheme{Op: f.plan.Call.Op, MinMax: num.Ternary}, in)
}

func (f reference) inSwitch(in []uint64, index int64) uint64 {
	d := f.plan.Call.DType
	if !d.Float() {
		return num.Eval(d, num.Scheme{Op: f.plan.Call.Op}, in)
	}
	m, err := f.p.Switch(d, f.plan.Call.Op)
	if err != nil {
		panic(err)
	}
	return m.Word(d, f.plan.Call.Op, in, index)
}

// exchange is recursive exchange on one element of all ranks.
func (f reference) exchange(in []uint64) []uint64 {
	ranks := len(in)
	k := f.p.Radix(ranks)
	power := 1
	for power*k <= ranks {
		power *= k
	}
	rest := ranks - power
	folded := rest * k / (k - 1)
	var hyper []int // ranks of step 2
	back := map[int][]int{}
	v := slices.Clone(in)
	for r := range ranks {
		if r < folded && r%k != k-1 {
			continue
		}
		first := r
		if r < folded {
			first = r - k + 1
		} else if r == folded {
			first = r - folded%k
		}
		for j := r - 1; j >= first; j-- {
			v[r] = f.fold(v[r], in[j])
			back[r] = append(back[r], j)
		}
		hyper = append(hyper, r)
	}
	for w := 1; w < power; w *= k {
		before := slices.Clone(v)
		for place, r := range hyper {
			own := place / w % k
			for digit := range k {
				if digit != own {
					v[r] = f.fold(v[r], before[hyper[place+(digit-own)*w]])
				}
			}
		}
	}
	for r, js := range back {
		for _, j := range js {
			v[j] = v[r]
		}
	}
	return v
}
