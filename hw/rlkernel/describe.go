package rlkernel

import "example.com/tandem/api"

// Versions lists the versions, oldest first.
func Versions() []string { return []string{Before, After} }

// Describe is the entry of a version in a backend's list.
func Describe(version string) api.Implementation {
	summary := "what RL-Kernel launches, on GPUs: a gather by vectors, from 64 KiB of output on a grid"
	if version == Before {
		summary = "what RL-Kernel launches, on GPUs: a gather by bytes, in one block up to 256 KiB of output"
	}
	return api.Implementation{
		Name: Name, Version: version, Summary: summary,
		Params:      Params(version),
		Collectives: operations(),
		DTypes:      api.DTypes(),
		Promises: []api.Check{
			api.CheckCoverage, api.CheckValue, api.CheckRankAgreement, api.CheckRunToRun, api.CheckSizeInvariance, api.CheckPlacementInvariance,
		},
		Contract: api.Exact,
		Evidence: map[string]api.Evidence{
			algSingle: api.FromSource, algStage: api.FromSource, algMulti: api.FromSource, algCopies: api.FromSource, algOwner: api.Reconstructed,
		},
		Thresholds: func(call api.Call) []int64 { return thresholds(version, call) },
	}
}

// thresholds are the greatest counts of one block, of a stage in one block, and
// of a grid whose threads make one trip.
func thresholds(version string, call api.Call) []int64 {
	if call.Ranks < 1 || !call.DType.Valid() {
		return nil
	}
	size, ranks := int64(call.DType.Size()), int64(call.Ranks)
	switch call.Collective {
	case api.AllReduce:
		return []int64{oneBlock / size, maxBlocks * threads}
	case api.ReduceScatter:
		return []int64{max(1, oneBlock/(size*ranks)), maxBlocks * threads}
	case api.AllGather:
		return []int64{max(1, gatherLimit(version)/(size*ranks)), oneBlock / size, max(1, maxBlocks*threads/(size*ranks))}
	}
	return nil
}
