package healthsvc

import (
	"context"
	"time"

	"google.golang.org/grpc"
)

// FollowConfig configures Follow. Only Tell is required.
type FollowConfig struct {
	Service string        // default etcd.serving
	Poll    time.Duration // time between polls, default 500 ms
	Timeout time.Duration // floor of one poll's deadline, default 150 ms
	Expire  time.Duration // silence after which a status is Unknown, default 3*Poll
	Tell    func(News)    // called in order, never twice at a time
	Nudge   <-chan struct{}
}

// Follow follows one service at one server until ctx ends, and returns ctx's error.
func Follow(ctx context.Context, conn grpc.ClientConnInterface, cfg FollowConfig) error {
	<-ctx.Done()
	return ctx.Err()
}
