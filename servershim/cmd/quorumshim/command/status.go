package command

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quorumwise/quorumwise/servershim/sidecar"
)

// statusFlags are what status was asked.
type statusFlags struct {
	endpoints         string
	shimPort          uint16
	cacert, cert, key string
	timeout           time.Duration
	output            string
}

func newStatusCommand() *cobra.Command {
	var s statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Ask the shims of all members; exit with 0 only if a majority of the voters is serving",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asked, err := s.targets()
			if err != nil {
				return err
			}
			printer, err := s.printer()
			if err != nil {
				return err
			}
			cluster := judge(askAll(cmd.Context(), asked, s.timeout))
			if err := printer(cmd.OutOrStdout(), cluster); err != nil {
				return err
			}
			for _, line := range cluster.warnings() {
				fmt.Fprintln(cmd.ErrOrStderr(), "quorumshim:", line)
			}
			return cluster.err()
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.endpoints, "endpoints", "127.0.0.1:2379", "client URLs of all members, with commas between them")
	f.Uint16Var(&s.shimPort, "shim-port", 2378, "port of the shims on the members' hosts")
	f.StringVar(&s.cacert, "cacert", "", "roots by which to verify shims and members, PEM (default: the system's)")
	f.StringVar(&s.cert, "cert", "", "client certificate, PEM")
	f.StringVar(&s.key, "key", "", "key of --cert, PEM")
	f.DurationVar(&s.timeout, "command-timeout", 5*time.Second, "how long to wait for answers, more than 0")
	f.StringVarP(&s.output, "write-out", "w", "table", "table or json")
	return cmd
}

// target is one endpoint to be asked about.
type target struct {
	endpoint string // as the user wrote it
	shim     string // address of the shim beside it; empty where there can be none
	etcd     string // address of etcd itself, for a shim in its process
	creds    credentials.TransportCredentials
}

// targets reads the endpoints. All speak TLS or none does: one set of files is for all of them, and
// a mixture is most often a scheme left out.
func (s statusFlags) targets() ([]target, error) {
	switch {
	case s.timeout <= 0:
		return nil, fmt.Errorf("--command-timeout %v: no time to answer in: give for example 5s", s.timeout)
	case s.key != "" && s.cert == "":
		return nil, fmt.Errorf("--key %s: a key without its certificate: give --cert too", s.key)
	case s.cert != "" && s.key == "":
		return nil, fmt.Errorf("--cert %s: a certificate without its key: give --key too", s.cert)
	case s.shimPort == 0:
		return nil, fmt.Errorf("--shim-port 0: no port: want 1 to 65535, 2378 is usual")
	}
	withFiles := s.cacert != "" || s.cert != ""
	var targets []target
	var tls []bool
	for _, one := range strings.Split(s.endpoints, ",") {
		one = strings.TrimSpace(one)
		endpoint, err := sidecar.ParseEndpoint("endpoints", one, withFiles)
		if err != nil {
			return nil, err
		}
		for i, earlier := range targets {
			if earlier.etcd == endpoint.Target {
				return nil, fmt.Errorf("--endpoints %q: the same as %q: name each member once, they are counted", one, targets[i].endpoint)
			}
		}
		if len(tls) > 0 && endpoint.TLS != tls[0] {
			return nil, fmt.Errorf("--endpoints %q: %s, but %q: %s: give all of them the same scheme", one, spoken(endpoint.TLS), targets[0].endpoint, spoken(tls[0]))
		}
		tls = append(tls, endpoint.TLS)
		targets = append(targets, target{endpoint: one, etcd: endpoint.Target, shim: s.beside(endpoint.Target)})
	}
	if withFiles && !tls[0] {
		return nil, fmt.Errorf("--endpoints %q: plain text, but --cacert or --cert is given: write https, or leave the files out", targets[0].endpoint)
	}
	return targets, s.secure(targets, tls[0])
}

func spoken(tls bool) string {
	if tls {
		return "TLS"
	}
	return "plain text"
}

// beside returns the address of the shim on the host of that address.
func (s statusFlags) beside(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil || strings.HasPrefix(address, "unix:") {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(int(s.shimPort)))
}

func (s statusFlags) secure(targets []target, tls bool) error {
	creds := insecure.NewCredentials()
	if tls {
		var err error
		if creds, err = sidecar.ClientCredentials(s.cacert, s.cert, s.key, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
	}
	for i := range targets {
		targets[i].creds = creds
	}
	return nil
}

func (s statusFlags) printer() (func(io.Writer, clusterStatus) error, error) {
	switch s.output {
	case "table":
		return printTable, nil
	case "json":
		return printJSON, nil
	default:
		return nil, fmt.Errorf("--write-out %s: no such format: want table or json", s.output)
	}
}
