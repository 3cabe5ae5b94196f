package main

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a drawing, 720 by 420 pixels of 3/4 point each, and its margin.
const (
	width  vg.Length = 540
	height vg.Length = 315
	margin vg.Length = 8
)

// few is up to how many points of a line have marks.
const few = 25

var (
	// The colours of Okabe and Ito without yellow, which is too light on white: whoever sees no
	// red, green or blue can tell them apart.
	colours = []color.Color{
		color.RGBA{R: 0x00, G: 0x72, B: 0xB2, A: 0xFF}, // blue
		color.RGBA{R: 0xD5, G: 0x5E, B: 0x00, A: 0xFF}, // vermilion
		color.RGBA{R: 0x00, G: 0x9E, B: 0x73, A: 0xFF}, // green
		color.RGBA{R: 0xCC, G: 0x79, B: 0xA7, A: 0xFF}, // purple
		color.RGBA{R: 0x00, G: 0x00, B: 0x00, A: 0xFF}, // black
		color.RGBA{R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF}, // orange
		color.RGBA{R: 0x56, G: 0xB4, B: 0xE9, A: 0xFF}, // sky blue
	}
	// As many as have no divisor in common with the colours, so that these pairs come again late.
	dashes = [][]vg.Length{nil, {6, 3}, {1.5, 2}, {8, 2, 1.5, 2}, {3, 2}}
	marks  = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}}

	gridStyle = draw.LineStyle{Color: color.Gray{Y: 0xDD}, Width: 0.5}
)

// svg draws the plot, with a white background, since GitHub's page may be dark.
func (d drawing) svg() ([]byte, error) {
	canvas := vgsvg.New(width, height)
	if err := d.draw(draw.New(canvas)); err != nil {
		return nil, err
	}
	written := &bytes.Buffer{}
	if _, err := canvas.WriteTo(written); err != nil {
		return nil, err
	}
	// The letters of these others are as wide.
	return bytes.ReplaceAll(written.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")), nil
}

func (d drawing) draw(c draw.Canvas) error {
	if err := d.check(); err != nil {
		return err
	}
	c.SetColor(color.White)
	c.Fill(c.Path())
	c = draw.Crop(c, margin, -margin, margin, -margin)

	p := plot.New()
	p.Title.TextStyle.Font = sans(12)
	p.Title.Text = wrap(d.Title, p.Title.TextStyle, c.Max.X-c.Min.X)
	p.Title.Padding = 6
	prepare(&p.X, d.X, d.LogX)
	prepare(&p.Y, d.Y, d.LogY)
	grid := plotter.NewGrid()
	grid.Vertical, grid.Horizontal = gridStyle, gridStyle
	p.Add(grid)

	var entries []plot.Legend
	for i, s := range d.Series {
		entry := plot.NewLegend()
		entry.Left, entry.Top, entry.ThumbnailWidth, entry.TextStyle.Font = true, true, 28, sans(9)
		drawn, err := s.plotters(i)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		var thumbnails []plot.Thumbnailer
		for _, part := range drawn {
			p.Add(part)
			thumbnails = append(thumbnails, part)
		}
		entry.Add(s.Name, thumbnails...)
		entries = append(entries, entry)
	}
	finish(&p.X, d.LogX)
	finish(&p.Y, d.LogY)
	p.Draw(draw.Crop(c, 0, 0, drawLegend(entries, c), 0))
	return nil
}

// check finds what cannot be drawn.
func (d drawing) check() error {
	if len(d.Series) == 0 {
		return errors.New("it has no series")
	}
	for _, s := range d.Series {
		if len(s.Points) == 0 {
			return fmt.Errorf("%s has no points", s.Name)
		}
		for _, point := range s.Points {
			if d.LogX && point.X <= 0 || d.LogY && point.Y <= 0 {
				return fmt.Errorf("%s: (%v, %v) cannot be on a logarithmic axis", s.Name, point.X, point.Y)
			}
		}
	}
	return nil
}

// thumbnailer is what is drawn of a line, and in the legend.
type thumbnailer interface {
	plot.Plotter
	plot.Thumbnailer
}

// plotters returns what draws the line with a number.
func (s line) plotters(number int) ([]thumbnailer, error) {
	points := make(plotter.XYs, len(s.Points))
	for i, point := range s.Points {
		points[i] = plotter.XY(point)
	}
	drawn, scatter, err := plotter.NewLinePoints(points)
	if err != nil {
		return nil, err
	}
	colour := colours[number%len(colours)]
	drawn.LineStyle = draw.LineStyle{Color: colour, Width: 1.5, Dashes: dashes[number%len(dashes)]}
	if len(points) > few {
		return []thumbnailer{drawn}, nil
	}
	scatter.GlyphStyle = draw.GlyphStyle{Color: colour, Radius: 2.5, Shape: marks[number%len(marks)]}
	return []thumbnailer{drawn, scatter}, nil
}

// prepare sets the look of an axis.
func prepare(axis *plot.Axis, name string, logarithm bool) {
	axis.Label.Text, axis.Label.TextStyle.Font, axis.Label.Padding = name, sans(10), 4
	axis.Tick.Label.Font, axis.Tick.Length = sans(9), 5
	axis.Padding = 0
	axis.Tick.Marker = linear{}
	if logarithm {
		axis.Tick.Marker, axis.Scale = logarithmic{}, plot.LogScale{}
	}
}

// finish sets the ends of an axis around its values. One that is not logarithmic has a 0 at its
// end, so that lengths compare as the numbers do.
func finish(axis *plot.Axis, logarithm bool) {
	if logarithm {
		axis.Min, axis.Max = spread(axis.Min, axis.Max)
		return
	}
	axis.Min, axis.Max = math.Min(axis.Min, 0), math.Max(axis.Max, 0)
	if axis.Min == axis.Max {
		axis.Max = 1
		return
	}
	room := (axis.Max - axis.Min) / 40
	if axis.Max > 0 {
		axis.Max += room
	}
	if axis.Min < 0 {
		axis.Min -= room
	}
}

// drawLegend draws the entries below the plot, as many in a row as there is room for, and
// returns how high that is.
func drawLegend(entries []plot.Legend, c draw.Canvas) vg.Length {
	const gap, row vg.Length = 14, 13
	var rows [][]plot.Legend
	right := c.Max.X
	for _, entry := range entries {
		size := entry.Rectangle(c).Size().X
		if right+size > c.Max.X {
			rows, right = append(rows, nil), c.Min.X
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], entry)
		right += size + gap
	}
	top := c.Min.Y + row*vg.Length(len(rows))
	for i, entries := range rows {
		left := c.Min.X
		for _, entry := range entries {
			size := entry.Rectangle(c).Size().X
			entry.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: left, Y: top - row*vg.Length(i+1)},
				Max: vg.Point{X: left + size, Y: top - row*vg.Length(i)},
			}})
			left += size + gap
		}
	}
	return top - c.Min.Y + 4
}

// wrap breaks a text into lines of a width.
func wrap(words string, style text.Style, width vg.Length) string {
	var lines []string
	for _, word := range strings.Fields(words) {
		if last := len(lines) - 1; last >= 0 && style.Width(lines[last]+" "+word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n")
}

// sans is the font of all texts.
func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}
