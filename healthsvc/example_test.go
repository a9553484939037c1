package healthsvc_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// A shim publishes, a client follows.
func ExampleFollow() {
	member := healthsvc.NewServer(healthsvc.ServerOptions{EmptyName: true})
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, member)
	listener := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(listener) }()
	defer server.GracefulStop()
	defer member.Stop()

	conn, err := grpc.NewClient("passthrough:///member-1",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	last := healthsvc.StatusUnknown
	err = healthsvc.Follow(ctx, conn, healthsvc.FollowConfig{Tell: func(n healthsvc.News) {
		if n.Status == last {
			return
		}
		last = n.Status
		switch {
		case n.Status == healthsvc.StatusServing:
			fmt.Printf("serving: member %x, leader %x, term %d\n", n.Identity.Member, n.Identity.Leader, n.Identity.Term)
			member.Publish(healthsvc.Report{Reason: healthsvc.ReasonDraining})
		case n.Reason == healthsvc.ReasonStarting:
			fmt.Println("not serving:", n.Reason)
			member.Publish(healthsvc.Report{
				Identity: healthsvc.Identity{Member: 0x8e9e05c52164694d, Leader: 0x8e9e05c52164694d, Term: 2},
				Serving:  true, Quorum: true, Leads: true, Read: true, Write: true, Voter: true,
			})
		default:
			fmt.Println("not serving any more")
			cancel()
		}
	}})
	fmt.Println(err)
	// Output:
	// not serving: starting
	// serving: member 8e9e05c52164694d, leader 8e9e05c52164694d, term 2
	// not serving any more
	// context canceled
}
