//go:build linux

package realetcd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"

	"github.com/quorumwise/quorumwise/servershim"
	"github.com/quorumwise/quorumwise/servershim/inproc"
)

// drainTime is how long a stopping shim says that it is draining: time for clients to leave (their
// budget is 0.8 s), and no more, since every restart pays it.
const drainTime = time.Second

// embeddedFlags are those of the in-process kind beside etcd's own.
type embeddedFlags struct {
	arrivals string // file
	admin    string // host:port of a server for the harness
	harness  string // IP address, never refused
}

func (f embeddedFlags) arguments() []string {
	return []string{"--harness-arrivals=" + f.arrivals, "--harness-listen=" + f.admin, "--harness-address=" + f.harness}
}

// parseEmbedded reads the flags that settings.arguments writes for the version in go.mod, and any
// others of etcd that need no work of its command's beyond parsing.
func parseEmbedded(args []string) (*embed.Config, embeddedFlags, error) {
	var own embeddedFlags
	cfg := embed.NewConfig()
	fs := flag.NewFlagSet(memberProgram, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error says it; the defaults of all flags are of no use
	fs.Usage = func() {}
	cfg.AddFlags(fs)
	fs.StringVar(&cfg.ClusterState, "initial-cluster-state", cfg.ClusterState, "")
	fs.StringVar(&own.arrivals, "harness-arrivals", "", "")
	fs.StringVar(&own.admin, "harness-listen", "", "")
	fs.StringVar(&own.harness, "harness-address", "", "")
	if err := fs.Parse(args); err != nil {
		return nil, own, err
	}
	for name, urls := range map[string]*[]url.URL{
		"listen-peer-urls": &cfg.ListenPeerUrls, "initial-advertise-peer-urls": &cfg.AdvertisePeerUrls,
		"listen-client-urls": &cfg.ListenClientUrls, "advertise-client-urls": &cfg.AdvertiseClientUrls,
	} {
		var err error
		if *urls, err = parseURLs(fs.Lookup(name).Value.String()); err != nil {
			return nil, own, fmt.Errorf("--%s: %w", name, err)
		}
	}
	cfg.LogOutputs = strings.Split(fs.Lookup("log-outputs").Value.String(), ",")
	fs.Visit(func(f *flag.Flag) { cfg.FlagsExplicitlySet[f.Name] = true })
	return cfg, own, nil
}

func parseURLs(list string) ([]url.URL, error) {
	var urls []url.URL
	for text := range strings.SplitSeq(list, ",") {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		urls = append(urls, *u)
	}
	return urls, nil
}

// runEmbedded is the in-process kind: etcd with the shim inside, until SIGTERM or until the member
// is removed from its cluster.
func runEmbedded(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // from then on a signal ends the process
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg, own, err := parseEmbedded(args)
	if err == nil {
		err = serveEmbedded(ctx, cfg, own, log)
	}
	if err != nil {
		log.Error("member ended", "error", err)
		return 1
	}
	return 0
}

func serveEmbedded(ctx context.Context, cfg *embed.Config, own embeddedFlags, log *slog.Logger) error {
	arrivals, err := openArrivals(own.arrivals)
	if err != nil {
		return err
	}
	defer arrivals.close()
	gate := &refusal{harness: own.harness}
	cfg.GRPCAdditionalServerOptions = append(cfg.GRPCAdditionalServerOptions,
		grpc.ChainUnaryInterceptor(gate.unary, arrivals.unary), grpc.ChainStreamInterceptor(gate.stream))
	admin, err := net.Listen("tcp", own.admin)
	if err != nil {
		return err
	}
	defer admin.Close()
	go http.Serve(admin, gate) // ends with the process at the latest

	shim, err := inproc.Attach(cfg, servershim.Config{Logger: log})
	if err != nil {
		return err
	}
	defer shim.Close()
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := shim.Start(e); err != nil {
		return err
	}
	select {
	case err := <-e.Err():
		return err
	case <-e.Server.StopNotify():
		return nil // removed from its cluster
	case <-ctx.Done():
	}
	shim.Drain()
	select {
	case <-time.After(drainTime):
	case <-e.Server.StopNotify():
	}
	return nil
}

var errNotInProcess = errors.New("realetcd: only a running member with the in-process kind of shim can do that")
