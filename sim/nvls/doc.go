// Package nvls is the arithmetic of reductions done inside a switch
// (multimem.ld_reduce): the parameters of what is known about it as data, the
// presets that have a name, and exact evaluation without big numbers.
//
// A [Model] says how one (type, operation) is reduced; a [Fabric] says which
// model a switch generation has for each; [Config] is both as a spec's
// parameters choose them. [Model.Word] evaluates one element, a [Reducer] ranges,
// and [Model.Allowed] is every result that order or hidden state may give.
//
// The rule users break: a value of a model that is not [Model.Determined] is one
// member of a set and no prediction. Nobody has published which neighbour a
// Blackwell switch gives for a 16-bit sum; the direction "seeded", keyed by seed
// and element index, is an invention whose only purpose is to be a different one
// now and then.
package nvls
