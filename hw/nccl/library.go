package nccl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"example.com/tandem/api"
)

// DirEnv names the environment variable with the directory of libnccl.so.2,
// for where the dynamic loader does not find it.
const DirEnv = "TANDEM_NCCL_DIR"

// soname is the file of the library.
const soname = "libnccl.so.2"

// MinVersion is the oldest version that is used: 2.19.1, the first that registers
// buffers.
const MinVersion = 21901

// library is the functions of an opened libnccl. Its calls block at most for as
// long as the library needs on the host.
type library interface {
	Version() (int, error)
	// InitAll makes a communicator for each device.
	InitAll(devices []int32) ([]uintptr, error)
	// Group makes the calls between ncclGroupStart and ncclGroupEnd, all on one
	// thread, each with its context current.
	Group(tasks []task) error
	AsyncError(comm uintptr) error
	Destroy(comm uintptr) error
	Abort(comm uintptr) error
	// Alloc and Free are ncclMemAlloc and ncclMemFree on the device of a context.
	Alloc(context uintptr, bytes uint64) (uint64, error)
	Free(context uintptr, p uint64) error
	// Register makes memory of all ranks known, one address each, in one group:
	// as windows or as plain registrations. It gives their handles.
	Register(windows bool, ranks []task, p []uint64, bytes uint64) ([]uintptr, error)
	Deregister(windows bool, ranks []task, handles []uintptr) error
}

// Options are the options of New; the zero value is the usual one.
type Options struct {
	// Library is the file; "" is libnccl.so.2, in the directory of
	// TANDEM_NCCL_DIR where that is set, else where the dynamic loader finds it.
	Library string
	// Driver is the file of the CUDA driver; "" is libcuda.so.1.
	Driver string
	// Env is the environment that the library reads; nil is the process's.
	Env Env

	open func(file, driver string) (library, error)
}

// Env is an environment.
type Env interface {
	Lookup(key string) (string, bool)
	Set(key, value string) error
	Unset(key string) error
}

type processEnv struct{}

func (processEnv) Lookup(key string) (string, bool) { return os.LookupEnv(key) }
func (processEnv) Set(key, value string) error      { return os.Setenv(key, value) }
func (processEnv) Unset(key string) error           { return os.Unsetenv(key) }

// Library is the NCCL of this process, loaded at its first use and never
// unloaded. It is safe for concurrent use.
type Library struct {
	opts Options

	mu       sync.Mutex
	tried    bool
	lib      library
	version  int
	why      error  // it could not be loaded
	channels string // NCCL_MAX_NCHANNELS as the library read it; "" before that
	idle     map[idleKey][][]uintptr
}

// idleKey is what communicators were made with.
type idleKey struct {
	algo, proto string
	ranks       int
}

// New is a library that is not loaded yet.
func New(o Options) *Library {
	if o.Driver == "" {
		o.Driver = "libcuda.so.1"
	}
	if o.Env == nil {
		o.Env = processEnv{}
	}
	if o.open == nil {
		o.open = open
	}
	return &Library{opts: o}
}

// file is what is given to the dynamic loader.
func (l *Library) file() string {
	switch dir, _ := l.opts.Env.Lookup(DirEnv); {
	case l.opts.Library != "":
		return l.opts.Library
	case dir != "":
		return filepath.Join(dir, soname)
	}
	return soname
}

// load opens the library once.
func (l *Library) load() (library, int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.tried {
		l.tried = true
		l.lib, l.version, l.why = l.start()
	}
	return l.lib, l.version, l.why
}

func (l *Library) start() (library, int, error) {
	unavailable := func(reason, hint string) error {
		return &api.Unavailable{Spec: Name, Reason: reason, Hint: hint}
	}
	// Read when the library is first used, and never again.
	if err := l.opts.Env.Set("NCCL_NVLS_ENABLE", "0"); err != nil {
		return nil, 0, unavailable("NCCL_NVLS_ENABLE=0 cannot be set: "+err.Error(), "")
	}
	lib, err := l.opts.open(l.file(), l.opts.Driver)
	if err != nil {
		var own *api.Unavailable
		if errors.As(err, &own) {
			return nil, 0, err
		}
		return nil, 0, unavailable(err.Error(), DirEnv+" names the directory that has "+soname)
	}
	v, err := lib.Version()
	switch {
	case err != nil:
		return nil, 0, unavailable(err.Error(), "")
	case v < MinVersion:
		return nil, 0, unavailable(fmt.Sprintf("%s is NCCL %s, %s or later is needed", l.file(), Version(v), Version(MinVersion)), DirEnv+" names the directory of another")
	}
	return lib, v, nil
}

// Version is the number of the installed version, 22803 of 2.28.3, or why there
// is none.
func (l *Library) Version() (int, error) {
	_, v, err := l.load()
	return v, err
}

// settings is what a spec sets in the environment while communicators are made.
func (c *config) settings() [][2]string {
	var out [][2]string
	for _, kv := range [][2]string{{"NCCL_ALGO", c.algo}, {"NCCL_PROTO", c.proto}} {
		if kv[1] != auto {
			out = append(out, kv)
		}
	}
	return out
}

// communicators gives one for each device, with what the spec sets: those of an
// earlier team that ended well, since making new ones takes a second.
func (l *Library) communicators(c *config, lib library, devices []int32) (comms []uintptr, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channels != "" && l.channels != c.channels {
		return nil, &api.Refused{Spec: c.spec.String(), What: "max_nchannels=" + c.channels,
			Reason: "the library reads it once in a process, and has read " + l.channels, Hint: "a process for each value"}
	}
	l.channels = c.channels
	key := idleKey{c.algo, c.proto, len(devices)}
	if n := len(l.idle[key]); n > 0 {
		comms = l.idle[key][n-1]
		l.idle[key] = l.idle[key][:n-1]
		return comms, nil
	}
	set := c.settings()
	if c.channels != auto {
		set = append(set, [2]string{"NCCL_MAX_NCHANNELS", c.channels})
	}
	for _, kv := range set {
		restore, err := override(l.opts.Env, kv[0], kv[1])
		if err != nil {
			return nil, fmt.Errorf("setting %s: %w", kv[0], err)
		}
		defer func() { err = errors.Join(err, restore()) }()
	}
	return lib.InitAll(devices)
}

// keep takes the communicators of a team that ended well.
func (l *Library) keep(c *config, comms []uintptr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := idleKey{c.algo, c.proto, len(comms)}
	if l.idle == nil {
		l.idle = make(map[idleKey][][]uintptr)
	}
	l.idle[key] = append(l.idle[key], comms)
}

// Close destroys the communicators that wait for another team. Teams are closed
// before, contexts and the driver afterwards.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, list := range l.idle {
		for _, comms := range list {
			for _, comm := range comms {
				errs = append(errs, l.lib.Destroy(comm))
			}
		}
	}
	l.idle = nil
	return errors.Join(errs...)
}

// override sets a variable for a while. One that was not set is unset again: to
// the library an empty list is a list.
func override(e Env, key, value string) (restore func() error, err error) {
	old, was := e.Lookup(key)
	restore = func() error { return e.Unset(key) }
	if was {
		restore = func() error { return e.Set(key, old) }
	}
	return restore, e.Set(key, value)
}
