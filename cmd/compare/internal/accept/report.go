package accept

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"example.com/tandem/api/gpu"
	"example.com/tandem/conformance/vectors"
)

// preflight says what the machine is and whether multicast may be used.
func (o *Options) preflight() {
	fmt.Fprintf(o.Out, "driver: %s\n", o.Driver.Name())
	for i, d := range o.Driver.Devices() {
		v := d.Info()
		fmt.Fprintf(o.Out, "GPU %d: %s, compute capability %d.%d, %d SMs, multicast attribute %v\n", i, v.Name, v.Major, v.Minor, v.SMs, v.Multicast)
	}
	fmt.Fprintf(o.Out, "fabric manager: %s\n", fabricManager())
	may := "allowed"
	if err := gpu.MulticastPolicy(o.form() == "native", o.Getenv); err != nil {
		may = err.Error()
	}
	fmt.Fprintf(o.Out, "multicast: %s\n", may)
	fmt.Fprintf(o.Out, "kernels: %s; this says nothing of B200 or B300 switches\n", o.form())
}

// form is the one that the kernels are run in.
func (o *Options) form() string {
	if strings.Contains(o.Params, "multicast=on") {
		return "native"
	}
	return "emulated"
}

// fabricManager looks for the files of a running fabric manager; nothing is asked
// of it.
func fabricManager() string {
	for _, at := range []string{"/var/run/nvidia-fabricmanager", "/run/nvidia-fabricmanager", "/var/run/nvidia-fabricmanager/nv-fabricmanager.pid"} {
		if _, err := os.Stat(at); err == nil {
			return "its files are here"
		}
	}
	return "not seen"
}

// table prints the rows as the pull request has them.
func (s *Summary) table(o *Options) {
	fmt.Fprintf(o.Out, "\n| PEs | nreduce | offset | API | unwritten before | after | PR before | PR after | ms before | after | PR ms before | PR ms after | bits |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range s.Rows {
		got, ms := [2]string{"not run", "not run"}, [2]string{"-", "-"}
		if r.Run {
			got = [2]string{fmt.Sprint(r.Unwritten[0]), fmt.Sprint(r.Unwritten[1])}
		}
		for i, v := range r.MS {
			if v > 0 {
				ms[i] = fmt.Sprintf("%.3f", v)
			}
		}
		bits := cmp.Or(r.Problem, "as the model")
		if !r.Run {
			bits = "-"
		}
		fmt.Fprintf(o.Out, "| %d | %d | %d | %s | %s | %s | %d | %d | %s | %s | %s | %s | %s |\n", r.Call.Ranks, r.Call.Count, r.Call.SrcOffset.At(0), r.Call.Scope,
			got[0], got[1], r.Before, r.After, ms[0], ms[1], r.MSBefore, r.MSAfter, bits)
	}
	fmt.Fprintln(o.Out, o.aboutTimes())
}

// aboutTimes says what the milliseconds of the table are.
func (o *Options) aboutTimes() string {
	if len(o.Bench) == 0 {
		return "no times are taken on a virtual GPU; those of the pull request are of a B300"
	}
	return fmt.Sprintf("ms: the slowest rank's median of %d launches, on %d GPU(s) here; those of the pull request are of a B300, a GPU for each PE, with a real switch", samples, len(o.Driver.Devices()))
}

// bundle is vector files, one an implementation and version: all that was run with
// the parameters' own arithmetic, for replay.
type bundle struct {
	dir, hardware string
	files         map[string]*file
}

type file struct {
	to   *os.File
	pack *gzip.Writer
	out  *vectors.Writer
}

func (o *Options) newBundle() (*bundle, error) {
	b := &bundle{o.Dir, cmp.Or(o.Driver.Devices()[0].Info().Name, "a virtual GPU") + ", multicast " + o.form(), map[string]*file{}}
	if o.Dir == "" {
		return b, nil
	}
	return b, os.MkdirAll(o.Dir, 0o755)
}

// add writes what an implementation's kernels left; model is whose results they
// are to be.
func (b *bundle) add(kernels, model string, row *vectors.Row) error {
	if b.dir == "" {
		return nil
	}
	f := b.files[kernels]
	if f == nil {
		to, err := os.Create(filepath.Join(b.dir, strings.ReplaceAll(kernels, "@", "-")+".jsonl.gz"))
		if err != nil {
			return err
		}
		pack := gzip.NewWriter(to)
		out, err := vectors.NewWriter(pack, vectors.Header{Library: kernels, Profile: model, NVLS: true, Hardware: b.hardware,
			Environment: map[string]string{"go": runtime.Version(), "goarch": runtime.GOARCH}})
		if err != nil {
			return errors.Join(err, to.Close())
		}
		f = &file{to, pack, out}
		b.files[kernels] = f
	}
	return f.out.Write(row)
}

func (b *bundle) close() error {
	var errs []error
	for _, f := range b.files {
		errs = append(errs, f.out.Close(), f.pack.Close(), f.to.Close())
	}
	return errors.Join(errs...)
}
