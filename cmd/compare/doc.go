// Command compare executes collectives under two implementations and says
// where their bits part, and why.
//
//	compare                 two versions of NVSHMEM's all-reduce, 1048573 elements
//	compare explain SPEC    what an implementation will do, without doing it
//	compare record SPEC     results as vectors
//	compare replay FILE     recorded results against a model
//	compare bench SPEC...   times on GPUs, specs side by side
//	compare plot            times before, after and of a reference, as a figure
//	compare list            what there is
//
// Exit codes: 0 the contract holds, 1 it does not, 2 nothing could be compared.
// The rule users break: exit code 2 is not "different"; a script that only
// asks for "not 0" takes a typing error for a divergence.
package main
