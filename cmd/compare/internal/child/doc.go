// Package child runs a team in a process of its own, for calls that its context
// may not survive: the parent sends calls with their memory, the child executes
// them and sends back memory and typed errors.
//
// The rule users break: a child inherits the environment, but for the switches
// that keep multicast off, which are always set.
package child
