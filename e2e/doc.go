// Package e2e is where real clusters meet faults. Its tests play the scenarios of package
// scenario, in one process, and those of package suites, on hosts of their own:
//
//	go test ./e2e/ -timeout 30m                # one scenario for each mechanism, of both
//	go test ./e2e/ -timeout 4h -full           # all of them
//	go test ./e2e/ -run Scenarios/leader-cut -full
//	go test ./e2e/ -run Partitions/matrix/leader-cut -full -report report -seed 7
//
// Hosts need Linux, permission to make namespaces, ip and nft; where they cannot be had,
// TestPartitions is skipped and says why, or fails with -lab=required. The same suites
// with an etcd binary of your own, a list and progress: go run ./e2e/partition.
package e2e
