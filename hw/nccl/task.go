package nccl

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/hw/host"
)

// kind is a function of the library; abi.h has the same numbers.
type kind int32

const (
	doAllReduce kind = iota
	doReduceScatter
	doAllGather
	doBroadcast
	doSend
	doRecv
)

// task is one call of the library, for one rank; abi.h has the same fields.
type task struct {
	comm, stream, context uintptr
	send, recv            uint64 // addresses
	count                 uint64 // elements, in the sense of the function
	kind                  kind
	dtype, op             int32
	peer                  int32 // or root
}

// dtypes are the library's numbers of element types (ncclDataType_t). It has no
// 16-bit integers.
var dtypes = map[api.DType]int32{
	api.I8: 0, api.U8: 1, api.I32: 2, api.U32: 3, api.I64: 4, api.U64: 5,
	api.F16: 6, api.F32: 7, api.F64: 8, api.BF16: 9, api.E4M3: 10, api.E5M2: 11,
}

// ops are its numbers of operations (ncclRedOp_t).
var ops = map[api.Op]int32{num.Sum: 0, num.Prod: 1, num.Max: 2, num.Min: 3, num.Avg: 4}

// eightBits is the first version with fp8.
const eightBits = 22400

// reducers are the functions of the collectives; all_to_all is not among them.
var kinds = map[api.Collective]kind{
	api.AllReduce: doAllReduce, api.ReduceScatter: doReduceScatter, api.AllGather: doAllGather, api.Broadcast: doBroadcast,
}

// collectives are all there are.
func collectives() []api.Collective {
	return []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.Broadcast, api.AllToAll, api.AllGatherMany, api.ReduceScatterMany}
}

// admit says whether the library takes a call that is valid.
func admit(spec string, version int, call *api.Call) error {
	refuse := func(what, why, hint string) error {
		return &api.Refused{Spec: spec, What: what, Reason: why, Hint: hint}
	}
	switch {
	case !slices.Contains(collectives(), call.Collective):
		return refuse(call.Collective.Name(), "the library has no such operation", "")
	case call.Scope != api.OnStream:
		return refuse("scope "+call.Scope.String(), "NCCL's host calls are on a stream", "scope on_stream")
	case call.InPlace == api.InPlaceStart:
		return refuse("in place at the start of the source", "NCCL's in-place reduce-scatter writes the rank's own block", "in_place true")
	case call.Mode != "":
		return refuse("mode "+call.Mode, "NCCL has no modes", "leave it out")
	case call.Op.Bitwise():
		return refuse(call.Op.String(), "NCCL has no bitwise operations", "sum, prod, min, max or avg")
	}
	for i := range call.Lanes() {
		d := call.Lane(i).DType
		if _, ok := dtypes[d]; !ok {
			return refuse(d.String(), "NCCL has no 16-bit integers", "another dtype")
		}
		if (d == api.E4M3 || d == api.E5M2) && version < eightBits {
			return refuse(d.String(), fmt.Sprintf("NCCL %s has no fp8", Version(version)), "NCCL 2.24 or later")
		}
	}
	return nil
}

// tasks are the calls of a group, lane by lane and rank by rank.
func tasks(call *api.Call, mem []host.Buffers, ranks []task) []task {
	var out []task
	for lane := range call.Lanes() {
		l := call.Lane(lane)
		block := uint64(l.Count) * uint64(l.DType.Size())
		for r, t := range ranks {
			t.send, t.recv = uint64(mem[r][lane].Src), uint64(mem[r][lane].Dst)
			t.count, t.dtype, t.op, t.peer = uint64(l.Count), dtypes[l.DType], ops[call.Op], int32(call.Root)
			base := api.Base(call.Collective)
			if k, ok := kinds[base]; ok {
				t.kind = k
				out = append(out, t)
				continue
			}
			for peer := range ranks {
				s, v := t, t
				s.kind, s.peer, s.send, s.recv = doSend, int32(peer), t.send+uint64(peer)*block, 0
				v.kind, v.peer, v.recv, v.send = doRecv, int32(peer), t.recv+uint64(peer)*block, 0
				out = append(out, s, v)
			}
		}
	}
	return out
}
