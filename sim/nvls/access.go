package nvls

import "fmt"

// Access evaluates the load-reduces of one form, as an executor of PTX needs it.
type Access struct {
	form  Form
	model Model
	lanes int
	bits  int
}

// Access readies a form; the error says that PTX or the fabric has none.
func (c *Config) Access(f Form) (*Access, error) {
	if err := f.Check(100, false); err != nil {
		return nil, err
	}
	op, ok := reduceOps[f.Op]
	if !ok || f.Instr == "st" {
		return nil, fmt.Errorf("%s reduces nothing", f)
	}
	t := formTypes[f.Type]
	m, err := c.Model(t.d, op, f.Acc == "f32")
	if err != nil {
		return nil, err
	}
	return &Access{form: f, model: m, lanes: t.lanes, bits: t.d.Bits()}, nil
}

// Word is one vector element of the access: words are those of all ranks, in rank
// order, and index is the place in the multicast range of the lowest element in
// it, counted in elements.
func (a *Access) Word(words []uint64, index int64) uint64 {
	t := formTypes[a.form.Type]
	op := reduceOps[a.form.Op]
	in := make([]uint64, len(words))
	var out uint64
	for lane := range a.lanes {
		shift := lane * a.bits
		for r, w := range words {
			in[r] = w >> shift & t.d.Mask()
		}
		out |= a.model.Word(t.d, op, in, index+int64(lane)) << shift
	}
	return out
}
