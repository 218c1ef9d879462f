// Package ptx is a driver of package gpu without a GPU: devices, memory,
// streams, graphs and multicast objects are simulated, and kernels are executed
// from their PTX text, on any machine. So host code written for api/gpu runs on
// it unchanged.
//
// [Open] makes the machine. A kernel that reads or writes out of bounds,
// misaligned or never written memory, or that races, costs the context, as on a
// GPU, and the error names device, block, thread, PTX line and source line.
//
// Time is virtual: the clock's Sleep is what runs the GPU, and time passes only
// when every thread polls. One seed is one execution, as long as one goroutine
// at a time drives it.
//
// The rule users break: a virtual GPU stands still unless somebody sleeps on
// its clock. A loop around Query that does not sleep never ends.
package ptx
