package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/cmd/compare/internal/bench"
	"example.com/tandem/cmd/compare/internal/term"
)

// Bounds of what is timed.
const (
	maxSamples = 100_000
	maxCalls   = 1000
	maxSizes   = 64
	maxGap     = 10 * time.Millisecond
)

// config is what the flags ask for.
func (f *benchFlags) config() (bench.Config, error) {
	p := parser{}
	c := bench.Config{
		Samples: int(p.within("samples", f.Samples, 1, maxSamples)),
		WarmUp:  int(p.within("warm-up", f.WarmUp, 0, maxSamples)),
		Calls:   int(p.within("calls", f.Calls, 1, maxCalls)),
		Floors:  f.Floors,
	}
	sizes := f.sizes(&p)
	gap := p.duration("gap", f.Gap)
	base := bench.Point{DType: f.DType, Ranks: int(p.within("ranks", f.Ranks, 1, api.MaxRanks)), InPlace: f.InPlace,
		SrcOffset: p.within("src-offset", f.SrcOffset, 0, api.MaxCount), DstOffset: p.within("dst-offset", f.DstOffset, 0, api.MaxCount)}
	lanes := int(p.within("lanes", f.Lanes, 1, api.MaxLanes))
	launches := f.launches(&p)
	if p.err != nil {
		return c, p.err
	}
	for _, name := range fields(f.Collective) {
		k, err := api.ParseCollective(name)
		if err != nil {
			return c, err
		}
		for _, launch := range launches {
			for _, n := range sizes {
				point := base
				point.Collective, point.Launch, point.Bytes = name, launch, n
				if k.Reduces() {
					point.Op = f.Op
				}
				if api.IsMany(k) {
					point.Lanes = lanes
				}
				if launch == bench.Gaps {
					point.Gap = float64(gap.Nanoseconds()) / 1e3
				}
				if err := point.Fit(); err != nil {
					return c, err
				}
				c.Points = append(c.Points, point)
			}
		}
	}
	if len(c.Points) == 0 {
		return c, &api.InvalidError{Field: "collective", Value: f.Collective, Reason: "there is nothing to time", Hint: "all_gather, all_reduce, reduce_scatter"}
	}
	return c, nil
}

// sizes are the bytes of a rank's source, in order.
func (f *benchFlags) sizes(p *parser) []int64 {
	var out []int64
	if f.Bytes != "" {
		for _, text := range fields(f.Bytes) {
			out = append(out, p.byteSize("bytes", text))
		}
		return out
	}
	lo, hi := p.byteSize("min-bytes", f.MinBytes), p.byteSize("max-bytes", f.MaxBytes)
	step := p.within("step", f.Step, 2, 1<<20)
	if p.err == nil && lo > hi {
		p.fail(&api.InvalidError{Field: "min-bytes", Value: f.MinBytes, Reason: "more than --max-bytes " + f.MaxBytes})
	}
	for n := lo; p.err == nil && n <= hi && len(out) < maxSizes; n *= step {
		out = append(out, n)
		if n > math.MaxInt64/step {
			break
		}
	}
	return out
}

func (f *benchFlags) launches(p *parser) []bench.Launch {
	var out []bench.Launch
	for _, text := range fields(f.Launch) {
		known := false
		for _, l := range bench.Launches() {
			known = known || string(l) == text
		}
		if !known {
			p.fail(&api.InvalidError{Field: "launch", Value: text, Reason: "unknown", Hint: fmt.Sprintf("known are %v", bench.Launches())})
		}
		out = append(out, bench.Launch(text))
	}
	return out
}

// within reads an integer of a range.
func (p *parser) within(field, text string, lo, hi int64) int64 {
	v := p.integer(field, text)
	if p.err == nil && (v < lo || v > hi) {
		p.fail(&api.InvalidError{Field: field, Value: text, Reason: "out of range", Hint: fmt.Sprintf("%d to %d", lo, hi)})
	}
	return v
}

func (p *parser) percent(field, text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		p.fail(&api.InvalidError{Field: field, Value: text, Reason: "not a number of percent", Hint: "5 or 2.5"})
	}
	return v
}

func (p *parser) duration(field, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxGap {
		p.fail(&api.InvalidError{Field: field, Value: text, Reason: "not such a time", Hint: fmt.Sprintf("5us, at most %v", maxGap)})
	}
	return d
}

// benchProgress shows on a terminal what is being timed.
func (a *app) benchProgress() func(done, all int, what string) {
	if !term.Wants(a.stderr, false, a.getenv) {
		return nil
	}
	return func(done, all int, what string) {
		fmt.Fprintf(a.stderr, "\r%d of %d: %-60.60s", done+1, all, what)
		if done+1 == all {
			fmt.Fprint(a.stderr, "\r\n")
		}
	}
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
