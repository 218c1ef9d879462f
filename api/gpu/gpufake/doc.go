// Package gpufake is a driver of package gpu without a GPU, for tests of the
// code above: device memory is Go memory, and a kernel is a Go function that
// runs as one goroutine a launch. Streams, events, captures, graphs, peers,
// mappings and refusals are those of the interface; [Options].Fail makes any
// call fail.
//
// The rule users break: a kernel reaches memory through its [Run] only. That
// is what finds the access out of bounds, which then costs the context, as on
// a GPU.
//
// It models no memory order and no multicast, and its clock is wall time.
package gpufake
