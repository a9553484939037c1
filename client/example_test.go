package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumwise/quorumwise/client"
	"github.com/quorumwise/quorumwise/e2e/fakeetcd"
)

// The client is made and used as the official one.
func ExampleNew() {
	cluster := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}) // stands in for yours
	defer cluster.Close()

	cli, err := client.New(client.Config{Config: clientv3.Config{
		Endpoints:   cluster.Endpoints(),
		DialOptions: cluster.DialOptions(), // not needed for a real cluster
	}, Health: client.Health{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cli.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = cli.Put(ctx, "greeting", "hello")
	if client.IsOutcomeUnknown(err) {
		// It was sent to a member that was then given up: read before you repeat it.
		fmt.Println("may have been written:", err)
	}
	resp, err := cli.Get(ctx, "greeting")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", resp.Kvs[0].Value)
	// Output: hello
}

// Code that calls clientv3.New itself adds the parts to its configuration.
func ExampleAttach() {
	cluster := fakeetcd.New(3, fakeetcd.Options{Shim: fakeetcd.ShimSidecar}) // stands in for yours
	defer cluster.Close()

	cfg := clientv3.Config{Endpoints: cluster.Endpoints(), DialOptions: cluster.DialOptions()}
	att, err := client.Attach(&cfg, client.Health{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer att.Close()
	cli, err := clientv3.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cli.Close()

	if _, err := cli.Put(context.Background(), "k", "v"); err != nil {
		fmt.Println(err)
		return
	}
	for len(att.Health().Endpoints) == 0 { // for a moment nothing is known yet
		time.Sleep(time.Millisecond)
	}
	for _, e := range att.Health().Endpoints {
		fmt.Println(e.Address)
	}
	// Output:
	// fake-1:2379
	// fake-2:2379
	// fake-3:2379
}

// A call that had to leave its member says which, why and since when.
func ExampleMovedError() {
	var err error = &client.MovedError{
		Endpoint: "10.0.0.1:2379", Member: 0x8e9e05c52164694d, Reason: "no-quorum", After: 310 * time.Millisecond,
		Method: "/etcdserverpb.KV/Put", Mutation: true, Sent: true,
	}
	var moved *client.MovedError
	if errors.As(err, &moved) && client.IsOutcomeUnknown(err) {
		fmt.Println(moved.Endpoint, moved.Reason)
	}
	// Output: 10.0.0.1:2379 no-quorum
}
