package main

import "example.com/tandem/api/gpu"

// reusing is a driver whose streams go on after a kernel as an application's do:
// they write over what was copied in before it, with what is there. A peer that
// still reads a source, or writes a destination, of a rank whose kernel has ended
// then races.
type reusing struct{ gpu.Driver }

// Devices are the driver's, with such streams.
func (d reusing) Devices() (out []gpu.Device) {
	for _, one := range d.Driver.Devices() {
		out = append(out, reusingDevice{one})
	}
	return out
}

type reusingDevice struct{ gpu.Device }

func (d reusingDevice) Peer(other gpu.Device) (gpu.PeerInfo, error) {
	return d.Device.Peer(other.(reusingDevice).Device)
}

func (d reusingDevice) Open() (gpu.Context, error) {
	c, err := d.Device.Open()
	return &reusingContext{c, d}, err
}

type reusingContext struct {
	gpu.Context
	d reusingDevice
}

func (c *reusingContext) Device() gpu.Device { return c.d }

func (c *reusingContext) EnablePeer(peer gpu.Context) error {
	return c.Context.EnablePeer(peer.(*reusingContext).Context)
}

func (c *reusingContext) NewStream(o gpu.StreamOptions) (gpu.Stream, error) {
	s, err := c.Context.NewStream(o)
	return &reusingStream{Stream: s}, err
}

// reusingStream remembers what was copied since it was last seen to be done.
type reusingStream struct {
	gpu.Stream
	copied []gpu.Range
}

func (s *reusingStream) Query() (bool, error) {
	done, err := s.Stream.Query()
	if done {
		s.copied = nil
	}
	return done, err
}

func (s *reusingStream) Copy(dst, src gpu.Ptr, n uint64) error {
	s.copied = append(s.copied, gpu.Range{Base: dst, Bytes: n})
	return s.Stream.Copy(dst, src, n)
}

func (s *reusingStream) Launch(l gpu.Launch) error {
	if err := s.Stream.Launch(l); err != nil {
		return err
	}
	return s.reuse()
}

func (s *reusingStream) EndCapture() (gpu.Graph, error) {
	g, err := s.Stream.EndCapture()
	if g != nil {
		g = reusingGraph{g}
	}
	return g, err
}

func (s *reusingStream) reuse() error {
	for _, r := range s.copied {
		if err := s.Stream.Copy(r.Base, r.Base, r.Bytes); err != nil {
			return err
		}
	}
	return nil
}

type reusingGraph struct{ gpu.Graph }

func (g reusingGraph) Instantiate() (gpu.GraphExec, error) {
	x, err := g.Graph.Instantiate()
	return reusingExec{x}, err
}

type reusingExec struct{ gpu.GraphExec }

func (x reusingExec) Upload(s gpu.Stream) error {
	return x.GraphExec.Upload(s.(*reusingStream).Stream)
}

func (x reusingExec) Launch(s gpu.Stream) error {
	r := s.(*reusingStream)
	if err := x.GraphExec.Launch(r.Stream); err != nil {
		return err
	}
	return r.reuse()
}
