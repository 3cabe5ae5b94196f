package main

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// linear marks an axis that is not logarithmic. The library's own ticks are three on any axis.
type linear struct{}

// Ticks returns six to eleven ticks or so, at multiples of 1, 2 or 5 times a power of ten.
func (linear) Ticks(low, high float64) []plot.Tick {
	step := stepOf((high - low) / 10)
	var ticks []plot.Tick
	for i := math.Ceil(low / step); i*step <= high; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: label(i * step)})
	}
	return ticks
}

// stepOf returns the least of 1, 2 or 5 times a power of ten that is not below a number.
func stepOf(least float64) float64 {
	for power := int(math.Floor(math.Log10(least))); ; power++ {
		for _, digit := range []int{1, 2, 5} {
			if step := times(digit, power); step >= least {
				return step
			}
		}
	}
}

// logarithmic marks a logarithmic axis. The library's own ticks have labels at powers of ten
// only, so that an axis from 2 to 8 would have none.
type logarithmic struct{}

// Ticks returns a tick for each digit of each power of ten, with labels at as many digits as
// there is room for: of many powers of ten, each second or third and so on has one.
func (logarithmic) Ticks(low, high float64) []plot.Tick {
	decades := math.Log10(high / low)
	digits := "1"
	switch {
	case decades <= 0.5:
		digits = "123456789"
	case decades <= 1.2:
		digits = "12357"
	case decades <= 3:
		digits = "125"
	}
	every := 1 + int(decades)/8
	var ticks []plot.Tick
	for power := int(math.Floor(math.Log10(low))); power <= int(math.Ceil(math.Log10(high))); power++ {
		for digit := 1; digit <= 9; digit++ {
			tick := plot.Tick{Value: times(digit, power)}
			if power%every == 0 && strings.Contains(digits, strconv.Itoa(digit)) {
				tick.Label = label(tick.Value)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// times returns digit * 10^power, the float that is nearest to it, so that its label is short.
func times(digit, power int) float64 {
	value, _ := strconv.ParseFloat(strconv.Itoa(digit)+"e"+strconv.Itoa(power), 64)
	return value
}

// spread returns the ends of a logarithmic axis: a digit times a power of ten each, right below
// the least value, which is more than 0, and right above the greatest.
func spread(low, high float64) (from, to float64) {
	for power := int(math.Floor(math.Log10(low))) - 1; ; power++ {
		for digit := 1; digit <= 9; digit++ {
			value := times(digit, power)
			if value > high {
				return from, value
			}
			if value < low {
				from = value
			}
		}
	}
}

// label writes a number for an axis, in as few digits as it has: thousands as k, millions as M,
// thousands of these as G.
func label(value float64) string {
	unit := ""
	switch amount := math.Abs(value); {
	case amount == 0:
		// A 0 may have a sign.
		return "0"
	case amount >= 1e9:
		value, unit = value/1e9, "G"
	case amount >= 1e6:
		value, unit = value/1e6, "M"
	case amount >= 1e3:
		value, unit = value/1e3, "k"
	}
	// What is computed has errors in its last digits.
	value, _ = strconv.ParseFloat(strconv.FormatFloat(value, 'g', 10, 64), 64)
	return strconv.FormatFloat(value, 'f', -1, 64) + unit
}
