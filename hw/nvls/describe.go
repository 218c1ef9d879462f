package nvls

import (
	"example.com/tandem/api"
	"example.com/tandem/hw/inswitch"
)

// Describe is the entry of the implementation in a backend's list.
func Describe() api.Implementation {
	return api.Implementation{
		Name:        Name,
		Summary:     "all_reduce, reduce_scatter and all_gather through the switch, all words of it; other calls are tandem's. Multicast is emulated unless multicast=on",
		Params:      Params(),
		Collectives: api.Collectives(),
		DTypes:      api.DTypes(),
		Promises:    api.Checks(),
		Contract:    api.Faithful,
		Evidence:    map[string]api.Evidence{algSwitch: api.FromSource, algTree: api.FromSource},
		Thresholds:  Thresholds,
	}
}

// Thresholds are the counts around which something changes: one row of words, and
// one line for each thread of a block.
func Thresholds(call api.Call) []int64 {
	if _, _, ok := inSwitch(&call); !ok || !call.DType.Valid() || call.Ranks > inswitch.MaxRanks {
		return nil
	}
	size := int64(call.DType.Size())
	return []int64{16 / size, 16 * int64(call.Ranks) / size, 16 * inswitch.Threads / size}
}
