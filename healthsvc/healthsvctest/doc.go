// Package healthsvctest is the conformance suite of the health contract in package healthsvc. A
// server in whatever form or language keeps the contract if it passes:
//
//	func TestConformance(t *testing.T) {
//		healthsvctest.Run(t, func(t *testing.T) (grpc.ClientConnInterface, func(healthsvc.Report)) {
//			srv := startMyServer(t) // with clean-up by t.Cleanup
//			return srv.conn, srv.publish
//		})
//	}
//
// The suite speaks only gRPC to the server. It makes no use of time but to give up, so it also
// passes on slow machines; it may not be used inside a testing/synctest bubble, since it has
// subtests.
package healthsvctest
