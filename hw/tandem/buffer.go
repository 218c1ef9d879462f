package tandem

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

func (e *Engine) checkBuffer(rank, lane int, name string, p gpu.Ptr, size, bytes int64) error {
	refuse := func(reason, hint string) error {
		return &api.InvalidError{Field: name, Value: fmt.Sprintf("0x%x", uint64(p)), Reason: fmt.Sprintf("lane %d of rank %d: %s", lane, rank, reason), Hint: hint}
	}
	if uint64(p)%uint64(size) != 0 {
		return refuse(fmt.Sprintf("the address is no multiple of the element size %d", size), "align buffers to their elements")
	}
	if bytes == 0 {
		return nil
	}
	g := e.gpus[e.place[rank]]
	r, err := g.Context.Range(p)
	switch {
	case err != nil:
		return refuse("no allocation holds it: "+err.Error(), "it was freed, or is not device memory")
	case !r.Holds(p, uint64(bytes)):
		return refuse(fmt.Sprintf("%d bytes reach beyond its allocation of %d bytes at 0x%x", bytes, r.Bytes, uint64(r.Base)), "allocate more")
	case r.Device != g.Index:
		return refuse(fmt.Sprintf("it is memory of device %d, the rank runs on GPU %d", r.Device, g.Index), "allocate it on the rank's GPU")
	}
	return nil
}
