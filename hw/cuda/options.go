package cuda

import "os"

// Options are the options of Open; the zero value is the usual one.
type Options struct {
	// Library is the driver's file or soname; "" is libcuda.so.1.
	Library string
	// Multicast asks for multicast objects. They stay off where the
	// environment says so; gpu.MulticastPolicy has the rule.
	Multicast bool
	// NoLocks makes Device.Lock do nothing, for a child process whose parent
	// holds the locks.
	NoLocks bool
	// LockDir is where the lock files lie; "" is the directory for temporary
	// files. All processes that are to see each other's locks use the same.
	LockDir string
	// Getenv is read for the multicast switches; nil is os.Getenv.
	Getenv func(string) string
}

// MinVersion is the oldest CUDA version that a driver must support, as
// cuDriverGetVersion counts: 12.4, the first to take PTX 8.4.
const MinVersion = 12040

func (o Options) withDefaults() Options {
	if o.Library == "" {
		o.Library = "libcuda.so.1"
	}
	if o.LockDir == "" {
		o.LockDir = os.TempDir()
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	return o
}
