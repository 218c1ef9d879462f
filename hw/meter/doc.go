// Package meter is what GPUs are measured with: a barrier of GPUs, a kernel that
// does nothing, one that keeps a GPU busy for a time, and plain copies between
// neighbours, all queued on streams by the caller. hw/host puts them around and in
// place of calls.
//
// The rule users break: a barrier is queued on the streams of all GPUs of a rig,
// or its kernels wait for one that never comes until their limit has passed; then
// [Rig.Late] says so.
package meter
