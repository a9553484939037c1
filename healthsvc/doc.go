// Package healthsvc is the contract by which the health of an etcd member is published and
// followed: service names, identity headers and reasons on top of the standard grpc.health.v1, the
// server for one member, and the follower that clients use.
//
// # The contract
//
// A server answers Check, Watch and List for the names in [Services]. Each is SERVING or
// NOT_SERVING, never unknown; a name outside the contract is NotFound to Check and SERVICE_UNKNOWN
// to Watch, on a stream that stays open. Every answer carries the headers named by the Header
// constants, those of Watch once, at its begin. Any gRPC health client, in any language, understands
// the statuses; the headers are there for those who want to know who speaks, since when, and why.
//
// [ServiceLive] is SERVING for as long as the server runs, whatever is published. Everything else
// is NOT_SERVING until somebody publishes a report that says otherwise.
//
// # Server
//
// [Server] holds one [Report], replaced whole by [Server.Publish]; statuses and headers of one answer
// are always those of one report. With [ServerOptions].Validity it stops repeating a report that
// has become too old. Beside etcd it is registered as any gRPC service; inside etcd's own process,
// where that name is taken, its two interceptors answer for the names of the contract and leave all
// others to etcd. [Server.Stop] must come before grpc's GracefulStop, which otherwise waits for
// the watchers for ever. All methods may be called from any goroutine, in any order.
//
// # Follower
//
// [Follow] tells what is known of one service at one server. Bad news comes by Watch and counts at
// once; good news by Watch asks for a Check at once and counts when that agrees. Polls go on all the
// while, because a stream to a dead peer is merely silent: they prove the path, measure it, and
// keep the last status from expiring. A status that is not confirmed becomes [StatusUnknown].
//
// What may not be assumed: that a server which ends or refuses Watch has no such service (it is
// polled); that StatusAbsent is bad (it says only that nobody publishes); that an identity is
// complete, or that a reason is one of the listed ones.
//
// Limits: a server is polled at most every 50 ms however often it changes its mind or Nudge is
// used, and at least every 10 s while it has the service; one that has not is looked at less and
// less, down to once a minute. Watch streams that end are reopened after 100 ms to 5 s.
package healthsvc
