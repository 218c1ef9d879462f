package rlkernel

import "example.com/tandem/api"

// interrupted says, for an exception on the host of rank after a number of
// launches, which kernel had been launched last and whether the host's flag for
// a staged input is set: stage() sets it when all it launches is enqueued, and
// only the retire launch or a fused kernel clears it. all_gather_many never
// sets it.
func interrupted(plan *api.Plan, rank int, launched int64) (after string, pending bool) {
	after = "before any"
	for i := range plan.Kernels {
		k := &plan.Kernels[i]
		n := launchesOf(&plan.Call, k, rank)
		if launched < n || launched == 0 {
			return after, pending
		}
		launched -= n
		if n > 0 {
			after = "after " + k.Name
		}
		switch {
		case k.CTAs[0].Algorithm == algCopies:
		case k.Name == opStage.String(), k.Name == opPublish.String():
			pending = true
		case k.Name == opRetire.String(), k.Name == opFinish.String(), k.Name == opFused.String():
			pending = false
		}
	}
	return after, pending
}

// launchesOf is the number of stream operations of a kernel on a rank.
func launchesOf(call *api.Call, k *api.Kernel, rank int) int64 {
	owned := k.CTAs[0].Algorithm == algOwner
	switch k.Name {
	case opBarrier.String():
		return 0
	case opCopyOut.String():
		return int64(len(k.CTAs[0].Slices))
	case opPush.String():
		if rank == 0 {
			return int64(call.Ranks - 1)
		}
		return 0
	case opTree.String():
		return b2i(rank == 0)
	case opWait.String():
		return b2i(!owned || rank == 0)
	case opOwned.String():
		return b2i(rank != 0)
	}
	return 1
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
