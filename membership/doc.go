// Package membership knows what an etcd cluster is made of: members, voters and
// learners, a leader, a term. It holds three things.
//
//   - [Observation], what one member says of itself, and [Merge], which makes a
//     [View] of the cluster out of several members' observations.
//   - [Remote], a source of proofs and observations over the etcd API, with
//     nothing but the API's own stubs. Package membership/inproc is the same for
//     a program that embeds an etcd server.
//   - The errors by which the two tell apart a member that has no quorum from
//     something that is no member at all.
//
// A proof is a completed linearizable read ([Remote.Prove]). Everything else is
// answered by the member alone and stays green while it is cut off.
//
// # Concurrency
//
// Merge and the parsers are pure functions. A Remote may be used by any number
// of goroutines; it starts none of its own, and every call ends when its context
// does: it has no timeout of its own. Values returned are the caller's.
//
// # What may not be assumed
//
// That an observation is true, complete or recent: see [Observation]. That
// ClientURLs of a member list can be dialled: they are claims. That an
// error's text is stable: decide with errors.Is on the sentinels here.
package membership
