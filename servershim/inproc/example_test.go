package inproc_test

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/servershim"
	"github.com/quorumwise/quorumwise/servershim/inproc"
)

// A program that embeds etcd answers the health services on etcd's own port.
func Example() {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel = dir, "panic"
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = anyPort, anyPort
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = anyPort, anyPort
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs = 10, 100

	shim, err := inproc.Attach(cfg, servershim.Config{
		ElectionTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	defer shim.Close()
	if err := shim.Start(e); err != nil {
		fmt.Println(err)
		return
	}
	r := shim.Report()
	for ; !r.Serving || !r.Leads; r = shim.Report() {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("quorum:", r.Quorum, "voter:", r.Voter, "leads:", r.Leads)
	shim.Drain()
	for ; r.Reason != healthsvc.ReasonDraining; r = shim.Report() {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("reason:", r.Reason)
	// Output:
	// quorum: true voter: true leads: true
	// reason: draining
}
