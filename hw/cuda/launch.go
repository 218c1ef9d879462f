//go:build gpu && linux && cgo

package cuda

/*
#include "abi.h"

#cgo noescape tandem_launch
#cgo nocallback tandem_launch
*/
import "C"

import (
	"unsafe"

	"example.com/tandem/api/gpu"
)

// gpu.Param goes to C as it is.
var _ = [1]struct{}{}[unsafe.Sizeof(gpu.Param{})-unsafe.Sizeof(C.tandem_span{})]

// Launch checks the launch and queues it. The arguments go as one buffer and
// the places in it; the array of pointers that CUDA wants is made in C. A launch
// overlaps only the launch right before it: after anything else CUDA would take
// longer to start it.
func (s *stream) Launch(l gpu.Launch) error {
	call := "cuLaunchKernel"
	if l.Cooperative {
		call = "cuLaunchCooperativeKernel"
	}
	overlaps := s.overlaps.Load() // live ends that
	h, err := s.live(call)
	if err != nil {
		return err
	}
	f, ok := l.Function.(*function)
	if !ok || f == nil || f.m.c.d != s.c.d || f.m.c.ctx != s.c.ctx {
		return gpu.Refuse(call, gpu.ErrInvalid, "the kernel was not loaded in the context of the stream, %v", s.c)
	}
	if err := f.m.live(call); err != nil {
		return err
	}
	if err := l.Check(s.c.dev.info); err != nil {
		return err
	}
	g, b := l.Grid.Dims(), l.Block.Dims()
	dims := [6]C.uint32_t{C.uint32_t(g.X), C.uint32_t(g.Y), C.uint32_t(g.Z), C.uint32_t(b.X), C.uint32_t(b.Y), C.uint32_t(b.Z)}
	var how C.int
	if l.Cooperative {
		how |= C.TANDEM_COOPERATIVE
	}
	if l.Overlap && overlaps {
		how |= C.TANDEM_OVERLAP
	}
	spans := l.Args.Spans()
	rc := C.tandem_launch(s.c.d.table, s.c.ctx, f.f, &dims[0], C.uint32_t(l.Shared), h, how,
		unsafe.Pointer(unsafe.SliceData(l.Args.Bytes())), (*C.tandem_span)(unsafe.Pointer(unsafe.SliceData(spans))), C.size_t(len(spans)))
	if rc != 0 {
		return s.c.fail(rc, call, "%s, grid %v, block %v, %d bytes of shared memory", f.name, g, b, l.Shared)
	}
	s.overlaps.Store(l.Overlap)
	return nil
}
