package list

import (
	"fmt"
	"io"
	"time"

	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// document is what list says, for scripts.
type document struct {
	// Time is the server's, at which all of it was so.
	Time time.Time `json:"time"`
	// Items are sorted as the lines are.
	Items []Row `json:"items"`
	// Notes say what could not be found out.
	Notes []string `json:"notes,omitempty"`
}

// writeName writes the name of a TrainJob as kubectl takes it.
func writeName(out io.Writer, row *Row) error {
	_, err := fmt.Fprintf(out, "trainjob.%s/%s\n", trainer.GroupVersion.Group, row.Name)
	return err
}
