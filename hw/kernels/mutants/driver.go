package mutants

import "example.com/tandem/api/gpu"

// Editing is a driver that changes the text of one module before it is loaded.
// Its devices are for teams on one GPU: peers are those of the driver itself.
func Editing(d gpu.Driver, module string, edit func([]byte) []byte) gpu.Driver {
	return editing{d, module, edit}
}

type editing struct {
	gpu.Driver
	module string
	edit   func([]byte) []byte
}

// Devices are the driver's, each with the edit.
func (d editing) Devices() []gpu.Device {
	var out []gpu.Device
	for _, one := range d.Driver.Devices() {
		out = append(out, editingDevice{one, &d})
	}
	return out
}

type editingDevice struct {
	gpu.Device
	d *editing
}

func (d editingDevice) Open() (gpu.Context, error) {
	c, err := d.Device.Open()
	if err != nil {
		return nil, err
	}
	return editingContext{c, d.d}, nil
}

type editingContext struct {
	gpu.Context
	d *editing
}

func (c editingContext) LoadModule(name string, ptx []byte) (gpu.Module, error) {
	if name == c.d.module {
		ptx = c.d.edit(ptx)
	}
	return c.Context.LoadModule(name, ptx)
}
