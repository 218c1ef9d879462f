package machine

import (
	"fmt"

	"example.com/tandem/api"
)

// poison is what scratch holds that nobody wrote.
const poison = 0xCD

// memory is the memory of one rank.
type memory struct {
	user    api.Memory
	scratch []byte
	box     []byte
	line    []byte
	flags   flags
	words   []word
	temps   []word

	userShadow    shadow // by address
	scratchShadow shadow
	boxShadow     shadow
}

type word struct {
	value uint64
	from  *stamp
}

// fit makes room for what a program needs. What persists is kept.
func (m *memory) fit(n Needs) {
	if int64(len(m.scratch)) < n.Scratch {
		m.scratch = make([]byte, n.Scratch)
	}
	m.box = grown(m.box, int(n.Box))
	m.line = grown(m.line, int(n.Line))
	m.words = grown(m.words, n.Words)
	m.temps = grown(m.temps, n.Temps)
}

func grown[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	out := make([]T, n)
	copy(out, s)
	return out
}

// follow tells an order of the accesses.
func (m *memory) follow(o *order) {
	m.userShadow.order, m.scratchShadow.order, m.boxShadow.order = o, o, o
}

// begin readies the memory for a run.
func (m *memory) begin(user api.Memory) {
	m.user = user
	clear(m.temps)
	for i := range m.words {
		m.words[i].from = nil
	}
	m.flags.settle()
	m.userShadow.reset()
	m.scratchShadow.reset()
	m.boxShadow.reset()
}

func (m *memory) image(r Ref) *api.Image {
	if r.Space == Src {
		return &m.user[r.Lane].Src
	}
	return &m.user[r.Lane].Dst
}

// limits are the least and the greatest offset, in bytes, of r's space.
func (m *memory) limits(r Ref) (lo, hi int64, err error) {
	switch r.Space {
	case Src, Dst:
		if int(r.Lane) >= len(m.user) {
			return 0, 0, fmt.Errorf("%v: there are %d lanes", r, len(m.user))
		}
		img := m.image(r)
		return -int64(img.Guard), img.Len() + int64(img.Guard), nil
	case Scratch:
		return 0, int64(len(m.scratch)), nil
	case Box:
		return 0, int64(len(m.box)), nil
	case Line:
		return 0, int64(len(m.line)), nil
	}
	return 0, 0, fmt.Errorf("%v is no range of bytes", r)
}

// bytes is a range, which limits has approved.
func (m *memory) bytes(r Ref, n int64) []byte {
	switch r.Space {
	case Src, Dst:
		img := m.image(r)
		at := int64(img.Guard) + r.Off
		return img.Bytes[at : at+n : at+n]
	case Scratch:
		return m.scratch[r.Off : r.Off+n : r.Off+n]
	case Box:
		return m.box[r.Off : r.Off+n : r.Off+n]
	}
	return m.line[r.Off : r.Off+n : r.Off+n]
}

// key is the address by which accesses are compared; places with the same key
// in the same arena are the same byte.
func (m *memory) key(r Ref) int64 {
	if r.isUser() {
		return int64(m.image(r).Addr) + r.Off
	}
	return r.Off
}

func (m *memory) shadow(s Space) *shadow {
	switch s {
	case Scratch:
		return &m.scratchShadow
	case Box:
		return &m.boxShadow
	}
	return &m.userShadow
}

func (m *memory) wordAt(r Ref) *word {
	if r.Space == Word {
		return &m.words[r.Off]
	}
	return &m.temps[r.Off]
}
