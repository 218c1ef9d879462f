// Package hw executes collectives on GPUs: the backend "hw" over the real
// driver, and "ptx" over a virtual one, which is the same host code and the same
// PTX. It knows its implementations and opens teams of them; package hw/host has
// what they share, hw/kernels the kernels, hw/tandem our own collectives,
// hw/nvls and hw/cascade those that reduce in the switch.
//
// The rule users break: the driver is the caller's. Close the teams, then the
// [Backend], then the driver.
package hw
