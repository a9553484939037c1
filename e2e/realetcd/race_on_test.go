//go:build linux && race

package realetcd

// raceEnabled: the race detector multiplies what code costs.
const raceEnabled = true
