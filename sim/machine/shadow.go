package machine

import "slices"

// touch is one access as the shadow remembers it.
type touch struct {
	agent, time, step uint32
	multicast         bool
}

// Agents that are none.
const (
	nobody  = ^uint32(0)     // no such access
	initial = ^uint32(0) - 1 // the poison written before the run
)

var untouched = touch{agent: nobody}

// cell is a range of bytes with one history: the last store and the loads since.
type cell struct {
	lo, hi int64
	store  touch
	load   touch
	more   int32 // 1 + index of further loads in shadow.more; 0 is none
	uses   uses
}

// shadow is the history of one rank's memory, cells sorted and apart.
type shadow struct {
	cells  []cell  // as they came
	sorted []place // cheap to move and to search, as cells are not
	more   [][]touch
	hint   int
	order  *order
}

// place is where a cell lies.
type place struct {
	hi   int64 // its end
	cell int32 // index in cells
}

func (s *shadow) reset() {
	s.cells, s.sorted, s.more, s.hint = s.cells[:0], s.sorted[:0], s.more[:0], 0
}

// len is the number of cells.
func (s *shadow) len() int { return len(s.sorted) }

// at is the cell at a place, valid until one is added.
func (s *shadow) at(i int) *cell { return &s.cells[s.sorted[i].cell] }

// near is how many cells are looked at before all are searched.
const near = 6

// find is the index of the first cell that ends after lo. Most accesses are to
// where the last one was, or a little further.
func (s *shadow) find(lo int64) int {
	all := s.sorted
	if n := len(all); n == 0 || all[n-1].hi <= lo {
		return n
	}
	i, j := 0, len(all)
	if h := max(min(s.hint, j)-2, 0); h == 0 || all[h-1].hi <= lo {
		for i = h; i < min(h+near, j); i++ {
			if all[i].hi > lo {
				return i
			}
		}
	}
	for i < j {
		mid := int(uint(i+j) >> 1)
		if all[mid].hi <= lo {
			i = mid + 1
		} else {
			j = mid
		}
	}
	return i
}

// cover splits cells and adds empty ones so that [lo, hi) is exactly
// cells[i:j].
func (s *shadow) cover(lo, hi int64) (i, j int) {
	i = s.find(lo)
	if i < s.len() && s.at(i).lo < lo {
		s.split(i, lo)
		i++
	}
	pos := lo
	for j = i; pos < hi; j++ {
		if j == s.len() || s.at(j).lo >= hi {
			s.insert(j, pos, hi)
		} else if from := s.at(j).lo; from > pos {
			s.insert(j, pos, from)
		} else if s.sorted[j].hi > hi {
			s.split(j, hi)
		}
		pos = s.sorted[j].hi
	}
	s.hint = j
	return i, j
}

func (s *shadow) insert(at int, lo, hi int64) {
	s.put(at, cell{lo: lo, hi: hi, store: untouched, load: untouched, uses: unused})
}

func (s *shadow) split(at int, mid int64) {
	right := *s.at(at)
	if right.more > 0 {
		n := s.list()
		s.more[n-1] = append(s.more[n-1], s.more[right.more-1]...)
		right.more = n
	}
	right.lo = mid
	s.at(at).hi = mid
	s.sorted[at].hi = mid
	s.put(at+1, right)
}

// put adds a cell at a place.
func (s *shadow) put(at int, c cell) {
	s.sorted = slices.Insert(s.sorted, at, place{c.hi, int32(len(s.cells))})
	s.cells = append(s.cells, c)
}

// clash is what an access may not follow unordered.
type clash struct {
	first  touch
	store  bool // first is a store
	lo, hi int64
}

// touches reports whether an access may meet one that is remembered.
func (s *shadow) touches(lo, hi int64) bool {
	n := s.len()
	return n > 0 && s.sorted[n-1].hi > lo && s.at(0).lo < hi
}

