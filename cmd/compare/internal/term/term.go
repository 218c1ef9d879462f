// Package term writes for a terminal: emphasis where it is wanted, and tables
// whose columns line up. The rule users break: text handed to a Table is
// measured in runes, so it must not be styled before it is in the last column.
package term

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// Style emphasises text, or leaves it alone; the zero Style leaves it alone.
type Style struct{ on bool }

// Coloured is the Style that emphasises where on is set.
func Coloured(on bool) Style { return Style{on} }

// On reports whether s emphasises.
func (s Style) On() bool { return s.on }

// Wants reports whether what is written to w should be coloured: w is a
// terminal, and neither the flag nor NO_COLOR (any value but none) is against
// it.
func Wants(w io.Writer, noColor bool, getenv func(string) string) bool {
	if noColor || getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return false
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Bold is for headings.
func (s Style) Bold(text string) string { return s.wrap("1", text) }

// Red is for what is wrong.
func (s Style) Red(text string) string { return s.wrap("31", text) }

// Green is for what is right.
func (s Style) Green(text string) string { return s.wrap("32", text) }

// Dim is for what is beside the point.
func (s Style) Dim(text string) string { return s.wrap("2", text) }

func (s Style) wrap(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Table is a list of rows; every column but the last is as wide as its widest
// cell. A row of one cell is a line of its own and widens nothing.
type Table struct {
	Indent string
	rows   [][]string
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// String is the table, each row ended by a newline and no row by a blank.
func (t *Table) String() string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row[:max(len(row)-1, 0)] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		line.WriteString(t.Indent)
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
