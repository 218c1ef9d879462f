// Package accept is the acceptance of the kernels that reduce in the switch, on
// whatever GPUs there are: what the machine is, the rows of NVSHMEM PR #131 on
// our cascade before and after it, calls around them, and tandem-nvls. It prints
// a table shaped like the pull request's, and writes what came out as vectors for
// `compare replay`.
//
// The rule users break: on a machine with one GPU the ranks share it and
// multicast is emulated, so the times of the table compare with nothing.
package accept
