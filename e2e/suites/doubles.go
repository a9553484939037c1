package suites

// doubles are two faults at once.
func doubles() []Scenario { return nil }
