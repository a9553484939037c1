//go:build linux && !race

package realetcd

const raceEnabled = false
