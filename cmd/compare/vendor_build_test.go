package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests of NVSHMEM's own device code need its wheel, which is the vendor's
// and is not part of this repository:
//
//	TANDEM_NVSHMEM  a folder that nvidia-nvshmem-cu13 3.4.5 was unpacked into
//	TANDEM_NVCC     nvcc, for the code that only its headers have, beside the
//	                headers of cuda-runtime, cuda-crt and cuda-cccl
//
// and llvm-extract-22 and clang-22, which make PTX of its bitcode.
const (
	vendorEnv = "TANDEM_NVSHMEM"
	nvccEnv   = "TANDEM_NVCC"
)

// vendor is the wheel's folder; without it the test is skipped.
func vendor(t testing.TB) string {
	dir := os.Getenv(vendorEnv)
	if dir == "" {
		t.Skipf("%s is not set: the vendor's device code is not part of this repository", vendorEnv)
	}
	dir = filepath.Join(dir, "nvidia", "nvshmem")
	for _, f := range []string{"lib/libnvshmem_device.bc", "include/nvshmem.h"} {
		_, err := os.Stat(filepath.Join(dir, f))
		require.NoError(t, err, "%s names no folder with NVSHMEM's wheel in it", vendorEnv)
	}
	return dir
}

// externals are functions that are declared and elsewhere: other transports, and
// what prints a failed assertion.
var externals = regexp.MustCompile(`\.extern \.func([^;]*);`)

// messages are the texts of assertions, whose names are no names in PTX.
var messages = regexp.MustCompile(`\.extern \.global \.align 1 \.b8 (\S+)\[\d+\];`)

// whole makes a module that needs no other of one that does: the state that the
// library's host part fills in is its own, and functions that nothing on one
// NVLink domain calls end in a trap.
func whole(ptx string) string {
	var names []string
	for _, m := range messages.FindAllStringSubmatch(ptx, -1) {
		names = append(names, m[1])
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) }) // .str20 before .str2
	for _, name := range names {
		ptx = strings.ReplaceAll(ptx, name, "message"+strings.ReplaceAll(name, ".", "_"))
	}
	ptx = strings.ReplaceAll(ptx, ".extern .global .align 1 .b8 message", ".global .align 1 .b8 message")
	ptx = strings.Replace(ptx, ".extern .const .align 8 .b8 nvshmemi_device_state_d[776];", ".visible .const .align 8 .b8 nvshmemi_device_state_d[776];", 1)
	return externals.ReplaceAllString(ptx, ".func$1{ trap; }")
}

// fromBitcode makes PTX of functions of the library's bitcode, each with a
// kernel of the same name that calls it: (team, destination, source, count).
func fromBitcode(t testing.TB, functions ...string) string {
	for _, tool := range []string{"llvm-extract-22", "clang-22"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	bc := filepath.Join(vendor(t), "lib", "libnvshmem_device.bc")
	args := []string{"--recursive", "-o", filepath.Join(t.TempDir(), "x.bc")}
	for _, f := range functions {
		args = append(args, "--func="+f)
	}
	out, err := exec.Command("llvm-extract-22", append(args, bc)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	ptx, err := exec.Command("clang-22", "-x", "ir", "--target=nvptx64-nvidia-cuda", "-march=sm_90", "-Xclang", "-target-feature", "-Xclang", "+ptx84", "-O2", "-S", "-o", "-", args[2]).Output()
	require.NoError(t, err)
	text := whole(string(ptx))
	for _, f := range functions {
		text += fmt.Sprintf(`
.visible .entry run_%[1]s(.param .b32 team, .param .b64 dst, .param .b64 src, .param .b64 n) {
	.reg .b32 %%r<2>; .reg .b64 %%d<4>; .param .b32 a; .param .b64 b; .param .b64 c; .param .b64 e; .param .b32 r;
	ld.param.b32 %%r1, [team]; ld.param.b64 %%d1, [dst]; ld.param.b64 %%d2, [src]; ld.param.b64 %%d3, [n];
	st.param.b32 [a], %%r1; st.param.b64 [b], %%d1; st.param.b64 [c], %%d2; st.param.b64 [e], %%d3;
	call (r), %[1]s, (a, b, c, e);
	ret;
}
`, f)
	}
	return text
}

// fromHeaders makes PTX of a kernel that includes the library's headers.
func fromHeaders(t testing.TB, source string) string {
	nvcc := os.Getenv(nvccEnv)
	if nvcc == "" {
		t.Skipf("%s is not set: the multicast code is in the vendor's headers only, and they are for nvcc", nvccEnv)
	}
	out := filepath.Join(t.TempDir(), "x.ptx")
	cuda := filepath.Join(filepath.Dir(nvcc), "..", "include")
	log, err := exec.Command(nvcc, "-ptx", "-arch=sm_90", "-rdc=true", "-std=c++17", "-I", filepath.Join(vendor(t), "include"),
		"-I", filepath.Join(cuda, "cccl"), "-I", cuda, "-o", out, source).CombinedOutput()
	require.NoError(t, err, "%s", log)
	ptx, err := os.ReadFile(out)
	require.NoError(t, err)
	return whole(string(ptx))
}
