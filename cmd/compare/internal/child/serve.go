package child

import (
	"context"
	"errors"
	"io"
	"net/rpc"
	"sync"

	"example.com/tandem/api"
)

// Opener opens the team in the child.
type Opener func(context.Context, api.Spec, api.TeamConfig) (api.Team, error)

// Serve is the child: it does what the parent asks for on in, answers on out,
// and returns when in ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, open Opener) error {
	s := &Service{ctx: ctx, open: open, waits: map[int]*wait{}}
	if _, err := io.WriteString(out, greeting); err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName(serviceName, s); err != nil {
		return err
	}
	server.ServeConn(conn{in, out, func() error { return nil }})
	return s.close(context.Background())
}

const serviceName = "Team"

// greeting is what a child says first, so that no other program is taken for one.
const greeting = "compare child, version 1\n"

// conn is two pipes as a connection.
type conn struct {
	io.Reader
	io.Writer
	close func() error
}

// Close ends it.
func (c conn) Close() error { return c.close() }

// Service is what the parent calls. Its methods have the form that net/rpc wants.
type Service struct {
	ctx  context.Context
	open Opener

	mu    sync.Mutex
	team  api.Team
	waits map[int]*wait // by rank
}

// wait is a call that a rank has started.
type wait struct {
	pending api.Pending
	lanes   api.Memory
	sent    []Lane
	ctx     context.Context
	cancel  context.CancelFunc
}

var errNoTeam = errors.New("the child process has no team")

// Open makes the team.
func (s *Service) Open(args OpenArgs, reply *Failure) error {
	spec, err := api.ParseSpec(args.Spec)
	if err == nil {
		var team api.Team
		if team, err = s.open(s.ctx, spec, args.Team); err == nil {
			s.mu.Lock()
			s.team = team
			s.mu.Unlock()
		}
	}
	*reply = failureOf(err)
	return nil
}

// Start begins a call on a rank.
func (s *Service) Start(args StartArgs, reply *Failure) error {
	*reply = failureOf(s.start(args))
	return nil
}

func (s *Service) start(args StartArgs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.team == nil {
		return errNoTeam
	}
	c, err := api.ParseCollective(args.Collective)
	if err != nil {
		return err
	}
	call := args.Call
	call.Collective = c
	if err := call.Validate(); err != nil {
		return err
	}
	w := &wait{sent: args.Lanes}
	for i, l := range args.Lanes {
		var src, dst int64
		if i < call.Lanes() {
			size := int64(call.Lane(i).DType.Size())
			src, dst = call.SrcElems(i)*size, call.DstElems(i)*size
		}
		lane, err := unpack(l, src, dst)
		if err != nil {
			return err
		}
		w.lanes = append(w.lanes, lane)
	}
	for _, m := range s.team.Members() {
		if m.Rank() == args.Rank {
			if w.pending, err = m.Start(call, w.lanes); err != nil {
				return err
			}
			w.ctx, w.cancel = context.WithCancel(s.ctx)
			s.waits[args.Rank] = w
			return nil
		}
	}
	return &api.InvalidError{Field: "rank", Value: "of a call", Reason: "the team has no such member"}
}

// Wait waits for a rank's call, and gives its memory back.
func (s *Service) Wait(rank int, reply *WaitReply) error {
	s.mu.Lock()
	w := s.waits[rank]
	s.mu.Unlock()
	if w == nil {
		reply.Failure = failureOf(errors.New("the rank has started no call"))
		return nil
	}
	outcome, err := w.pending.Wait(w.ctx)
	w.cancel()
	s.mu.Lock()
	if s.waits[rank] == w {
		delete(s.waits, rank)
	}
	s.mu.Unlock()
	*reply = WaitReply{Outcome: outcome, Known: outcome.Written != nil, Failure: failureOf(err)}
	for i, l := range w.lanes {
		back := pack(l)
		back.Inside = w.sent[i].Inside
		reply.Lanes = append(reply.Lanes, back)
	}
	return nil
}

// Cancel ends the wait of a rank.
func (s *Service) Cancel(rank int, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.waits[rank]; w != nil {
		w.cancel()
	}
	return nil
}

// Close ends the team.
func (s *Service) Close(_ struct{}, reply *Failure) error {
	*reply = failureOf(s.close(s.ctx))
	return nil
}

func (s *Service) close(ctx context.Context) error {
	s.mu.Lock()
	team := s.team
	s.team = nil
	for _, w := range s.waits {
		w.cancel()
	}
	s.mu.Unlock()
	if team == nil {
		return nil
	}
	return team.Close(ctx)
}
