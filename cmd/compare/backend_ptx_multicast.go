package main

import (
	"context"
	"sync/atomic"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/num"
	"example.com/tandem/hw"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/inswitch"
	"example.com/tandem/sim/nvls"
	"example.com/tandem/sim/ptx"
)

// ptxSwitch is a virtual machine with a switch, for a team whose spec says
// multicast=on: the arithmetic of the switch is the spec's.
type ptxSwitch struct {
	driver  gpu.Driver
	backend *hw.Backend
	// origin is the place in the multicast range of a call's first source
	// element, which directions are counted from.
	origin atomic.Uint64
}

// openSwitch makes such a machine.
func openSwitch(spec api.Spec, devices int) (*ptxSwitch, error) {
	params := map[string]string{}
	for _, name := range []string{"dir", "seed"} {
		if v, ok := spec.Params[name]; ok {
			params[name] = v
		}
	}
	config, err := nvls.Parse(params)
	if err != nil {
		return nil, err
	}
	s := &ptxSwitch{}
	s.driver = ptx.Open(ptx.Options{Devices: devices, Seed: 1, Multicast: true, Sum: func(d num.DType, in []uint64, place uint64) uint64 {
		m, err := config.Model(d, num.Sum, true)
		if err != nil {
			return num.CanonicalNaN(d) // no form of the kernels has such a type
		}
		return m.Word(d, num.Sum, in, int64(place-s.origin.Load())/int64(d.Size()))
	}})
	s.backend = hw.New("ptx", s.driver)
	return s, nil
}

// Close lets go of the machine.
func (s *ptxSwitch) Close() error { return s.backend.Close() }

// open makes the machine's team.
func (s *ptxSwitch) open(ctx context.Context, spec api.Spec, t api.TeamConfig) (api.Team, error) {
	team, err := s.backend.Open(ctx, spec, t)
	if err != nil {
		return nil, err
	}
	if h, ok := team.(*host.Team); ok && spec.Implementation == "cascade" {
		return &switchTeam{h, s}, nil
	}
	return team, nil
}

// switchTeam is a team whose buffers are in the multicast range themselves, so
// that the virtual switch must be told where a call's elements begin.
type switchTeam struct {
	*host.Team
	machine *ptxSwitch
}

// Members are the ranks.
func (t *switchTeam) Members() []api.Member {
	var out []api.Member
	for _, m := range t.Team.Members() {
		out = append(out, switchMember{m, t.machine})
	}
	return out
}

type switchMember struct {
	api.Member
	machine *ptxSwitch
}

// Start notes where the source will lie: images are copied to the beginning of
// the range, each to its address modulo a power of two.
func (m switchMember) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	if len(mem) == 1 {
		src := mem[0].Src
		m.machine.origin.Store((src.Addr-uint64(src.Guard))%inswitch.ObjectAlign + uint64(src.Guard))
	}
	return m.Member.Start(call, mem)
}
