// Package sim is the backend that executes collectives on a simulated machine.
//
// It knows no library by itself: [New] is handed families, each the model of one
// library in a package of its own. A family plans a call and turns the plan into
// a program; package machine executes it on the callers' own buffers, and the
// outcome carries the byte intervals that stores reached.
//
// A call executes when its last rank has started it, inside that Start. The rule
// users break: buffers that overlap by address must be the same Go memory, and
// buffers apart by address must not share any.
package sim
