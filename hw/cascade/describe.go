package cascade

import (
	"slices"

	"example.com/tandem/api"
)

// Describe is the entry of one version in a backend's list.
func Describe(version string) api.Implementation {
	says := map[string]string{
		Before:    "before PR #131",
		After:     "after PR #131",
		AfterTeam: "after PR #131, split by 16 bytes times the ranks",
		AfterTail: "after PR #131, with what does not fit words of every rank split off to P2P",
	}[version]
	known := map[string]api.Evidence{"recexch": api.FromSource, "segment": api.FromSource, "ll": api.FromSource, "one_shot": api.FromSource, "two_shot": api.FromSource}
	if version != Before {
		known["one_shot"], known["two_shot"] = api.Reconstructed, api.Reconstructed
	}
	return api.Implementation{
		Name:        Name,
		Version:     version,
		Summary:     "NVSHMEM's all-reduce as kernels of our own, " + says + ", unwritten outputs included. Multicast is emulated unless multicast=on",
		Params:      Params(),
		Collectives: []api.Collective{api.AllReduce},
		DTypes:      slices.DeleteFunc(api.DTypes(), func(d api.DType) bool { return d.Float() && d.Size() == 1 }),
		Promises:    []api.Check{api.CheckLiveness},
		Contract:    api.Faithful,
		Evidence:    known,
		Thresholds:  func(call api.Call) []int64 { return thresholds(&call) },
	}
}

// thresholds are the counts around which something changes.
func thresholds(call *api.Call) []int64 {
	if call.Collective != api.AllReduce || call.Ranks < 2 || !call.DType.Valid() {
		return nil
	}
	phases := int64(0)
	for 2<<phases <= call.Ranks {
		phases++
	}
	size := int64(call.DType.Size())
	return []int64{int64(call.Ranks), 2048, 32768 / (1 + 3*phases), 32768 / size, spreadBytes / size}
}
