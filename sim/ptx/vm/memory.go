package vm

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

const (
	pageLog   = 16 // regions begin at multiples of 64 KiB
	firstAddr = 0x7000_0000_0000
	// Generic addresses of what is not global memory.
	windowMask   = 0xF000_0000_0000_0000
	paramWindow  = 0x1000_0000_0000_0000
	sharedWindow = 0x2000_0000_0000_0000
	localWindow  = 0x4000_0000_0000_0000
)

// Store is memory without an address: the bytes, which of them were ever
// written, and what is known of accesses to them.
type Store struct {
	Data   []byte
	Device int // -1 is host memory
	init   []uint64
	cells  []*cellPage
	// shared is the block whose shared memory this is; accesses to it are
	// checked like all others.
	shared bool
}

const (
	grain        = 16 // bytes of a cell: a vector access touches one
	cellsPerPage = 64
)

type cellPage [cellsPerPage]cell

// NewStore gives n bytes: cleared and counted as written if initialised.
func NewStore(n uint64, device int, initialised bool) *Store {
	words := make([]uint64, n/8+1)
	s := &Store{Data: unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n), Device: device}
	if !initialised {
		s.init = make([]uint64, n/64+1)
	}
	s.cells = make([]*cellPage, n/(grain*cellsPerPage)+1)
	return s
}

// wrote marks n bytes as written.
func (s *Store) wrote(off, n uint64) {
	if s.init == nil {
		return
	}
	if n <= 8 {
		for i := off; i < off+n; i++ {
			s.init[i/64] |= 1 << (i % 64)
		}
		return
	}
	for i := off; i < off+n; {
		if i%64 == 0 && off+n-i >= 64 {
			s.init[i/64] = ^uint64(0)
			i += 64
			continue
		}
		s.init[i/64] |= 1 << (i % 64)
		i++
	}
}

// written reports whether any of n bytes was ever written.
func (s *Store) written(off, n uint64) bool {
	if s.init == nil {
		return true
	}
	for i := off; i < off+n; i++ {
		if s.init[i/64]>>(i%64)&1 != 0 {
			return true
		}
	}
	return false
}

func (s *Store) cell(off uint64) *cell {
	p := &s.cells[off/(grain*cellsPerPage)]
	if *p == nil {
		*p = new(cellPage)
	}
	return &(*p)[off/grain%cellsPerPage]
}

func (s *Store) load(off uint64, size int) uint64 {
	p := s.Data[off:]
	switch size {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(load32(p))
	default:
		return load64(p)
	}
}

func (s *Store) store(off uint64, size int, v uint64) {
	p := s.Data[off:]
	switch size {
	case 1:
		p[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(v))
	case 4:
		store32(p, uint32(v))
	default:
		store64(p, v)
	}
}

// Region is a store, or a part of one, at an address.
type Region struct {
	Base  uint64
	Bytes uint64
	Store *Store // nil for a multicast address
	// Devices that reach it; nil where all do.
	Devices func(device int) bool
	// Alias tells mappings of one store apart; 0 is its first address.
	Alias int
	// Parts of a multicast address, one a device, all of Bytes.
	Parts []*Store
	Freed bool
}

// space finds regions by address. Addresses are never used twice.
type space struct {
	next  uint64
	pages []*Region
}

// Place gives the region its address.
func (m *Machine) Place(r *Region) uint64 {
	n := (r.Bytes + 1<<pageLog - 1) >> pageLog
	r.Base = firstAddr + uint64(len(m.space.pages))<<pageLog
	for range n {
		m.space.pages = append(m.space.pages, r)
	}
	m.space.pages = append(m.space.pages, nil) // never adjacent
	return r.Base
}

// Remove takes the region from its address.
func (m *Machine) Remove(r *Region) {
	r.Freed = true
	for i := range (r.Bytes + 1<<pageLog - 1) >> pageLog {
		m.space.pages[(r.Base-firstAddr)>>pageLog+i] = nil
	}
}

// Find gives the region that holds n bytes at p, or nil.
func (m *Machine) Find(p, n uint64) *Region {
	i := (p - firstAddr) >> pageLog
	if p < firstAddr || i >= uint64(len(m.space.pages)) {
		return nil
	}
	r := m.space.pages[i]
	if r == nil || n > r.Bytes || p-r.Base > r.Bytes-n {
		return nil
	}
	return r
}

// nearest says where p lies, for errors.
func (m *Machine) nearest(p uint64) string {
	i := (p - firstAddr) >> pageLog
	if p >= firstAddr && i < uint64(len(m.space.pages)) {
		if r := m.space.pages[i]; r != nil {
			return fmt.Sprintf("%d bytes past the start of an allocation of %d", p-r.Base, r.Bytes)
		}
		if i > 0 {
			if r := m.space.pages[i-1]; r != nil {
				return fmt.Sprintf("%d bytes past the start of an allocation of %d", p-r.Base, r.Bytes)
			}
		}
	}
	return "in no allocation"
}
