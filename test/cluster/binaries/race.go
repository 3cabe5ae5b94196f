//go:build race

package binaries

// raceEnabled says whether the calling program was built with -race.
const raceEnabled = true
