package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"
)

// lineOf returns a line with points (X, Y, X, Y, ...).
func lineOf(name string, numbers ...float64) line {
	l := line{Name: name}
	for pair := range slices.Chunk(numbers, 2) {
		l.Points = append(l.Points, struct {
			X float64 `json:"x"`
			Y float64 `json:"y"`
		}{pair[0], pair[1]})
	}
	return l
}

// TestWithin draws plots of many shapes and checks that no text reaches out of the drawing or
// lies on another one.
func TestWithin(t *testing.T) {
	var series []line
	for i := range 12 {
		series = append(series, lineOf(fmt.Sprintf("a line with a long name, number %d", i), 1, 2, 3, float64(i+5)))
	}
	for name, d := range map[string]drawing{
		"long texts": {Title: strings.Repeat("some words of a title ", 10), X: "x", Y: "y", Series: series[:1]},
		"many lines": {Title: "title", X: "x", Y: "y", LogX: true, LogY: true, Series: series},
		"one point":  {Title: "title", X: "x", Y: "y", Series: []line{lineOf("a", 100000, 0.00012)}},
		"one point, logarithmic": {
			Title: "title", X: "x", Y: "y", LogX: true, LogY: true, Series: []line{lineOf("a", 100000, 0.00012)}},
		"all 0":    {Title: "title", X: "x", Y: "y", Series: []line{lineOf("a", 0, 0, 0, 0)}},
		"negative": {Title: "title", X: "x", Y: "y", Series: []line{lineOf("a", -5, -1, -3, -7)}},
		"fourteen powers of ten": {
			Title: "title", X: "x", Y: "y", LogX: true, LogY: true, Series: []line{lineOf("a", 1e-7, 1e-7, 1e7, 1e7)}},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := d.svg()
			if err != nil {
				t.Fatal(err)
			}
			textsOf(t, content)
			recorded := &recorder.Canvas{}
			if err := d.draw(draw.NewCanvas(recorded, width, height)); err != nil {
				t.Fatal(err)
			}
			boxes := boxesOf(recorded.Actions)
			if len(boxes) < 6 {
				t.Errorf("only %v", boxes)
			}
			for i, b := range boxes {
				if b.Min.X < 0 || b.Max.X > width || b.Min.Y < 0 || b.Max.Y > height {
					t.Errorf("%q is at %v", b.text, b.Rectangle)
				}
				for _, other := range boxes[:i] {
					if b.Min.X < other.Max.X && b.Max.X > other.Min.X && b.Min.Y < other.Max.Y && b.Max.Y > other.Min.Y {
						t.Errorf("%q at %v and %q at %v", b.text, b.Rectangle, other.text, other.Rectangle)
					}
				}
			}
		})
	}
}

// box is where a text lies.
type box struct {
	text string
	vg.Rectangle
}

// boxesOf returns where all texts lie, each as high as most of its letters are.
func boxesOf(actions []recorder.Action) []box {
	var boxes []box
	turned := false
	for _, action := range actions {
		switch action := action.(type) {
		case *recorder.Rotate:
			turned = true
		case *recorder.Pop:
			turned = false
		case *recorder.FillString:
			style := plot.New().X.Tick.Label
			style.Font = sans(action.Size)
			from := action.Point
			to := from.Add(vg.Point{X: style.Width(action.String), Y: action.Size / 2})
			if turned {
				// A quarter turn to the left: up is now to the left.
				from, to = vg.Point{X: -to.Y, Y: from.X}, vg.Point{X: -from.Y, Y: to.X}
			}
			boxes = append(boxes, box{action.String, vg.Rectangle{Min: from, Max: to}})
		}
	}
	return boxes
}

// TestTellApart checks that no two of as many lines as one can look at are drawn alike.
func TestTellApart(t *testing.T) {
	seen := map[string]int{}
	for i := range len(colours) * len(dashes) {
		drawn, err := lineOf("a", 1, 2, 3, 4).plotters(i)
		if err != nil {
			t.Fatal(err)
		}
		is := drawn[0].(*plotter.Line).LineStyle
		style := fmt.Sprint(is.Color, is.Dashes)
		if other, ok := seen[style]; ok {
			t.Errorf("lines %d and %d are both %s", other, i, style)
		}
		seen[style] = i
	}
	for i, colour := range colours {
		if y, _, _ := color.RGBToYCbCr(rgb(colour)); y > 190 {
			t.Errorf("colour %d is too light for white: %d", i, y)
		}
	}
}

