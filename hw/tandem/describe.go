package tandem

import "example.com/tandem/api"

// Describe is the entry of the implementation in a backend's list.
func Describe() api.Implementation {
	return api.Implementation{
		Name:        Name,
		Summary:     "the fixed tree over any number of ranks up to 72, on GPUs: pushed lines, direct reads, two shots",
		Params:      Params(),
		Collectives: api.Collectives(),
		DTypes:      api.DTypes(),
		Promises:    api.Checks(),
		Contract:    api.Exact,
		Evidence:    map[string]api.Evidence{"push": api.FromSource, "direct": api.FromSource, "two_shot": api.FromSource, "staged": api.FromSource},
		Thresholds:  Thresholds,
	}
}

// Thresholds are the counts around which the path of a call changes.
func Thresholds(call api.Call) []int64 {
	if api.IsMany(call.Collective) || call.Ranks < 2 || call.Ranks > MaxRanks || !call.DType.Valid() {
		return nil
	}
	size := int64(call.DType.Size())
	return []int64{threads * 16 / size, slotBytes(call.Ranks) / size}
}
