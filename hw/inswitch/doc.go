// Package inswitch is what the implementations share whose kernels reduce in the
// NVSwitch (multimem instructions): control pages and the layout of arguments,
// memory with a multicast address, the choice between the native and the
// emulated form of the kernels, and what is made of a call that ended badly.
//
// The emulated form reaches peers by plain loads and stores and has arithmetic
// of its own, so that all else of the kernels runs on any GPU, several ranks of
// one GPU included. It is what teams get; multimem is used only where a spec says
// multicast=on and gpu.Context.Multicast agrees: the driver was opened for it or
// TANDEM_MULTICAST=1 is set, no switch of the environment turns multicast off,
// and every device has the attribute.
//
// The rule users break: to find out whether multicast works nothing is created.
// Ask for it with multicast=on, and take the refusal.
package inswitch
