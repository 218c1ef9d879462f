// Package conformance answers one question: do two executions of the same call
// produce the same bits, and if not, where and why?
//
// [Run] executes a call on two sides, each a backend and a spec, and compares
// what they left behind under the contract that holds for each element. The
// [Report] counts what differs, says where it begins, and names a cause: from
// the plan of the backend where it has one, else by finding arithmetic that
// explains the bits, else from positions. [Test] holds a backend to the
// definition of the collectives, and [Replay] holds one to recorded vectors.
//
// The package owns the images: it fills the sources, poisons destinations and
// guards, and looks at them afterwards, so that no backend judges itself. It
// knows backends by the interfaces of package api only, so that anybody's can be
// compared. Sub-packages make inputs, read dumps, read and write vectors, and
// serve recordings as a backend.
//
// The rule users break: an element that no store reached has no value. Its
// poison is never compared; being unwritten on one side only is a divergence
// whatever the bits, and on both sides alike it is none. Where that, or an empty
// call, leaves no output to compare, Run is a [NothingCompared] error. A Runner,
// which makes many calls, gives the report instead: guards and sources were looked
// at, and [Report.Nothing] tells the two apart.
package conformance
