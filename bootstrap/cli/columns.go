package cli

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// mostLines is the largest number of lines of a cell on a terminal; the rest is cut. mostLast is
// the limit of the last cell of a row, which has reasons and errors.
const (
	mostLines = 4
	mostLast  = 12
)

// gap separates columns.
const gap = "   "

// Screen is the target of a table.
type Screen struct {
	// Width of the terminal; 0 = no limit: a file, a pipe, or -o wide.
	Width int
	// color is true on a terminal that shows colors.
	color bool
}

// Columns writes tables as kubectl does: upper-case headings, three spaces between columns, "-" for
// an empty cell. On a terminal a table is not wider than it: cells are wrapped, and cut after some
// lines.
type Columns struct {
	Screen
	to    io.Writer
	lines []line // of the present table
	// optional marks the columns that may be left out.
	optional []int
	err      error
}

// Optional marks the title of a column that is left out where all of its cells are empty, and that
// a terminal shows only if all columns fit.
func Optional(title string) any { return optionalTitle(title) }

type optionalTitle string

// line is a row of cells, or a text that belongs to no column.
type line struct {
	cells []string
	text  string
}

// NewColumns writes tables to a stream. Cells, notes, titles and paragraphs
// are text of others; only Columns itself adds colors.
func NewColumns(to io.Writer, s Screen) *Columns { return &Columns{Screen: s, to: raw(to)} }

// Row adds one line.
func (c *Columns) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		if _, is := cell.(optionalTitle); is {
			c.optional = append(c.optional, i)
		}
		texts[i] = Printable(fmt.Sprint(cell))
		if texts[i] == "" {
			texts[i] = "-"
		}
	}
	c.lines = append(c.lines, line{cells: texts})
}

// Details adds a row for each label with its value, without the labels whose value is an empty
// text.
func (c *Columns) Details(pairs ...any) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			c.Row(pair...)
		}
	}
}

// Table adds the rows of a slice of structs with columns (api.Columns), under a title; "" = it is
// the first table, which has its headings without rows, too.
func (c *Columns) Table(title string, rows any) {
	all := reflect.ValueOf(rows)
	if title != "" && all.Len() == 0 {
		return
	} else if title != "" {
		c.Section(title)
	}
	columns := api.Columns(all.Type().Elem())
	cells := make([]any, len(columns))
	for i, column := range columns {
		cells[i] = column.Title
		if column.Wide {
			cells[i] = Optional(column.Title)
		}
	}
	c.Row(cells...)
	for n := range all.Len() {
		for i := range columns {
			cells[i] = columns[i].Cell(all.Index(n))
		}
		c.Row(cells...)
	}
}

// Note adds a text below the row before it.
func (c *Columns) Note(text string) { c.lines = append(c.lines, line{text: "    " + Printable(text)}) }

// Section starts a new table under a title.
func (c *Columns) Section(title string) {
	c.table()
	c.write("\n" + Printable(title) + "\n")
}

// Paragraph ends the table and writes a text with its lines.
func (c *Columns) Paragraph(text string) {
	c.table()
	c.write(Lines(text))
}

// Flush writes the last table.
func (c *Columns) Flush() error {
	c.table()
	if c.err != nil {
		return fmt.Errorf("write output: %w", c.err)
	}
	return nil
}

func (c *Columns) write(text string) {
	if c.err == nil {
		_, c.err = io.WriteString(c.to, text)
	}
}

// table writes the present table: as records where its words do not fit.
func (c *Columns) table() {
	least := natural(c.lines, longestWord)
	for i := len(c.optional) - 1; i >= 0; i-- {
		if column := c.optional[i]; c.empty(column) || c.Width > 0 && total(least) > c.Width {
			for n := range c.lines {
				if column < len(c.lines[n].cells) {
					c.lines[n].cells = slices.Delete(c.lines[n].cells, column, column+1)
				}
			}
			least = slices.Delete(least, column, column+1)
		}
	}
	widths := natural(c.lines, utf8.RuneCountInString)
	if c.Width > 0 {
		if total(least) > c.Width {
			widths = c.records()
		}
		fit(widths, natural(c.lines, longestWord), c.Width)
	}
	var out strings.Builder
	for _, l := range c.lines {
		if l.cells == nil {
			for _, part := range wrap(l.text, c.Width) {
				out.WriteString(part + "\n")
			}
			continue
		}
		c.cells(&out, l.cells, widths)
	}
	c.lines, c.optional = nil, nil
	c.write(out.String())
}

// empty reports whether a column has rows, and nothing in them.
func (c *Columns) empty(column int) bool {
	return len(c.lines) > 1 && !slices.ContainsFunc(c.lines[1:], func(l line) bool { return column < len(l.cells) && l.cells[column] != "-" })
}

