package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

// mainCode runs the command of this process. The first interrupt cancels what
// is going on, a second one ends the process.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	a := &app{ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, backends: backends()}
	code := a.run(os.Args[1:])
	if err := a.closeBackends(); err != nil {
		return a.fail(err)
	}
	return code
}
