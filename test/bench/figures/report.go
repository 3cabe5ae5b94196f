// Package figures holds what the benches find: tables for people, numbers for programs, and
// what is to be drawn.
package figures

// Report is what one bench has found. Its JSON is the result of the bench; tables and plots are
// made of it.
type Report struct {
	// Name is the bench, as in BENCH=NAME.
	Name string `json:"name"`
	// Title says in a line what was measured.
	Title string `json:"title"`
	// Machine and Command are filled in by whoever runs the bench.
	Machine Machine `json:"machine"`
	Command string  `json:"command"`
	// Tables and Plots are in the order of the page.
	Tables []Table `json:"tables"`
	Plots  []Plot  `json:"plots,omitempty"`
	// Targets are what was aimed at.
	Targets []Target `json:"targets,omitempty"`
	// Notes are sentences about how it was measured and what was not, each ends with a full stop.
	Notes []string `json:"notes,omitempty"`
}

// Machine is where it was measured.
type Machine struct {
	// CPU is the processor's model, Processors how many there are.
	CPU        string `json:"cpu"`
	Processors int    `json:"processors"`
	// Memory is in bytes.
	Memory int64 `json:"memoryBytes"`
	// Kernel and Go are versions.
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	// Load is the load of the last minute before the bench began.
	Load float64 `json:"load"`
	// Date is the day, YYYY-MM-DD.
	Date string `json:"date"`
}

// Table is a table of the report. Its cells are as they are to be read, with units.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Plot is a drawing of lines.
type Plot struct {
	// Name is that of its file, without the bench and the extension: lower case and dashes.
	Name  string `json:"name"`
	Title string `json:"title"`
	// X and Y say what the axes show, with units.
	X string `json:"x"`
	Y string `json:"y"`
	// LogX and LogY make an axis logarithmic: all its values are more than 0.
	LogX   bool     `json:"logX,omitempty"`
	LogY   bool     `json:"logY,omitempty"`
	Series []Series `json:"series"`
}

// Series is one line of a plot.
type Series struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
}

// Point is one point of a line.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Target is what was aimed at, and what came out.
type Target struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
}
