package main

import (
	"context"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/child"
)

// childCmd executes calls for another process of this command, which may not
// survive them itself.
type childCmd struct{}

func (*childCmd) do(a *app) (int, error) {
	in := a.stdin
	if in == nil {
		in = strings.NewReader("")
	}
	return exitHolds, child.Serve(a.ctx, in, a.stdout, func(ctx context.Context, spec api.Spec, t api.TeamConfig) (api.Team, error) {
		b, err := a.backend(spec)
		if err != nil {
			return nil, err
		}
		if h, ok := b.(*hwBackend); ok {
			h.expendable()
		}
		return b.Open(ctx, spec, t)
	})
}
