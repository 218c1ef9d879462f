package cuda

import (
	"cmp"
	"slices"
	"sync"

	"example.com/tandem/api/gpu"
)

// ranges are the allocations of a driver by address, over all its contexts:
// addresses are unique among them.
type ranges struct {
	mu   sync.RWMutex
	list []block // by base
}

// block is one allocation: who may release it, and how.
type block struct {
	gpu.Range
	owner   any
	entry   *gpu.Entry
	free    func() error // sends it back to the driver; retried if it fails
	mapping bool
	kept    bool // quarantined
}

func (r *ranges) search(p gpu.Ptr) (int, bool) {
	return slices.BinarySearchFunc(r.list, p, func(b block, p gpu.Ptr) int { return cmp.Compare(b.Base, p) })
}

func (r *ranges) add(b block) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := r.search(b.Base)
	r.list = slices.Insert(r.list, i, b)
}

// find gives the allocation that holds p.
func (r *ranges) find(p gpu.Ptr) (block, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	i, exact := r.search(p)
	if !exact {
		i--
	}
	if i < 0 || !r.list[i].Holds(p, 1) {
		return block{}, false
	}
	return r.list[i], true
}

// take removes the allocation that begins at p if ok allows it.
func (r *ranges) take(p gpu.Ptr, ok func(block) error) (block, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, exact := r.search(p)
	if !exact {
		return block{}, errNoRange
	}
	b := r.list[i]
	if err := ok(b); err != nil {
		return block{}, err
	}
	r.list = slices.Delete(r.list, i, i+1)
	return b, nil
}

// keep marks the allocations that which says as quarantined.
func (r *ranges) keep(which func(block) bool) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.list {
		if b := &r.list[i]; !b.kept && which(*b) {
			b.kept = true
			b.entry.Quarantine()
			n++
		}
	}
	return n
}

var errNoRange = gpu.Refuse("", gpu.ErrInvalid, "no allocation of this driver begins there")
