//go:build linux

package suites

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumwise/quorumwise/client"
)

// Without the end there is no telling whether all came.
func TestBystanderThatCannotAskForTheEndIsNotFine(t *testing.T) {
	cli, err := client.New(client.Config{Config: clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, Logger: zap.NewNop()}, Health: client.Health{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	b := &bystander{cli: cli, key: "/bystanders/0", stop: func() {}, end: func() {}}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	wrong, err := b.leave(ctx)
	if err != nil || !strings.HasPrefix(wrong, "the end is not known: ") {
		t.Errorf("%q, %v; want that the end is not known", wrong, err)
	}
}
