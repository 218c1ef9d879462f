// Package hwtest is a GPU driver for tests of hw's host code: memory is Go
// memory at made-up addresses, streams do their work as it is queued, kernels are
// Go functions, time is virtual, and any call can be made to fail.
//
// The rule users break: a kernel here runs when its launch is queued, so what
// several GPUs do together is up to the Go function that stands for it.
package hwtest
