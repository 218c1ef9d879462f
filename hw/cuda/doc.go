// Package cuda is package gpu's interface over the real CUDA driver.
//
// Nothing of CUDA is linked: libcuda.so.1 is opened at run time, and its
// functions are called through a table of our own. So the package builds
// where no CUDA is installed, and [Open] says what is missing. It is built in
// with the gpu tag, on Linux, with cgo; in every other build Open gives
// gpu.ErrNotBuiltIn and says which of the three was missing.
//
// The rule users break: open one driver per process and pass it on. Open sets
// CUDA_MODULE_LOADING=EAGER and CUDA_DEVICE_MAX_CONNECTIONS=32 in the
// process's environment before it initialises CUDA, and neither has an effect
// if something else in the process has used CUDA before.
//
// Every call sets its context itself, so goroutines may move between threads
// as they like. No call waits for the GPU; see package gpu for how to wait.
package cuda
