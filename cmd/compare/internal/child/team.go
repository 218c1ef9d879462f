package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// grace is how long a child may take to end a call that was cancelled, or
// itself, before it is killed.
const grace = 30 * time.Second

// Team is a team in a child process. It is an api.Team, and no more than that.
type Team struct {
	cmd     *exec.Cmd
	client  *rpc.Client
	stderr  *tail
	members []api.Member

	once sync.Once
	gone chan struct{} // closed when the process has ended
	err  error
}

// Open starts a program under these arguments, the name first, which runs Serve on
// its standard input and output, and opens a team there.
func Open(ctx context.Context, path string, args []string, spec api.Spec, config api.TeamConfig) (*Team, error) {
	t := &Team{cmd: &exec.Cmd{Path: path, Args: args}, stderr: &tail{}, gone: make(chan struct{})}
	t.cmd.Env = append(os.Environ(), gpu.MulticastOffEnv()...)
	t.cmd.Stderr = t.stderr
	in, err := t.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a child process: %w", err)
	}
	if err := t.greet(ctx, out); err != nil {
		_ = in.Close()
		return nil, errors.Join(err, t.end(0))
	}
	t.client = rpc.NewClient(conn{out, in, in.Close})
	var failure Failure
	if err := t.call(ctx, "Open", OpenArgs{spec.String(), config}, &failure, nil); err != nil {
		return nil, errors.Join(err, t.end(0))
	}
	if err := failure.err(); err != nil {
		_ = t.end(grace)
		return nil, err
	}
	for r := range config.Ranks {
		t.members = append(t.members, &member{t, r})
	}
	return t, nil
}

// Members are all ranks.
func (t *Team) Members() []api.Member { return t.members }

// greet holds the program to what a child says first.
func (t *Team) greet(ctx context.Context, out io.Reader) error {
	said := make([]byte, len(greeting))
	heard := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(out, said)
		heard <- err
	}()
	select {
	case err := <-heard:
		if err != nil || string(said) != greeting {
			return fmt.Errorf("%s does not serve calls: it wrote %.40q", t.cmd.Path, bytes.TrimRight(said, "\x00"))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(grace):
		return fmt.Errorf("%s did not answer within %v", t.cmd.Path, grace)
	}
}

// call asks the child, and when ctx ends has it stop by cancel; a child that
// does not answer then is killed.
func (t *Team) call(ctx context.Context, method string, args, reply any, cancel func()) error {
	c := t.client.Go(serviceName+"."+method, args, reply, make(chan *rpc.Call, 1))
	var late <-chan time.Time
	done := ctx.Done()
	for {
		select {
		case <-c.Done:
			return t.explain(c.Error)
		case <-done:
			if done = nil; cancel == nil {
				_ = t.end(0)
				return context.Cause(ctx)
			}
			cancel()
			late = time.After(grace)
		case <-late:
			_ = t.end(0)
			return fmt.Errorf("the child process did not end the call within %v, and was killed: %w", grace, context.Cause(ctx))
		}
	}
}

// explain makes of a connection that broke what became of the process.
func (t *Team) explain(err error) error {
	if err == nil {
		return nil
	}
	var answered rpc.ServerError
	if errors.As(err, &answered) {
		return err
	}
	ended := t.end(0)
	return &api.Fault{Kind: api.FaultAborted, Detail: fmt.Sprintf("the child process that ran the call ended: %v", ended)}
}

// end closes the child's input, and kills it where it has not ended in time.
func (t *Team) end(patience time.Duration) error {
	t.once.Do(func() {
		if t.client != nil {
			_ = t.client.Close()
		}
		go func() {
			t.err = t.cmd.Wait()
			close(t.gone)
		}()
	})
	if patience > 0 {
		select {
		case <-t.gone:
			return t.err
		case <-time.After(patience):
		}
	}
	_ = t.cmd.Process.Kill()
	<-t.gone
	if said := t.stderr.String(); t.err != nil && said != "" {
		return fmt.Errorf("%w: %s", t.err, said)
	}
	return t.err
}

// Close ends the team and the process.
func (t *Team) Close(ctx context.Context) error {
	select {
	case <-t.gone:
		return nil
	default:
	}
	var failure Failure
	if err := t.call(ctx, "Close", struct{}{}, &failure, nil); err != nil {
		return err
	}
	return errors.Join(failure.err(), t.end(grace))
}

type member struct {
	team *Team
	rank int
}

// Rank is the member's rank.
func (m *member) Rank() int { return m.rank }

// Start begins a call in the child.
func (m *member) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	if err := call.Validate(); err != nil {
		return nil, err
	}
	args := StartArgs{Rank: m.rank, Call: call, Collective: call.Collective.Name()}
	args.Call.Collective = nil
	for _, l := range mem {
		args.Lanes = append(args.Lanes, pack(l))
	}
	var failure Failure
	if err := m.team.call(context.Background(), "Start", args, &failure, nil); err != nil {
		return nil, err
	}
	if err := failure.err(); err != nil {
		return nil, err
	}
	return &pending{m, mem}, nil
}

type pending struct {
	*member
	mem api.Memory
}

// Wait ends when the call has ended in the child, and brings its memory back.
func (p *pending) Wait(ctx context.Context) (api.Outcome, error) {
	var reply WaitReply
	cancel := func() { p.team.client.Go(serviceName+".Cancel", p.rank, new(struct{}), make(chan *rpc.Call, 1)) }
	if err := p.team.call(ctx, "Wait", p.rank, &reply, cancel); err != nil {
		return api.Outcome{}, err
	}
	if err := reply.Failure.err(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return api.Outcome{}, err
	}
	for i, l := range reply.Lanes {
		if i < len(p.mem) {
			copy(p.mem[i].Src.Bytes, l.Src.Bytes)
			copy(p.mem[i].Dst.Bytes, l.Dst.Bytes)
		}
	}
	if reply.Known && reply.Outcome.Written == nil {
		reply.Outcome.Written = []api.Interval{}
	}
	return reply.Outcome, nil
}

// tail is the end of what a process wrote on its standard error.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const tailBytes = 1000

// Write keeps the last bytes.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(b)
	if n := t.text.Len(); n > tailBytes {
		t.text.Next(n - tailBytes)
	}
	return len(b), nil
}

// String is that, on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(t.text.String()), " ")
}

var _ io.Writer = (*tail)(nil)
