//go:build !(gpu && linux && cgo)

package nccl

import "example.com/tandem/api"

func open(string, string) (library, error) {
	return nil, &api.Unavailable{Spec: Name, Reason: "no GPU support built in", Hint: "go build -tags gpu, on Linux with cgo"}
}
