package nccl

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/hw/hwtest"
)

// fakeLibrary executes groups by their definition on the memory of a stand-in
// driver. What the library promises of a caller is checked: groups are whole, memory
// is registered once and with all ranks, communicators are given back.
type fakeLibrary struct {
	d       *hwtest.Driver
	env     *fakeEnv
	version int

	mu         sync.Mutex
	seen       []map[string]string // the environment at each InitAll
	comms      map[uintptr]int     // rank
	next       uintptr
	contexts   []uintptr
	registered map[uintptr]uint64
	memory     map[uint64]bool // of Alloc
	groups     [][]task
	aborted    int

	failGroup, failAsync, failInit, failRegister error
}

// fakeEnv is an environment in this process only.
type fakeEnv struct {
	vars map[string]string
	err  error
}

func (e *fakeEnv) Lookup(k string) (string, bool) { v, ok := e.vars[k]; return v, ok }
func (e *fakeEnv) Set(k, v string) error {
	if e.err == nil {
		e.vars[k] = v
	}
	return e.err
}
func (e *fakeEnv) Unset(k string) error { delete(e.vars, k); return e.err }

func newFake(gpus int) (*fakeLibrary, *Library) {
	env := &fakeEnv{vars: map[string]string{"NCCL_PROTO": "LL128"}}
	f := &fakeLibrary{d: hwtest.New(gpus), env: env, version: 22803, comms: map[uintptr]int{}, registered: map[uintptr]uint64{}, memory: map[uint64]bool{}}
	return f, New(Options{Env: env, open: func(file, driver string) (library, error) {
		if file != soname || driver != "libcuda.so.1" || env.vars["NCCL_NVLS_ENABLE"] != "0" {
			return nil, fmt.Errorf("opened %s and %s with %v", file, driver, env.vars)
		}
		return f, nil
	}})
}

func (f *fakeLibrary) Version() (int, error) { return f.version, nil }

func (f *fakeLibrary) InitAll(devices []int32) ([]uintptr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failInit != nil {
		return nil, f.failInit
	}
	vars := map[string]string{}
	for k, v := range f.env.vars {
		vars[k] = v
	}
	f.seen = append(f.seen, vars)
	var out []uintptr
	for r, d := range devices {
		if int(d) != r {
			return nil, errors.New("a device out of order")
		}
		f.next++
		f.comms[f.next] = r
		out = append(out, f.next)
	}
	return out, nil
}

func (f *fakeLibrary) AsyncError(uintptr) error { return f.failAsync }

func (f *fakeLibrary) end(comm uintptr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.comms[comm]; !ok {
		return errors.New("no such communicator")
	}
	delete(f.comms, comm)
	return nil
}

func (f *fakeLibrary) Destroy(comm uintptr) error { return f.end(comm) }

func (f *fakeLibrary) Abort(comm uintptr) error {
	f.mu.Lock()
	f.aborted++
	f.mu.Unlock()
	return f.end(comm)
}

func (f *fakeLibrary) Alloc(context uintptr, bytes uint64) (uint64, error) {
	c, err := f.d.Devices()[context-1].Open()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	p, err := c.Alloc(bytes)
	f.memory[uint64(p)] = true
	return uint64(p), err
}

func (f *fakeLibrary) Free(context uintptr, p uint64) error {
	if !f.memory[p] {
		return errors.New("freed what it did not allocate")
	}
	delete(f.memory, p)
	c, err := f.d.Devices()[context-1].Open()
	if err != nil {
		return err
	}
	return errors.Join(freeFrom(c, p), c.Close())
}

func (f *fakeLibrary) Register(windows bool, ranks []task, p []uint64, bytes uint64) ([]uintptr, error) {
	if f.failRegister != nil {
		return nil, f.failRegister
	}
	var out []uintptr
	for i := range ranks {
		if windows != f.memory[p[i]] || bytes < 1<<21 {
			return nil, fmt.Errorf("registered %d bytes of other memory", bytes)
		}
		f.next++
		f.registered[f.next] = p[i]
		out = append(out, f.next)
	}
	return out, nil
}

func (f *fakeLibrary) Deregister(_ bool, ranks []task, handles []uintptr) error {
	for _, h := range handles {
		if f.registered[h] == 0 {
			return errors.New("deregistered twice")
		}
		delete(f.registered, h)
	}
	return nil
}

// Group queues the whole group on the stream of the last rank: by then all have
// come.
func (f *fakeLibrary) Group(list []task) error {
	f.mu.Lock()
	f.groups = append(f.groups, slices.Clone(list))
	fail := f.failGroup
	f.mu.Unlock()
	if fail != nil {
		return fail
	}
	kept := slices.Clone(list)
	return f.d.Queue(kept[len(kept)-1].stream, func() { f.execute(kept) })
}

func (f *fakeLibrary) execute(list []task) {
	ranks := map[uintptr]bool{}
	for _, t := range list {
		ranks[t.comm] = true
	}
	n := len(ranks)
	for len(list) > 0 {
		if k := list[0].kind; k == doSend {
			f.exchange(list[:2*n*n], n)
			list = list[2*n*n:]
			continue
		}
		f.collective(list[:n])
		list = list[n:]
	}
}

func (f *fakeLibrary) bytes(p, n uint64) []byte {
	if n == 0 {
		return nil
	}
	return f.d.Bytes(ptr(p))[:n]
}

func dtypeOf(t task) api.DType {
	for d, v := range dtypes {
		if v == t.dtype {
			return d
		}
	}
	panic("no such dtype")
}

// exchange does the sends and receives of an all_to_all.
func (f *fakeLibrary) exchange(list []task, n int) {
	size := uint64(dtypeOf(list[0]).Size())
	moved := make([][]byte, n*n)
	for _, t := range list {
		if from := f.comms[t.comm]; t.kind == doSend {
			moved[from*n+int(t.peer)] = slices.Clone(f.bytes(t.send, t.count*size))
		}
	}
	for _, t := range list {
		if to := f.comms[t.comm]; t.kind == doRecv {
			copy(f.bytes(t.recv, t.count*size), moved[int(t.peer)*n+to])
		}
	}
}

// collective does one call of every rank.
func (f *fakeLibrary) collective(list []task) {
	n := uint64(len(list))
	d := dtypeOf(list[0])
	size, count := uint64(d.Size()), list[0].count
	var in [][]byte
	for _, t := range list {
		whole := count
		if t.kind == doReduceScatter {
			whole *= n
		}
		in = append(in, slices.Clone(f.bytes(t.send, whole*size)))
	}
	for r, t := range list {
		switch t.kind {
		case doBroadcast:
			copy(f.bytes(t.recv, count*size), in[t.peer])
		case doAllGather:
			for p := range in {
				copy(f.bytes(t.recv+uint64(p)*count*size, count*size), in[p])
			}
		case doAllReduce, doReduceScatter:
			at := uint64(0)
			if t.kind == doReduceScatter {
				at = uint64(r) * count * size
			}
			f.reduce(t, d, in, at)
		}
	}
}

func (f *fakeLibrary) reduce(t task, d api.DType, in [][]byte, at uint64) {
	out := f.bytes(t.recv, t.count*uint64(d.Size()))
	for i := 0; i < len(out); i += d.Size() {
		var values []uint64
		for _, b := range in {
			values = append(values, num.Load(d, b[at+uint64(i):]))
		}
		num.Store(d, out[i:], num.Eval(d, num.Scheme{Op: opOf(t)}, values))
	}
}

func opOf(t task) api.Op {
	for o, v := range ops {
		if v == t.op {
			return o
		}
	}
	panic("no such op")
}