func rgb(c color.Color) (r, g, b uint8) {
	is := color.RGBAModel.Convert(c).(color.RGBA)
	return is.R, is.G, is.B
}

// TestMarks checks that points have marks where they are few only.
func TestMarks(t *testing.T) {
	var numbers []float64
	for i := range few {
		numbers = append(numbers, float64(i), 1)
	}
	for name, tc := range map[string]struct {
		line line
		want int
	}{
		"few":  {lineOf("a", numbers...), 2},
		"many": {lineOf("a", append(numbers, few, 1)...), 1},
	} {
		t.Run(name, func(t *testing.T) {
			drawn, err := tc.line.plotters(0)
			if err != nil || len(drawn) != tc.want {
				t.Errorf("%d things are drawn, error %v, want %d", len(drawn), err, tc.want)
			}
		})
	}
}

func TestTicks(t *testing.T) {
	for name, tc := range map[string]struct {
		marker    plot.Ticker
		low, high float64
		want      string
	}{
		"from 0 to 1":                {linear{}, 0, 1.025, "0 0.2 0.4 0.6 0.8 1"},
		"thousands":                  {linear{}, 0, 123456, "0 20k 40k 60k 80k 100k 120k"},
		"thousands and below":        {linear{}, 0, 2050, "0 500 1k 1.5k 2k"},
		"small":                      {linear{}, 0, 0.003, "0 0.0005 0.001 0.0015 0.002 0.0025 0.003"},
		"little below 0":             {linear{}, -0.1, 1.1, "0 0.2 0.4 0.6 0.8 1"},
		"thousands of millions":      {linear{}, 0, 2.05e9, "0 500M 1G 1.5G 2G"},
		"below 0":                    {linear{}, -1.5, 1.5, "-1.5 -1 -0.5 0 0.5 1 1.5"},
		"a third of a power of ten":  {logarithmic{}, 3, 9, "3 4 5 6 7 8 9"},
		"one power of ten":           {logarithmic{}, 5, 60, "5 7 10 20 30 50"},
		"three powers of ten":        {logarithmic{}, 10, 5000, "10 20 50 100 200 500 1k 2k 5k"},
		"four powers of ten":         {logarithmic{}, 0.1, 2000, "0.1 1 10 100 1k"},
		"many powers of ten":         {logarithmic{}, 1e-4, 1e7, "0.0001 0.01 1 100 10k 1M"},
		"ends that are powers of 10": {logarithmic{}, 1000, 10000, "1k 2k 3k 5k 7k 10k"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, tick := range tc.marker.Ticks(tc.low, tc.high) {
				if !tick.IsMinor() && tick.Value >= tc.low && tick.Value <= tc.high {
					got = append(got, tick.Label)
				}
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSpread(t *testing.T) {
	for name, tc := range map[string]struct{ low, high, from, to float64 }{
		"between ticks":           {3.2, 480, 3, 500},
		"on ticks":                {0.05, 20, 0.04, 30},
		"one value":               {3.2, 3.2, 3, 4},
		"one value on a tick":     {5, 5, 4, 6},
		"one value, power of ten": {1000, 1000, 900, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			if from, to := spread(tc.low, tc.high); from != tc.from || to != tc.to {
				t.Errorf("from %v to %v, want %v to %v", from, to, tc.from, tc.to)
			}
		})
	}
}

func TestFinish(t *testing.T) {
	for name, tc := range map[string]struct{ low, high, from, to float64 }{
		"above 0":     {20, 40, 0, 41},
		"below 0":     {-40, -20, -41, 0},
		"around 0":    {-10, 30, -11, 31},
		"0 only":      {0, 0, 0, 1},
		"one value":   {80, 80, 0, 82},
		"one below 0": {-80, -80, -82, 0},
	} {
		t.Run(name, func(t *testing.T) {
			axis := plot.New().Y
			axis.Min, axis.Max = tc.low, tc.high
			if finish(&axis, false); math.Abs(axis.Min-tc.from) > 1e-9 || math.Abs(axis.Max-tc.to) > 1e-9 {
				t.Errorf("from %v to %v, want %v to %v", axis.Min, axis.Max, tc.from, tc.to)
			}
		})
	}
}
