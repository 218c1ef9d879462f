package conformance_test

import (
	"context"
	"fmt"
	"os"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/inputs"
)

// A backend of one's own needs Open, Members, Start and Wait. This one adds up
// integers and forgets the last element of an odd count.
type forgetful struct{}

func (forgetful) Name() string { return "mine" }

func (forgetful) Implementations() []api.Implementation {
	return []api.Implementation{{Name: "forgetful", Collectives: []api.Collective{api.AllReduce}, DTypes: []api.DType{api.U16}}}
}

func (forgetful) Open(_ context.Context, _ api.Spec, cfg api.TeamConfig) (api.Team, error) {
	t := &forgetfulTeam{sources: make([][]byte, cfg.Ranks)}
	for r := range cfg.Ranks {
		t.members = append(t.members, &forgetfulMember{t, r})
	}
	return t, nil
}

type forgetfulTeam struct {
	members []api.Member
	sources [][]byte
}

func (t *forgetfulTeam) Members() []api.Member       { return t.members }
func (t *forgetfulTeam) Close(context.Context) error { return nil }

type forgetfulMember struct {
	team *forgetfulTeam
	rank int
}

func (m *forgetfulMember) Rank() int { return m.rank }

func (m *forgetfulMember) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	if call.Op != api.Sum {
		return nil, &api.Refused{Spec: "mine:forgetful", What: call.Op.String(), Reason: "it can only add"}
	}
	m.team.sources[m.rank] = append([]byte(nil), mem[0].Src.Payload()...)
	return forgetfulPending{m.team, mem[0].Dst.Payload()}, nil
}

type forgetfulPending struct {
	team *forgetfulTeam
	dst  []byte
}

// Wait is called when every rank has started.
func (p forgetfulPending) Wait(context.Context) (api.Outcome, error) {
	n := len(p.dst) / 4 * 4 // two elements at a time
	for i := 0; i < n; i += 2 {
		var sum uint16
		for _, s := range p.team.sources {
			sum += uint16(s[i]) | uint16(s[i+1])<<8
		}
		p.dst[i], p.dst[i+1] = byte(sum), byte(sum>>8)
	}
	return api.Outcome{}, nil // it does not keep account of its stores
}

func ExampleRun() {
	mine := conformance.Side{Backend: forgetful{}, Spec: api.Spec{Backend: "mine", Implementation: "forgetful"}}
	call := api.Call{Collective: api.AllReduce, DType: api.U16, Op: api.Sum, Ranks: 2, Count: 1001}
	rep, err := conformance.Run(context.Background(), mine, conformance.Definition(), call)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rep.Verdict, *rep.Left.Ranks[0].Unwritten, *rep.Right.Ranks[0].Unwritten)
	for _, c := range rep.Causes {
		fmt.Println(c.Class, c.Elements)
	}
	// Output:
	// diverge 1 0
	// odd_tail 2
}

func ExampleReport_WriteText() {
	mine := conformance.Side{Backend: forgetful{}, Spec: api.Spec{Backend: "mine", Implementation: "forgetful"}}
	call := api.Call{Collective: api.AllReduce, DType: api.U16, Op: api.Sum, Ranks: 2, Count: 3}
	r := conformance.Runner{Input: inputs.Input{Kind: inputs.Values, Values: []uint64{1, 2}}}
	rep, err := r.Run(context.Background(), mine, conformance.Definition(), call)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = rep.WriteText(os.Stdout, conformance.TextOptions{})
	// Output:
	// all_reduce sum of u16, 2 ranks x 3 elements, on_stream (--values 0x1,0x2)
	//   left   mine:forgetful
	//   right  definition:exact   (definition: source)
	//
	// DIVERGE: 2 of 6 outputs break the exact contract (equal bits)
	//   unwritten       left 1 on every rank, right 0 on every rank
	//   ranks           left all hold the same bits, right all hold the same bits
	//   first           rank 0, element 2: left nothing, right 0x0003 (3)
	//
	// values
	//   ranks 0, 1, elements 0 to 1: left 0x0003 (3), right 0x0003 (3)
	//   ranks 0, 1, element 2: left nothing, right 0x0003 (3)
	//
	// why
	//   odd_tail  2 elements
	//     left: the slice has an odd number of 2-byte elements: its last one is half of the narrowest multicast word of 4 bytes, and nothing else stores it; judged from the positions alone
	//
	// again: compare run --left mine:forgetful --right definition:exact --collective all_reduce --dtype u16 --op sum --ranks 2 --count 3 --values 0x1,0x2
}

// printer stands for a *testing.T.
type printer struct{}

func (printer) Helper() {}
func (printer) Errorf(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
}

func ExampleTest() {
	conformance.Test(printer{}, forgetful{}, conformance.TestOptions{Ranks: []int{2}, Counts: []int64{4, 5}, Offsets: []int64{0}})
	// Output:
	// mine:forgetful: --collective all_reduce --dtype u16 --op sum --ranks 2 --count 5: 2 outputs differ from the definition, first on rank 0 in element 4: nothing instead of 0x974b; odd_tail: left: the slice has an odd number of 2-byte elements: its last one is half of the narrowest multicast word of 4 bytes, and nothing else stores it; judged from the positions alone
	// mine:forgetful: --collective all_reduce --dtype u16 --op sum --ranks 2 --count 5 --in-place: 2 outputs differ from the definition, first on rank 0 in element 4: 0x62c2 instead of 0x974b; odd_tail: left: the slice has an odd number of 2-byte elements: its last one is half of the narrowest multicast word of 4 bytes, and nothing else stores it; judged from the positions alone
}
