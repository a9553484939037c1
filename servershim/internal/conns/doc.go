// Package conns lets a gRPC server end in time. grpc's Stop and GracefulStop wait for connections
// in their handshake, for up to its ConnectionTimeout of two minutes, and close none of them:
// somebody who connects and says nothing would delay the end. A [Listener] closes them.
//
// All methods may be called from any goroutine.
package conns
