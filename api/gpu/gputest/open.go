package gputest

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"example.com/tandem/api/gpu"
)

// RequireEnv makes a missing GPU a failure when it is "1".
const RequireEnv = "HW_REQUIRE_GPU"

// lockLimit is how long Open waits for other processes to leave the devices.
const lockLimit = 10 * time.Minute

// Meant says why a GPU is meant to be usable here, "" if none is: because the
// environment demands one, names one, or the driver's device file exists. An
// environment that hides all GPUs (CUDA_VISIBLE_DEVICES= or -1) means none.
func Meant() string {
	return meant(os.LookupEnv, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

func meant(lookup func(string) (string, bool), exists func(string) bool) string {
	if v, _ := lookup(RequireEnv); v == "1" {
		return RequireEnv + "=1"
	}
	visible, set := lookup("CUDA_VISIBLE_DEVICES")
	if set && slices.Contains([]string{"", "-1", "NoDevFiles"}, visible) {
		return ""
	}
	if set {
		return "CUDA_VISIBLE_DEVICES=" + visible
	}
	if v, _ := lookup("SLURM_JOB_GPUS"); v != "" {
		return "SLURM_JOB_GPUS=" + v
	}
	if exists("/dev/nvidiactl") {
		return "/dev/nvidiactl exists"
	}
	return ""
}

// Open opens a driver for a test and locks all its devices, so that packages
// tested side by side take turns. At the end of the test nothing may be left.
// Where there is no GPU the test is skipped with the reason, or fails if one is
// meant to be here; a build without GPU support fails only if RequireEnv
// demands one.
func Open(t testing.TB, open func() (gpu.Driver, error)) gpu.Driver {
	t.Helper()
	d, err := open()
	if err != nil {
		refuse(t, ran, err, Meant())
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockLimit)
	defer cancel()
	unlock, err := gpu.LockAll(ctx, d.Devices()...)
	if err != nil {
		t.Fatalf("locking the GPUs: %v", err)
	}
	ran.got(t)
	t.Cleanup(func() {
		if err := errors.Join(unlock(), d.Close()); err != nil {
			t.Errorf("after the test: %v", err)
		}
	})
	return d
}

func refuse(t testing.TB, y *tally, err error, why string) {
	t.Helper()
	switch {
	case !errors.Is(err, gpu.ErrUnavailable):
		y.fail(t)
		t.Fatal(err)
	case errors.Is(err, gpu.ErrNotBuiltIn) && why != RequireEnv+"=1", why == "":
		y.skip(t, err.Error())
		t.Skipf("no GPU here: %v", err)
	default:
		y.fail(t)
		t.Fatalf("%v, but a GPU is meant to be here: %s", err, why)
	}
}
