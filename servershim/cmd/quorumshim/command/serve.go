package command

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumwise/quorumwise/servershim/sidecar"
)

func newServeCommand() *cobra.Command {
	var (
		cfg                 sidecar.Config
		election            = millis(time.Second)
		logLevel, logFormat string
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run beside one etcd member and publish its health",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(cmd.ErrOrStderr(), logLevel, logFormat)
			if err != nil {
				return err
			}
			cfg.Logger = log
			cfg.ElectionTimeout = time.Duration(election)
			if cfg.DrainTime == 0 {
				cfg.DrainTime = 1 // who says 0 wants no draining, not the default
			}
			cfg.User, cfg.Password = splitUser(cfg.User, cfg.Password)
			return sidecar.Serve(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.EtcdEndpoint, "etcd-endpoint", "127.0.0.1:2379", "client URL of the member beside this shim, http, https or unix; without a scheme https if --cacert or --cert is given")
	f.StringVar(&cfg.CACert, "cacert", "", "roots by which to verify etcd, PEM (default: the system's)")
	f.StringVar(&cfg.Cert, "cert", "", "client certificate towards etcd, PEM")
	f.StringVar(&cfg.Key, "key", "", "key of --cert, PEM")
	f.StringVar(&cfg.User, "user", "", "name:password, or name, of etcd's authentication; never needed for proofs")
	f.StringVar(&cfg.Password, "password", "", "password of --user")
	f.StringVar(&cfg.Listen, "listen", "localhost:2378", "host:port to serve the health services on")
	f.StringVar(&cfg.CertFile, "cert-file", "", "certificate to serve TLS with, PEM (default: plain text)")
	f.StringVar(&cfg.KeyFile, "key-file", "", "key of --cert-file, PEM")
	f.StringVar(&cfg.TrustedCAFile, "trusted-ca-file", "", "roots by which clients have to be certified, PEM; enables --client-cert-auth")
	f.BoolVar(&cfg.ClientCertAuth, "client-cert-auth", false, "let in only clients with a certificate of --trusted-ca-file")
	f.StringVar(&cfg.MetricsListen, "metrics-listen", "", "host:port to serve /metrics on, quorumshim_* and those of the process (default: none)")
	f.DurationVar(&cfg.Interval, "proof-interval", 0, "time between two proofs of quorum, 10ms to half of --window (default: a tenth of --election-timeout, at least 100ms, at most half of --window)")
	f.DurationVar(&cfg.WindowFloor, "window", 0, "least age of the newest proof at which quorum is called lost, up to --election-timeout (default: a quarter of that, at least 250ms)")
	f.Var(&election, "election-timeout", "that of etcd, 100ms to 50s, with a unit or in milliseconds")
	f.DurationVar(&cfg.DrainTime, "drain-time", 5*time.Second, "how long to go on answering, NOT_SERVING, after SIGTERM; at most 10m")
	f.StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&logFormat, "log-format", "text", "text or json")
	return cmd
}

// splitUser reads etcdctl's --user name:password. A --password of its own leaves colons to the name.
func splitUser(user, password string) (string, string) {
	if name, rest, ok := strings.Cut(user, ":"); ok && password == "" {
		return name, rest
	}
	return user, password
}

func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var opts slog.HandlerOptions
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %s: no such level: want debug, info, warn or error", level)
	}
	opts.Level = l
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, &opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, &opts)), nil
	default:
		return nil, fmt.Errorf("--log-format %s: no such format: want text or json", format)
	}
}
