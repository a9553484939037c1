// Package client is the official etcd client that does not get stuck: it
// leaves a member which is cut off from its quorum, frozen or unreachable
// before the application's own request times out, and takes its watches,
// leases and calls along.
//
//	cli, err := client.New(client.Config{Config: clientv3.Config{Endpoints: eps}})
//
// [Client] embeds *clientv3.Client, so everything that takes one (recipes,
// wrappers, libraries) keeps working. Code that calls clientv3.New itself uses
// [Attach] on its configuration instead. Both add a load-balancing policy, two
// interceptors, a retry policy for idempotent methods and keepalive settings;
// the API client stays the official one.
//
// # What happens to a call on a member that is given up
//
//   - A member that stops proving its quorum is suspect at once: no new call
//     goes to it, and reads in flight are sent again to another member.
//   - If that lasts (300 ms) while another member proves its quorum, it is
//     unhealthy: lease streams move first, then watches, spread over 100 ms.
//     A watch resumes at its revision; clientv3 sees an Unavailable stream.
//   - A mutation that had been sent is never sent again. It ends with a
//     [MovedError], and [IsOutcomeUnknown] says that it may or may not happen.
//     So does one that was ended with Canceled or DeadlineExceeded while its caller
//     still waits, with a [CallError]; clientv3 would send it again. (One that an
//     avoided member had no leader for until its own timeout did nothing, and goes on.)
//   - If no other member is better, nothing moves: an election on healthy
//     members costs nobody a stream.
//   - A keepalive that stays unanswered reopens its lease stream at another
//     member, whatever the grade of this one.
//   - What is in flight on an endpoint that is taken out (SetEndpoints, Sync)
//     moves too; a mutation first gets two election timeouts for its answer.
//
// With no evidence (no shims, nothing heard yet) the client behaves as
// clientv3 with round_robin.
//
// # Concurrency
//
// All methods may be called from many goroutines. [Client.Health] returns an
// immutable snapshot. One goroutine per client owns what moves; the probes are
// shared by all clients of the process that probe the same target with the
// same credentials and dial options. Close returns within a second and leaves
// no goroutine.
//
// # Limits
//
// One [Attachment] serves one clientv3.Client. Dial options in the
// configuration (dialers, interceptors) are used for the probes too, and cannot
// be looked into: keepalive parameters given there are not checked. An endpoint
// is one member: behind a name with several addresses, or a load balancer, the
// probe and the calls may end at different ones. A lease grant or revoke, or a
// MoveLeader, that ends with Unavailable, such as by a broken connection, and not in a
// move, is repeated by clientv3 itself.
// An error at a deadline is context.DeadlineExceeded by errors.Is, not by ==,
// when there is something to say about the member. Connections that clientv3
// makes to a single endpoint (Maintenance, Dial) are left alone, but for their end:
// like the main one they are cut half a second after their own Close.
package client
