package figure

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"example.com/tandem/api"
)

// The size of a panel, and how many stand side by side.
const (
	panelWidth  = 11 * vg.Centimeter
	panelHeight = 8.5 * vg.Centimeter
	columns     = 3
)

// line is how one series is drawn.
type line struct {
	name   string
	color  color.Color
	shape  draw.GlyphDrawer
	dashes []vg.Length
}

// Colours that the colour-blind and a black-and-white printer tell apart.
var (
	beforeLine    = line{"before", color.RGBA{0xd5, 0x5e, 0x00, 0xff}, draw.SquareGlyph{}, nil}
	afterLine     = line{"after", color.RGBA{0x00, 0x72, 0xb2, 0xff}, draw.CircleGlyph{}, nil}
	referenceLine = line{"", color.Gray{0x60}, draw.CrossGlyph{}, []vg.Length{vg.Points(4), vg.Points(3)}}
)

// Draw draws the pairs, a panel each, as PNG or SVG by the ending of the name.
func Draw(w io.Writer, name string, pairs []Pair) error {
	rows := (len(pairs) + columns - 1) / columns
	across := min(len(pairs), columns)
	width, height := vg.Length(across)*panelWidth, vg.Length(rows)*panelHeight
	var canvas vg.CanvasWriterTo
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(110))}
	case ".svg":
		canvas = vgsvg.New(width, height)
	default:
		return NameError(name)
	}
	dc := draw.New(canvas)
	for i, p := range pairs {
		panel, err := p.panel()
		if err != nil {
			return err
		}
		x, y := vg.Length(i%columns)*panelWidth, height-vg.Length(i/columns+1)*panelHeight
		panel.Draw(draw.Crop(dc, x+vg.Points(6), x+panelWidth-width-vg.Points(6), y+vg.Points(6), y+panelHeight-height-vg.Points(6)))
	}
	if _, err := canvas.WriteTo(w); err != nil {
		return fmt.Errorf("cannot write the figure: %w", err)
	}
	return nil
}

// Known reports whether a file of that name can be drawn.
func Known(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".png" || ext == ".svg"
}

// NameError says which endings there are.
func NameError(name string) error {
	return &api.InvalidError{Field: "o", Value: name, Reason: "no such kind of figure", Hint: "a name that ends in .png or .svg"}
}

// panel is one pair.
func (p *Pair) panel() (*plot.Plot, error) {
	f := plot.New()
	b, a := &p.Before, &p.After
	f.Title.Text = strings.TrimSuffix(fmt.Sprintf("%s, %s, %d x %s, %s, %s", a.Collective, a.DType, a.World, a.GPU, a.Launch, a.Note), ", ")
	f.Title.TextStyle.Font.Size, f.Legend.TextStyle.Font.Size = vg.Points(9), vg.Points(8)
	for _, a := range []*plot.Axis{&f.X, &f.Y} {
		a.Label.TextStyle.Font.Size, a.Tick.Label.Font.Size = vg.Points(9), vg.Points(7.5)
	}
	f.X.Label.Text, f.Y.Label.Text = "bytes of a rank", "us a call, slowest rank"
	f.X.Scale, f.Y.Scale = plot.LogScale{}, plot.LogScale{}
	f.X.Tick.Marker, f.Y.Tick.Marker = plot.TickerFunc(byteTicks), plot.TickerFunc(timeTicks)
	f.Legend.Left, f.Legend.Top = true, true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{0xe4}, color.Gray{0xe4}
	f.Add(grid)
	before, after := beforeLine, afterLine
	switch {
	case a.File == b.File && a.Label != b.Label:
		before.name, after.name = b.Label, a.Label
	case a.Label != b.Label:
		before.name, after.name = "before: "+b.Label, "after: "+a.Label
	}
	if err := add(f, before, b.Rows, func(r Row) float64 { return r.Us }); err != nil {
		return nil, err
	}
	if err := add(f, after, a.Rows, func(r Row) float64 { return r.Us }); err != nil {
		return nil, err
	}
	if a.Reference != "" {
		reference := referenceLine
		reference.name = a.Reference
		if err := add(f, reference, a.Rows, func(r Row) float64 { return r.Reference }); err != nil {
			return nil, err
		}
	}
	f.X.Min, f.X.Max = f.X.Min/1.15, f.X.Max*1.15
	f.Y.Min, f.Y.Max = f.Y.Min/1.3, f.Y.Max*2
	return f, nil
}

// add draws a series; sizes without a time are left out.
func add(f *plot.Plot, l line, rows []Row, y func(Row) float64) error {
	var xy plotter.XYs
	for _, r := range rows {
		if v := y(r); v > 0 {
			xy = append(xy, plotter.XY{X: float64(r.Bytes), Y: v})
		}
	}
	if len(xy) == 0 {
		return nil
	}
	lines, points, err := plotter.NewLinePoints(xy)
	if err != nil {
		return fmt.Errorf("the figure: %w", err)
	}
	lines.Color, points.Color, points.Shape, points.Radius = l.color, l.color, l.shape, vg.Points(2.5)
	lines.Width, lines.Dashes = vg.Points(1.2), l.dashes
	f.Add(lines, points)
	f.Legend.Add(l.name, lines, points)
	return nil
}

// byteTicks are powers of two, every second or fourth of them named.
func byteTicks(lo, hi float64) []plot.Tick {
	var out []plot.Tick
	first, last := int(math.Ceil(math.Log2(lo)-1e-9)), int(math.Floor(math.Log2(hi)+1e-9))
	every := max(1, (last-first)/6)
	for e := first; e <= last; e++ {
		t := plot.Tick{Value: math.Exp2(float64(e))}
		if (e-first)%every == 0 {
			t.Label = byteLabel(e)
		}
		out = append(out, t)
	}
	return out
}

func byteLabel(e int) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := min(max(e, 0)/10, len(units)-1)
	return fmt.Sprintf("%g %s", math.Exp2(float64(e-10*i)), units[i])
}

// timeTicks are 1, 2 and 5 times the powers of ten.
func timeTicks(lo, hi float64) []plot.Tick {
	var out []plot.Tick
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, e); v >= lo*(1-1e-9) && v <= hi*(1+1e-9) {
				out = append(out, plot.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
			}
		}
	}
	return out
}
