package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"example.com/tandem/api"
	"example.com/tandem/conformance/matrix"
)

// JournalSchema names the form of a journal.
const JournalSchema = "tandem.sweep_part/1"

// Journal is the file of an unfinished sweep: a header, and a line for each
// outcome. What is cut off in the middle of a line is made again.
type Journal struct {
	file *os.File
	Header
	// Outcomes are those that were read.
	Outcomes map[int]matrix.Outcome
}

// Header is the first line of a journal.
type Header struct {
	Schema string `json:"schema"`
	Identity
	// Request has the flags of the sweep, for whoever goes on with it.
	Request json.RawMessage `json:"request"`
}

// maxJournalLine bounds a line, in bytes.
const maxJournalLine = 1 << 20

const journalHint = "give the FILE.part of an interrupted sweep, or start again without --resume"

// CreateJournal begins a journal. A file that is there already is another
// unfinished sweep, and stays.
func CreateJournal(name string, h Header) (*Journal, error) {
	h.Schema = JournalSchema
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if os.IsExist(err) {
		return nil, &api.InvalidError{Field: "o", Value: name, Reason: "an unfinished sweep is there already", Hint: "go on with it by --resume " + name + ", or remove it"}
	}
	if err != nil {
		return nil, &api.InvalidError{Field: "o", Value: name, Reason: "cannot be written: " + reason(err), Hint: "name a file in a folder that exists and may be written"}
	}
	j := &Journal{file: f, Header: h}
	return j, j.write(h)
}

// ResumeJournal opens a journal to go on with it.
func ResumeJournal(name string) (*Journal, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, badJournal(name, reason(err))
	}
	j, end, err := ReadJournal(name, f)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	j.file = f
	return j, nil
}

// ReadJournal reads a journal and says where its last whole line ends.
func ReadJournal(name string, r io.Reader) (*Journal, int64, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	j := &Journal{Outcomes: map[int]matrix.Outcome{}}
	var end int64
	for n := 1; ; n++ {
		line, err := readLine(in)
		switch {
		case err == io.EOF && n == 1:
			return nil, 0, badJournal(name, "it holds not even a header")
		case err == io.EOF:
			return j, end, nil // what is left is the line that was being written
		case err != nil:
			return nil, 0, badJournal(name, fmt.Sprintf("line %d: %v", n, err))
		}
		if n == 1 {
			err = j.readHeader(line)
		} else {
			err = j.readOutcome(line)
		}
		if err != nil {
			return nil, 0, badJournal(name, fmt.Sprintf("line %d: %v", n, err))
		}
		end += int64(len(line)) + 1
	}
}

// readLine is the next whole line without its end.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxJournalLine:
			return nil, fmt.Errorf("longer than %d bytes", maxJournalLine)
		case err == bufio.ErrBufferFull:
		case err != nil:
			return nil, err
		default:
			return line[:len(line)-1], nil
		}
	}
}

func strict(line []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("more than one value")
	}
	return nil
}

func (j *Journal) readHeader(line []byte) error {
	var kind struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(line, &kind); err != nil || kind.Schema != JournalSchema {
		return fmt.Errorf("it is not a journal of a sweep (%s)", JournalSchema)
	}
	if err := strict(line, &j.Header); err != nil {
		return err
	}
	if j.Cases < 0 || j.Shard.Of < 1 {
		return fmt.Errorf("it does not say which cases it is about")
	}
	return nil
}

func (j *Journal) readOutcome(line []byte) error {
	var o matrix.Outcome
	if err := strict(line, &o); err != nil {
		return err
	}
	switch {
	case o.Case < 0 || o.Case >= j.Cases || !j.Shard.Has(o.Case):
		return fmt.Errorf("case %d is not among the %d of shard %s", o.Case, j.Cases, j.Shard)
	case o.Status != matrix.Agree && o.Status != matrix.Diverge && o.Status != matrix.Refused:
		return fmt.Errorf("unknown status %.40q", o.Status)
	}
	if before, ok := j.Outcomes[o.Case]; ok && before != o {
		return fmt.Errorf("case %d has two outcomes", o.Case)
	}
	j.Outcomes[o.Case] = o
	return nil
}

// Add appends an outcome.
func (j *Journal) Add(o matrix.Outcome) error { return j.write(o) }

func (j *Journal) write(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", j.file.Name(), err)
	}
	return nil
}

// Close leaves the journal where it is.
func (j *Journal) Close() error { return j.file.Close() }

func badJournal(name, reason string) error {
	return &api.InvalidError{Field: "resume", Value: name, Reason: reason, Hint: journalHint}
}

// reason is an error without the name of the file, which is told anyway.
func reason(err error) string {
	if e, ok := err.(*os.PathError); ok {
		return e.Err.Error()
	}
	return err.Error()
}
