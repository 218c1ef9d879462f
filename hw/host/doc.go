// Package host is what the implementations of package hw share on the host's
// side: GPUs made ready once and used by many teams, control pages that outlive
// their team, images copied to the GPU and back, the rendezvous of the ranks of a
// process, launches, graphs, and errors that name the rank to blame.
//
// An implementation is an [Engine]: it turns a call over device buffers into
// launches. [Team] makes an api.Team of it.
//
// The rule users break: a poisoned team stays poisoned. Its device memory is set
// aside, not freed, since a kernel that resumes late may still write to it.
package host
