package bench

import (
	"fmt"

	"example.com/tandem/api"
)

// call is the call of a point: as many bytes a rank as asked for, or the next
// fewer that its blocks and lanes divide.
func (p *Point) call() (api.Call, error) {
	c := api.Call{Ranks: p.Ranks, SrcOffset: api.Offsets{p.SrcOffset}, DstOffset: api.Offsets{p.DstOffset}}
	var err error
	if c.Collective, err = api.ParseCollective(p.Collective); err != nil {
		return c, err
	}
	if c.DType, err = api.ParseDType(p.DType); err != nil {
		return c, err
	}
	if p.Op != "" {
		if c.Op, err = api.ParseOp(p.Op); err != nil {
			return c, err
		}
	}
	if p.InPlace {
		c.InPlace = api.InPlaceOwn
	}
	if p.Ranks < 1 || p.Ranks > api.MaxRanks {
		return c, c.Validate()
	}
	blocks, _ := c.Collective.Blocks(p.Ranks)
	block := blocks * int64(c.DType.Size())
	if api.IsMany(c.Collective) {
		if p.Lanes < 1 || p.Lanes > api.MaxLanes {
			return c, &api.InvalidError{Field: "lanes", Value: fmt.Sprint(p.Lanes), Reason: "out of range", Hint: fmt.Sprintf("1 to %d", api.MaxLanes)}
		}
		block *= int64(p.Lanes)
	}
	n := p.Bytes / block
	if n < 1 {
		return c, &api.InvalidError{Field: "bytes", Value: fmt.Sprint(p.Bytes), Reason: fmt.Sprintf("less than an element in every block of %s", p.Collective), Hint: fmt.Sprintf("%d or more", block)}
	}
	p.Bytes = n * block
	if api.IsMany(c.Collective) {
		for range p.Lanes {
			c.Many = append(c.Many, api.LaneShape{Count: n})
		}
	} else {
		c.Count, p.Lanes = n, 0
	}
	return c, c.Validate()
}

// Fit makes the bytes those of a call that there is, or says why there is none.
func (p *Point) Fit() error {
	_, err := p.call()
	return err
}

// wire is the number of bytes that a rank must send at least, and so what bus
// bandwidth counts.
func (p *Point) wire() float64 {
	b, n := float64(p.Bytes), float64(p.Ranks)
	if p.Ranks == 1 {
		return 0
	}
	c, err := api.ParseCollective(p.Collective)
	if err != nil {
		return 0
	}
	switch api.Base(c) {
	case api.AllReduce:
		return 2 * b * (n - 1) / n
	case api.AllGather:
		return b * (n - 1)
	case api.ReduceScatter, api.AllToAll:
		return b * (n - 1) / n
	}
	return b
}

// footprint is the memory that a call touches on one rank, in bytes.
func footprint(c *api.Call) int64 {
	var n int64
	for i := range c.Lanes() {
		n += (c.SrcElems(i) + c.DstElems(i)) * int64(c.Lane(i).DType.Size())
	}
	return n
}

// largeShare is the part of the L2 from which on a call counts as large.
const largeShare = 16

// sets is how many sets of buffers a sample takes in turn: one where all of it
// stays in the L2 in any case, and for large calls so many that no call finds its
// buffers there.
func sets(c *api.Call, l2 int64, calls int) int {
	n := footprint(c)
	if n < l2/largeShare {
		return 1
	}
	return min(calls, int(2*l2/n)+2)
}
