package cuda

import (
	"errors"
	"fmt"
	"os"

	"example.com/tandem/api/gpu"
)

// library is the dynamic library that the driver is loaded from. It is never
// closed: libcuda does not survive that.
type library interface {
	Open(name string) error
	Lookup(symbol string) (uintptr, error)
	// Start asks for the version by calling cuDriverGetVersion and, if that
	// is at least min, calls cuInit.
	Start(cuInit, cuDriverGetVersion uintptr, min int) (version int, code gpu.Code)
}

// environment is what must be set before cuInit: modules load whole, not
// function by function while a kernel waits, and streams get hardware queues
// of their own.
var environment = [][2]string{
	{"CUDA_MODULE_LOADING", "EAGER"},
	{"CUDA_DEVICE_MAX_CONNECTIONS", "32"},
}

// load opens the library, checks its version, starts it and finds the symbols.
// The ones from index required on may be missing; their address is 0.
func load(lib library, name string, symbols []string, required int) (addresses []uintptr, version int, err error) {
	if err := lib.Open(name); err != nil {
		return nil, 0, &gpu.Error{Err: gpu.ErrNoDriver, Detail: err.Error()}
	}
	start := make([]uintptr, 2)
	for i, symbol := range []string{"cuInit", "cuDriverGetVersion"} {
		if start[i], err = lib.Lookup(symbol); err != nil {
			return nil, 0, gpu.Refuse("", gpu.ErrNoDriver, "%s is no CUDA driver: %v", name, err)
		}
	}
	for _, kv := range environment {
		if err := os.Setenv(kv[0], kv[1]); err != nil {
			return nil, 0, gpu.Refuse("", gpu.ErrUnavailable, "setting %s: %v", kv[0], err)
		}
	}
	version, code := lib.Start(start[0], start[1], MinVersion)
	switch {
	case code == gpu.Success && version < MinVersion:
		return nil, version, gpu.Refuse("", gpu.ErrDriverTooOld, "%s supports CUDA %s, %s or later is needed", name, versionString(version), versionString(MinVersion))
	case code != gpu.Success:
		return nil, version, startError(name, code)
	}
	addresses = make([]uintptr, len(symbols))
	for i, symbol := range symbols {
		a, err := lib.Lookup(symbol)
		if err != nil && i < required {
			return nil, version, gpu.Refuse("", gpu.ErrDriverTooOld, "%s (CUDA %s) has no %s: %v", name, versionString(version), symbol, err)
		}
		if err == nil {
			addresses[i] = a
		}
	}
	return addresses, version, nil
}

// startHints say what to do about the codes that cuInit answers with.
var startHints = map[gpu.Code]string{
	gpu.NoDevice:             "no GPU is visible; CUDA_VISIBLE_DEVICES, the container's devices and nvidia-smi tell why",
	gpu.StubLibrary:          "this is the toolkit's stub, not the driver's library; take it off the library path",
	gpu.SystemNotReady:       "the fabric manager or the GPU's power-up is not done",
	gpu.SystemDriverMismatch: "the kernel module is older than libcuda; reboot, or take a compatibility library off the library path",
	gpu.CompatNotSupported:   "this GPU takes no forward-compatible libcuda; take it off the library path",
}

func startError(name string, code gpu.Code) error {
	e := &gpu.Error{Call: "cuInit", Code: code, Name: code.String(), Detail: name, Err: code.Sentinel()}
	if hint := startHints[code]; hint != "" {
		e.Detail += ": " + hint
	}
	// Whatever it is, there is no GPU to be had.
	if !errors.Is(e.Err, gpu.ErrUnavailable) {
		e.Err = gpu.ErrUnavailable
	}
	return e
}

func versionString(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
