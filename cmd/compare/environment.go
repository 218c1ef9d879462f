package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/conformance"
)

// deviceEnvironment is what a report says of the GPUs that sides ran on, and of
// what is installed there.
func (a *app) deviceEnvironment(sides ...conformance.Side) map[string]string {
	env := map[string]string{}
	for _, s := range sides {
		lister, ok := s.Backend.(gpuLister)
		if !ok || s.Spec.Backend != "hw" {
			continue
		}
		driver, gpus := lister.GPUs()
		if len(gpus) == 0 {
			continue
		}
		env["driver"], env["gpus"] = driver, fmt.Sprintf("%d x %s", len(gpus), gpus[0].Name)
		for _, i := range s.Backend.Implementations() {
			if i.Name == s.Spec.Implementation && i.Version == s.Spec.Version {
				env["hw:"+strings.TrimSuffix(i.Name+"@"+i.Version, "@")] = i.Summary
			}
		}
	}
	return env
}

// benchEnvironment says what the times were taken with, the name of the GPUs and
// the bytes of their L2.
func (a *app) benchEnvironment(b api.Backend) (env map[string]string, name string, l2 int) {
	v := currentVersion()
	env = map[string]string{"module": v.Module, "version": v.Version, "commit": v.Commit, "modified": fmt.Sprint(v.Modified), "go": v.Go, "platform": v.Platform,
		"tags": v.Tags, "cpus": fmt.Sprint(runtime.NumCPU()), "cpu": cpuModel()}
	for _, key := range []string{"NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NCCL_ALGO", "NCCL_PROTO", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_MAX_CONNECTIONS"} {
		if value, ok := os.LookupEnv(key); ok {
			env["env."+key] = value
		}
	}
	for _, i := range b.Implementations() {
		env["implementation."+strings.TrimSuffix(i.Name+"@"+i.Version, "@")] = i.Summary
	}
	lister, ok := b.(gpuLister)
	if !ok {
		return env, b.Name(), 0
	}
	driver, gpus := lister.GPUs()
	env["driver"], env["gpus"] = driver, fmt.Sprint(len(gpus))
	for i, g := range gpus {
		env[fmt.Sprintf("gpu.%d", i)] = describeGPU(g)
		name, l2 = g.Name, max(l2, g.L2)
	}
	return env, name, l2
}

func describeGPU(g gpu.Info) string {
	return fmt.Sprintf("%s, compute capability %d.%d, %d SMs, highest SM clock %d MHz, L2 %d bytes, memory %d bytes", g.Name, g.Major, g.Minor, g.SMs, g.ClockKHz/1000, g.L2, g.Memory)
}

// cpuModel is what the kernel calls the CPU; "" where it does not say.
func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
