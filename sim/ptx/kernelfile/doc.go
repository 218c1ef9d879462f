// Package kernelfile runs a kernel of one's own, from its PTX text, as a
// collective: one launch a rank, each on a virtual GPU of its own, with the
// arguments that a small description names. So a kernel can be written, tested
// against any other implementation and searched for races without a GPU.
//
// The description is JSON, beside the kernel: mine.json for mine.ptx.
//
//	{
//	  "collective": "all_reduce", "dtypes": ["bf16"], "ops": ["sum"],
//	  "ranks": [2, 8], "multiple": 8, "in_place": ["false", "true"],
//	  "grid": 4, "block": 256, "shared": 0, "cooperative": false,
//	  "sources": "own",
//	  "scratch": {"flags": 4096},
//	  "params": ["src", "dst", "all.src", "flags", "all.flags", "count", "rank", "ranks", 7, {"f32": 0.5}]
//	}
//
// collective, dtypes, block and params must be there, and ops where the
// collective reduces. ranks are the least and the most, multiple is what counts
// are multiples of, grid and block are a number or up to three. A parameter is
//
//   - src, dst, or a name of scratch: the rank's own buffer
//   - all.src, all.dst, all.NAME: the address of an array of all ranks'
//     addresses; where the kernel takes more than 8 bytes, the array itself
//   - multicast.src, multicast.dst, multicast.NAME: one address for the buffers
//     of all ranks, for multimem instructions
//   - count, bytes, rank, ranks, root: of the call, as wide as the parameter
//   - an integer as wide as the parameter, {"f32": x} or {"f64": x}
//
// Scratch is in bytes, and zero on every rank before any rank starts.
//
// The rule users break: with "sources": "own", the default, a kernel may begin
// before a peer's source is there, and a peer's stream goes on as soon as its
// own kernel has ended, as it is on GPUs: the kernel has to wait at both ends.
// A kernel that is launched between two barriers says "all".
package kernelfile
