package child

import (
	"errors"

	"example.com/tandem/api"
)

// OpenArgs are those of api.Backend.Open.
type OpenArgs struct {
	Spec string
	Team api.TeamConfig
}

// StartArgs are a rank's call and its memory.
type StartArgs struct {
	Rank       int
	Call       api.Call // without its collective
	Collective string
	Lanes      []Lane
}

// Lane is a lane with its bytes; of two images that share memory one is without.
type Lane struct {
	Src, Dst api.Image
	// Inside says which image lies in the other's bytes.
	Inside Inside
}

// Inside is which image of a lane lies in the other's bytes.
type Inside uint8

// The forms.
const (
	Apart Inside = iota
	SrcInDst
	DstInSrc
)

// WaitReply is how a call ended on a rank, and what it left in its memory.
type WaitReply struct {
	Outcome api.Outcome
	Known   bool // Written is, even if it is empty
	Failure Failure
	Lanes   []Lane
}

// Failure is an error that keeps its type; the zero value is none.
type Failure struct {
	Text        string
	Invalid     *api.InvalidError
	Refused     *api.Refused
	Unavailable *api.Unavailable
	Fault       *api.Fault
	Mismatch    *api.Mismatch
	Aborted     *api.Aborted
}

// failureOf puts an error on the wire.
func failureOf(err error) Failure {
	if err == nil {
		return Failure{}
	}
	f := Failure{Text: err.Error()}
	for _, to := range []any{&f.Invalid, &f.Refused, &f.Unavailable, &f.Fault, &f.Mismatch, &f.Aborted} {
		if errors.As(err, to) {
			break
		}
	}
	return f
}

// err takes it off.
func (f Failure) err() error {
	switch {
	case f.Text == "":
		return nil
	case f.Invalid != nil:
		return f.Invalid
	case f.Refused != nil:
		return f.Refused
	case f.Unavailable != nil:
		return f.Unavailable
	case f.Fault != nil:
		return f.Fault
	case f.Mismatch != nil:
		return f.Mismatch
	case f.Aborted != nil:
		return f.Aborted
	}
	return errors.New(f.Text)
}

// bounds are the addresses of an image, guards included.
func bounds(m api.Image) (lo, hi uint64) {
	lo = m.Addr - uint64(m.Guard)
	return lo, lo + uint64(len(m.Bytes))
}

// pack leaves out the bytes of an image that are part of the other's.
func pack(l api.Lane) Lane {
	out := Lane{Src: l.Src, Dst: l.Dst}
	if l.Src.Addr >= l.Dst.Addr+uint64(l.Dst.Len()) || l.Dst.Addr >= l.Src.Addr+uint64(l.Src.Len()) {
		return out
	}
	slo, shi := bounds(l.Src)
	dlo, dhi := bounds(l.Dst)
	switch {
	case slo >= dlo && shi <= dhi:
		out.Inside, out.Src.Bytes = SrcInDst, nil
	case dlo >= slo && dhi <= shi:
		out.Inside, out.Dst.Bytes = DstInSrc, nil
	}
	return out
}

// unpack is the lane in this process. Sizes are the call's to check; here only
// what would reach beyond the bytes that came.
func unpack(l Lane, srcLen, dstLen int64) (api.Lane, error) {
	out := api.Lane{Src: l.Src, Dst: l.Dst}
	part := func(inner *api.Image, outer api.Image, payload int64) error {
		lo, hi := bounds(outer)
		at, n := inner.Addr-uint64(inner.Guard), uint64(payload)+2*uint64(inner.Guard)
		if at < lo || at > hi || n > hi-at {
			return &api.InvalidError{Field: "memory", Value: "a lane", Reason: "an image does not lie inside the one that it should be a part of"}
		}
		inner.Bytes = outer.Bytes[at-lo : at-lo+n : at-lo+n]
		return nil
	}
	switch l.Inside {
	case SrcInDst:
		return out, part(&out.Src, out.Dst, srcLen)
	case DstInSrc:
		return out, part(&out.Dst, out.Src, dstLen)
	}
	return out, nil
}
