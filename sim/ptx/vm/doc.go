// Package vm executes PTX: a machine of devices, with memories, peer and
// multicast addresses, whose threads run one instruction at a time in an order
// that a seed decides.
//
// Every access to memory carries its order, scope, width and proxy. Two that
// overlap, one of them a write, and that causality does not order, are a race
// unless both are strong, each in the other's scope, of one proxy, and of
// exactly the same bytes; a race is a fault. A strong read may return any value
// that is not yet overwritten in causality order: the seed chooses.
//
// What is not modelled: load buffering, a read of what a later store will
// write; the host's accesses to pinned memory, of which every value is the
// latest and none races; and unicast mappings of one memory as proxies apart:
// only multicast addresses, and .nc loads, are. The model of alias fences is
// the device protocol's, which asks for more than the manual: one on either side
// of the flag, by the block that made the accesses and by the one that looks. Of
// the last values of a place four are remembered.
//
// Time is virtual. It stands still while any thread has something to do but
// poll; then it is for the caller to let it jump.
//
// The rule users break: a Machine is used by one goroutine at a time.
package vm
