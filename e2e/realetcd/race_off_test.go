//go:build !race

package realetcd

const raceEnabled = false
