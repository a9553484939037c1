// Package healthsvctest is the conformance suite of the health services.
package healthsvctest

import (
	"testing"

	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// Run puts a server of the contract through the suite.
func Run(t *testing.T, newServer func(t *testing.T) (conn grpc.ClientConnInterface, publish func(healthsvc.Report))) {
}
