package picker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver/manual"

	"github.com/quorumwise/quorumwise/picker"
)

// A connection to two members; calls go to the one that is graded healthy, and
// a stream on the other is moved by ending it.
func Example() {
	members := newFleet(exampleT, 2)
	defer exampleT.cleanUp()

	hub := picker.NewHub()
	defer hub.Close()
	hub.SetMain([]string{"m1:2379", "m2:2379"})
	hub.SetGrades(map[string]picker.Grade{"m1:2379": picker.Healthy, "m2:2379": picker.Unhealthy})

	endpoints := manual.NewBuilderWithScheme("example")
	endpoints.InitialState(stateOf([]string{"m1:2379", "m2:2379"}))
	conn, err := grpc.NewClient("example:///",
		grpc.WithResolvers(endpoints),
		grpc.WithContextDialer(members.dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":`+hub.LoadBalancingConfig()+`}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()

	ctx, call := hub.Begin(context.Background(), picker.ClassWatch, pb.Watch_Watch_FullMethodName)
	defer call.Finish()
	stream, err := pb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("watching at", call.Address())

	hub.SetGrades(map[string]picker.Grade{"m1:2379": picker.Unhealthy, "m2:2379": picker.Healthy})
	for _, c := range hub.Calls("m1:2379") {
		c.End(errors.New("m1 lost its quorum"))
	}
	_, err = stream.Recv()
	fmt.Println("stream broken:", err != nil, "because:", call.Cause())

	ctx, again := hub.Begin(context.Background(), picker.ClassWatch, pb.Watch_Watch_FullMethodName)
	defer again.Finish()
	if _, err := pb.NewWatchClient(conn).Watch(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("watching at", again.Address())
	// Output:
	// watching at m1:2379
	// stream broken: true because: m1 lost its quorum
	// watching at m2:2379
}

// exampleT lets an example use what tests use.
var exampleT = &cleanups{}

type cleanups struct {
	testing.TB
	all []func()
}

func (c *cleanups) Cleanup(f func()) { c.all = append(c.all, f) }

func (c *cleanups) cleanUp() {
	for i := len(c.all) - 1; i >= 0; i-- {
		c.all[i]()
	}
}
