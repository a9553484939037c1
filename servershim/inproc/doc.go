// Package inproc puts the health shim into a program that embeds an etcd server,
// on etcd's own client port.
//
//	cfg := embed.NewConfig()
//	shim, err := inproc.Attach(cfg, servershim.Config{})
//	e, err := embed.StartEtcd(cfg)
//	err = shim.Start(e)
//	...
//	shim.Drain() // then some seconds for clients to leave
//	e.Close()
//	shim.Close()
//
// etcd registers grpc.health.v1 itself, and registering it twice ends the
// process. So the services of package healthsvc come in by interceptors, which
// answer for their names in Check, Watch and List and pass everything else on;
// the empty name stays etcd's. They work on plain and TLS listeners. [Shim.Serve]
// answers the same on a listener of its own, where the empty name means
// etcd.serving.
//
// Until Start, and until etcd is ready, every service is NOT_SERVING with reason
// starting; etcd.live is SERVING.
//
// # The end
//
// An open Watch stream would keep etcd's Close waiting for its whole request
// timeout of 7 s. So the shim ends its streams the moment that etcd begins to
// stop, whatever began it: Close of the embed.Etcd, a stop of the server, or its
// removal from the cluster. For that it uses Config.ServiceRegister; one that was
// set before Attach is called first. One that is set after Attach replaces it, and
// Close waits again.
//
// # Concurrency
//
// All methods of Shim may be called from any goroutine. Close waits for all that
// the shim started, but no longer than a second for etcd where that itself closes.
//
// # Limits
//
// A learner's etcd refuses every health call on its own port, ours included:
// clients see FailedPrecondition. On a listener of its own the shim answers for
// learners as well, with reason learner.
package inproc
