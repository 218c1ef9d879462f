// Package inputs makes the sources of a call: the splitmix generator of the
// vector format, and the few kinds that are not random.
//
// An [Input] is a description, as --input and --seed or as the "input" object of
// a vector row. [Input.Open] checks it against a call and gives a [Generator],
// which fills any part of any source from the index alone, so that ranges can be
// filled on several cores and in any order.
//
// The rule users break: elements are numbered through all blocks of a rank's
// source, and through all lanes of a `many` call, from 0. Element i of a
// reduce-scatter source is not element i of a block.
package inputs
