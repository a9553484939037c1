// Package e2e is where real clusters meet faults. Its tests play every scenario of
// package scenario:
//
//	go test ./e2e/            # one scenario for each mechanism
//	go test ./e2e/ -full      # all of them
//	go test ./e2e/ -run Scenarios/leader-cut -full
package e2e