// records turns each row of a table with titles into lines "TITLE   cell", and returns the widths.
func (c *Columns) records() []int {
	titles := c.lines[0].cells
	if len(titles) < 3 || len(c.lines) < 2 || titles[0] != strings.ToUpper(titles[0]) {
		return natural(c.lines, utf8.RuneCountInString)
	}
	var lines []line
	for n, l := range c.lines[1:] {
		if l.cells == nil {
			lines = append(lines, l)
			continue
		}
		if n > 0 {
			lines = append(lines, line{})
		}
		for i, cell := range l.cells {
			lines = append(lines, line{cells: []string{titles[i], cell}})
		}
	}
	c.lines = lines
	return natural(c.lines, utf8.RuneCountInString)
}

// cells writes one row, with the number of lines of its longest cell.
func (c *Columns) cells(out *strings.Builder, cells []string, widths []int) {
	parts, height := make([][]string, len(cells)), 1
	for i, cell := range cells {
		limit := 0
		if c.Width > 0 {
			limit = max(widths[i], 1)
		}
		most := mostLines
		if i+1 == len(cells) {
			most = mostLast
		}
		parts[i] = cut(wrap(cell, limit), most)
		height = max(height, len(parts[i]))
	}
	for n := range height {
		text := &strings.Builder{}
		for i := range cells {
			part := ""
			if n < len(parts[i]) {
				part = parts[i][n]
			}
			text.WriteString(c.colored(part))
			if i+1 < len(cells) {
				text.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(part)) + gap)
			}
		}
		out.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
}

// natural are the widths of columns by a measure of their cells.
func natural(lines []line, measure func(cell string) int) (widths []int) {
	for _, l := range lines {
		for i, cell := range l.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], measure(cell))
		}
	}
	return widths
}

// longestAddress is the width of the longest address with its port and protocol, and some more.
const longestAddress = 56

// longestWord is the width that a cell needs so that wrapping divides no word up to longestAddress.
func longestWord(cell string) (most int) {
	n := 0
	for _, r := range cell {
		n++
		if r == ' ' {
			n = 0
		}
		most = max(most, n)
		if r == ',' || r == ';' {
			n = 0
		}
	}
	return min(most, longestAddress)
}

// total is the width of a table.
func total(widths []int) int {
	sum := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// leastWidth is the least width of a column. A narrower terminal wraps by itself.
const leastWidth = 8

// fit narrows the widest columns until all of them fit: first columns that are wider than their
// words, then all.
func fit(widths, least []int, width int) {
	for over := total(widths) - width; over > 0; over-- {
		widest := widestAbove(widths, least)
		if widest < 0 {
			widest = widestAbove(widths, slices.Repeat([]int{leastWidth}, len(widths)))
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// widestAbove is the widest of the columns that are wider than their least width; -1 = there is
// none.
func widestAbove(widths, least []int) int {
	widest := -1
	for i, w := range widths {
		if w > least[i] && (widest < 0 || w > widths[widest]) {
			widest = i
		}
	}
	return widest
}

// wrap cuts a text into lines of a width, if possible behind a space or a comma; 0 = no limit.
func wrap(text string, width int) (lines []string) {
	rest := []rune(text)
	for width > 0 && len(rest) > width {
		at := width
		for i := width; i > 0; i-- {
			if rest[i-1] == ' ' || rest[i-1] == ',' || rest[i-1] == ';' || rest[i] == ' ' {
				at = i
				break
			}
		}
		lines = append(lines, strings.TrimSpace(string(rest[:at])))
		rest = []rune(strings.TrimLeft(string(rest[at:]), " "))
	}
	if len(lines) == 0 { // the indentation of a single line stays
		return []string{text}
	}
	return append(lines, string(rest))
}

// cut removes the lines above a number and adds a mark.
func cut(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	last := []rune(lines[most-1])
	lines = lines[:most]
	lines[most-1] = string(last[:max(len(last)-1, 0)]) + "…"
	return lines
}

// Colors of terminals.
const (
	red, green, yellow = "\x1b[31m", "\x1b[32m", "\x1b[33m"
	plainColor         = "\x1b[0m"
)

// colors are the colors of cells by the tone of their state.
var colors = map[string]string{"good": green, "warn": yellow, "bad": red}

// colored adds the color of its state to a cell, on a terminal with colors.
func (c *Columns) colored(cell string) string {
	if color := colors[api.Tone(cell)]; c.color && color != "" {
		return color + cell + plainColor
	}
	return cell
}
