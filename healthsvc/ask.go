package healthsvc

import (
	"context"
	"time"

	"google.golang.org/grpc"
)

// Ask asks once, and tells what Follow would tell after its first poll; it waits for an answer until
// ctx ends, and for a connection in the making with it. It has no timeout of its own: give ctx a
// deadline. An empty service is etcd.serving; conn must not be nil. A failure is in the Err of the
// news.
func Ask(ctx context.Context, conn grpc.ClientConnInterface, service string) News {
	cfg, _ := FollowConfig{Service: service, Tell: func(News) {}}.withDefaults() // nothing in it can be wrong
	began := time.Now()
	f, l := newFollower(cfg, newRand(), began), newListener(conn, cfg.Service)
	in := l.ask(ctx)
	in.poll = f.wake(began, began).poll
	f.answered(time.Now(), in)
	return f.news
}
