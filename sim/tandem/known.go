package tandem

import (
	"slices"

	"example.com/tandem/api"
)

// known is what the session's last call was found to be, for more of the same:
// what was decided, and the steps of its kernels. Nothing in it depends on what is
// left of an earlier call, and the config of a session does not change.
type known struct {
	call     api.Call
	decision *decision
	hash     uint64
	kernels  []*kernel // by rank and block, as they are needed
}

// of is what is known of a call, with what is new worked out.
func (s *Session) of(call *api.Call) *known {
	if k := s.known; k != nil && alike(&k.call, call) {
		return k
	}
	d := s.decide(call)
	s.known = &known{call: *call, decision: d, hash: s.signature(call), kernels: make([]*kernel, call.Ranks*d.grid)}
	s.known.call.Many = slices.Clone(call.Many)
	return s.known
}

// alike reports whether everything is decided alike for two calls; they may differ
// in where their buffers are.
func alike(a, b *api.Call) bool {
	return a.Collective == b.Collective && a.DType == b.DType && a.Op == b.Op && a.Ranks == b.Ranks &&
		a.Count == b.Count && a.Root == b.Root && a.Scope == b.Scope && a.Mode == b.Mode && slices.Equal(a.Many, b.Many)
}

// kernel is one block of the launch.
func (l *launch) kernel(block int) *kernel {
	at := &l.known.kernels[l.rank*l.grid+block]
	if *at == nil || (*at).inPlace != l.inPlace {
		*at = newKernel(l, block)
	}
	k := **at
	k.launch = l
	return &k
}
