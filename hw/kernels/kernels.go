// Package kernels holds the PTX of the kernels, which is generated from the
// sources in src and committed, so that nothing but a driver is needed to run
// them. It is compiled for compute capability 9.0 and runs on all later ones.
//
// The rule users break: after a change in src run go generate here, with
// clang-22, and commit both; a test compares where clang-22 is installed.
package kernels

import "embed"

//go:generate ./generate.sh tandem.ptx
//go:generate ./generate.sh rlkernel.ptx
//go:generate ./generate.sh nvls.ptx
//go:generate ./generate.sh nvls_emulated.ptx
//go:generate ./generate.sh cascade.ptx
//go:generate ./generate.sh cascade_emulated.ptx
//go:generate ./generate.sh meter.ptx

// Tandem is the module of the tandem collectives: the kernels tandem_reduce and
// tandem_copy.
//
//go:embed tandem.ptx
var Tandem []byte

// RLKernel is the module of what RL-Kernel launches: the kernels rl_fused_gather,
// rl_fused_reduce, rl_stage, rl_finish, rl_signal, rl_copy, rl_gather and
// rl_reduce.
//
//go:embed rlkernel.ptx
var RLKernel []byte

// NVLS is the module of tandem-nvls: the kernels nvls_reduce and nvls_gather,
// whose multicast accesses are multimem instructions.
//
//go:embed nvls.ptx
var NVLS []byte

// NVLSEmulated is the same with emulated multicast accesses.
//
//go:embed nvls_emulated.ptx
var NVLSEmulated []byte

// Cascade is the module of cascade: the kernel cascade_reduce, whose multicast
// accesses are multimem instructions.
//
//go:embed cascade.ptx
var Cascade []byte

// CascadeEmulated is the same with emulated multicast accesses.
//
//go:embed cascade_emulated.ptx
var CascadeEmulated []byte

// Meter is the module that measures: the kernels meter_barrier, meter_flag,
// meter_empty, meter_spin and meter_copy.
//
//go:embed meter.ptx
var Meter []byte

// Sources are the kernels' sources, under src: what host code must agree with
// is written there, and a test binary is carried to machines without them.
//
//go:embed src
var Sources embed.FS