// record records a load or a store.
func (s *shadow) record(lo, hi int64, store bool, t touch, before func(touch) bool) (clash, bool) {
	if store {
		return s.store(lo, hi, t, before)
	}
	return s.load(lo, hi, t, before)
}

// load records a load; before says whether an earlier touch is ordered before
// it.
func (s *shadow) load(lo, hi int64, t touch, before func(touch) bool) (clash, bool) {
	i, j := s.cover(lo, hi)
	for ; i < j; i++ {
		c := s.at(i)
		if !before(c.store) {
			return clash{c.store, true, c.lo, c.hi}, true
		}
		s.order.load(&c.uses, true)
		s.addLoad(c, t, before)
	}
	return clash{}, false
}

// addLoad keeps, of the loads, those that a later store is not known to follow
// by following t.
func (s *shadow) addLoad(c *cell, t touch, before func(touch) bool) {
	covers := func(old touch) bool { return old.multicast == t.multicast && before(old) }
	if c.load.agent == nobody || covers(c.load) {
		c.load = t
		return
	}
	if c.more == 0 {
		c.more = s.list()
	}
	list := &s.more[c.more-1]
	// To keep one that t stands for does no harm, so only a few are looked at, of a
	// long list only the last.
	few := fewLoads
	if len(*list) >= manyLoads {
		few = 1
	}
	for i := max(0, len(*list)-few); i < len(*list); i++ {
		if covers((*list)[i]) {
			(*list)[i] = t
			return
		}
	}
	*list = append(*list, t)
}

const fewLoads, manyLoads = 4, 8

// list is 1 + the index of a new list of loads.
func (s *shadow) list() int32 {
	if n := len(s.more); n < cap(s.more) {
		s.more = s.more[:n+1]
		s.more[n] = s.more[n][:0]
	} else {
		s.more = append(s.more, nil)
	}
	return int32(len(s.more))
}

// store records a store.
func (s *shadow) store(lo, hi int64, t touch, before func(touch) bool) (clash, bool) {
	i, j := s.cover(lo, hi)
	for ; i < j; i++ {
		c := s.at(i)
		if x, bad := s.storeClash(c, before); bad {
			return x, true
		}
		s.order.store(&c.uses, true)
		c.store, c.load, c.more = t, untouched, 0
	}
	return clash{}, false
}

func (s *shadow) storeClash(c *cell, before func(touch) bool) (clash, bool) {
	if !before(c.store) {
		return clash{c.store, true, c.lo, c.hi}, true
	}
	if !before(c.load) {
		return clash{c.load, false, c.lo, c.hi}, true
	}
	if c.more > 0 {
		for _, old := range s.more[c.more-1] {
			if !before(old) {
				return clash{old, false, c.lo, c.hi}, true
			}
		}
	}
	return clash{}, false
}

// check looks for a clash without recording anything.
func (s *shadow) check(lo, hi int64, store bool, before func(touch) bool) (clash, bool) {
	for i := s.find(lo); i < s.len() && s.at(i).lo < hi; i++ {
		c := s.at(i)
		if !store {
			if !before(c.store) {
				return clash{c.store, true, max(lo, c.lo), min(hi, c.hi)}, true
			}
			s.order.load(&c.uses, false)
		} else if x, bad := s.storeClash(c, before); bad {
			x.lo, x.hi = max(lo, x.lo), min(hi, x.hi)
			return x, true
		} else {
			s.order.store(&c.uses, false)
		}
	}
	return clash{}, false
}

// gaps calls found for the parts of [lo, hi) that no store has reached, and
// takes them as stored from then on.
func (s *shadow) gaps(lo, hi int64, found func(lo, hi int64)) {
	i, j := s.cover(lo, hi)
	for ; i < j; i++ {
		if c := s.at(i); c.store.agent == nobody {
			c.store.agent = initial
			found(c.lo, c.hi)
		}
	}
}
