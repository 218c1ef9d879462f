// Package rlkernel executes what RL-Kernel's DeterministicCollective does, on
// GPUs and before and after its all-gather pull request (versions 43f150f and
// 8ccb03c): the same phases in the same launches, with the same thresholds,
// grids and loops, so that the same calls are slow. The kernels are our own, in
// hw/kernels/src/rlkernel*.
//
// What differs: waits have deadlines and an abort word where the library spins
// for ever; a rank's staging is one frame, not three of which two are unused; a
// device-to-device copy is a kernel, so that ranks which share a GPU share its
// launch; and the host barriers around reduce_scatter are left out, since a
// stream has none.
//
// The rule users break: the one-block all_reduce of bf16 stores pairs, whatever
// the output's address. Where that would fault, the call is refused before
// anything is launched. With allow_fault=1 it is launched, and the context it runs
// in is lost: do that in a process of its own.
package rlkernel
