package gpubook

import (
	"sync"

	"example.com/tandem/api/gpu"
)

// Options of a context's books.
type Options struct {
	Name   string
	Lock   *sync.Mutex // of the driver
	Ledger *gpu.Ledger // of the driver
	// Before, if given, is asked before every call, without the lock; an error
	// makes the call fail with it.
	Before func(call string) error
	// Lost says why the device's contexts are lost; nil where they are not. The
	// lock is held.
	Lost func() *gpu.Error
}

// Context is the books of one use of a device.
type Context struct {
	Ledger *gpu.Ledger // of what lives in the context
	o      Options
	entry  *gpu.Entry
	closed bool // or abandoned
}

// NewContext opens the books.
func NewContext(o Options) *Context {
	return &Context{Ledger: gpu.NewLedger(o.Ledger), o: o, entry: o.Ledger.Add(gpu.KindContext, func() string { return o.Name })}
}

// Enter begins a call in the context and takes the lock; leave, which gives it
// back, is to be called where there is no error.
func (c *Context) Enter(call string) (leave func(), err error) {
	if leave, err = c.Release(call); err != nil {
		return nil, err
	}
	if lost := c.o.Lost(); lost != nil {
		leave()
		return nil, &gpu.Error{Call: call, Code: lost.Code, Detail: lost.Detail, Err: lost.Err}
	}
	return leave, nil
}

// Release is Enter for a call that releases something: it also works in a context
// that is lost.
func (c *Context) Release(call string) (leave func(), err error) {
	if c.o.Before != nil {
		if err := c.o.Before(call); err != nil {
			return nil, err
		}
	}
	c.o.Lock.Lock()
	if c.closed {
		c.o.Lock.Unlock()
		return nil, gpu.Refuse(call, gpu.ErrClosed, "the context of %v was closed or abandoned", c.o.Name)
	}
	return c.o.Lock.Unlock, nil
}

// Drop releases what an entry stands for, which is nil afterwards.
func (c *Context) Drop(call string, entry **gpu.Entry) error {
	leave, err := c.Release(call)
	if err != nil {
		return err
	}
	defer leave()
	if *entry == nil {
		return gpu.Refuse(call, gpu.ErrClosed, "it was destroyed")
	}
	(*entry).Release()
	*entry = nil
	return nil
}

// Abandon sets aside all that lives in the context; keep does so with what else
// the driver has, and the lock is held meanwhile.
func (c *Context) Abandon(keep func()) {
	c.o.Lock.Lock()
	defer c.o.Lock.Unlock()
	c.closed = true
	keep()
	c.Ledger.QuarantineAll()
}

// Close closes the books, or says what lives. The context itself stays set aside
// where anything in it is.
func (c *Context) Close() error {
	if c.o.Before != nil {
		if err := c.o.Before("cuDevicePrimaryCtxRelease"); err != nil {
			return err
		}
	}
	if err := c.Ledger.Check(c.o.Name); err != nil {
		return err
	}
	c.o.Lock.Lock()
	defer c.o.Lock.Unlock()
	c.closed = true
	if c.Ledger.Counts() != (gpu.Counts{}) {
		c.entry.Quarantine()
	}
	c.entry.Release()
	return nil
}
