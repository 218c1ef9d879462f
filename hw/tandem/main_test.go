package tandem

import (
	"os"
	"testing"

	"example.com/tandem/api/gpu/gputest"
)

func TestMain(m *testing.M) { os.Exit(gputest.Main(m).Run()) }
