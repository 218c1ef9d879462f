// Package gpu is what hw's host code needs of a GPU driver: devices, contexts,
// memory, streams, events, graphs, modules from PTX, launches, peer access,
// memory that travels between processes, and multicast objects. Package
// hw/cuda implements it over the real driver, package sim/ptx by executing the
// PTX on the CPU.
//
// A [Driver] lists its [Device]s; Device.Open gives a [Context], from which
// all else is made. The methods are the driver's calls in Go's clothes: they
// return at once, also where CUDA has a blocking form. Waiting is [Wait] and
// [Poll], with a deadline, on the driver's own [Clock]; that clock is virtual
// where the GPU is. All methods are safe for concurrent use, except that one
// goroutine at a time uses a [Stream], and none uses what another releases.
//
// The rule users break: nothing may be loaded, allocated, freed or
// instantiated while a kernel waits for another kernel. Do it all first, wait
// for the streams, and only then launch. And no host code sleeps or reads the
// time by itself: a virtual GPU stands still until its clock is asked to
// sleep.
//
// Sizes and offsets are in bytes unless a name says otherwise. Errors are
// *[Error] with one of the sentinels of this package.
package gpu
