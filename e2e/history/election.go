package history

import "time"

// CheckElections judges leaderships. bound is how long an election may stand without
// a leader while somebody campaigns.
func CheckElections(reigns []Reign, truth Truth, bound time.Duration) []string { return nil }
