// Command quorumshim says of one etcd member, over the standard gRPC health service, what the
// member cannot say of itself: whether it has a quorum.
//
//	quorumshim serve --etcd-endpoint http://127.0.0.1:2379 --listen 0.0.0.0:2378
//	quorumshim status --endpoints a:2379,b:2379,c:2379
//
// serve runs beside a member until SIGTERM, then answers NOT_SERVING for the drain time and exits;
// a second SIGTERM exits at once. status asks the shims of all members and exits with 0 only if a
// majority of the voters is serving; endpoints of another cluster than most are shown, named on
// stderr, and not counted. Each flag can be given in the environment as well, --etcd-endpoint as
// QUORUMSHIM_ETCD_ENDPOINT; the flag wins.
package main

import (
	"os"

	"github.com/quorumwise/quorumwise/servershim/cmd/quorumshim/command"
)

func main() { os.Exit(command.Run(os.Args[1:])) }
