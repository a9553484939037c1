package servershim

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quorumwise/quorumwise/healthsvc"
	"github.com/quorumwise/quorumwise/membership"
)

// publish tells the world what was decided. The loop owns it; newest may be read
// by anyone.
type publish struct {
	srv     *healthsvc.Server
	log     *slog.Logger
	metrics *metrics
	newest  atomic.Pointer[healthsvc.Report]
}

func (p *publish) report(r healthsvc.Report, window time.Duration) {
	before := *p.newest.Load()
	p.srv.Publish(r)
	p.newest.Store(&r)
	p.metrics.publish(r, window, p.srv.Watchers())
	if before.Serving == r.Serving && before.Reason == r.Reason {
		return
	}
	p.metrics.changes.WithLabelValues(string(r.Reason)).Inc()
	p.log.LogAttrs(context.Background(), level(r), "verdict changed",
		slog.String("member", membership.ID(r.Member).String()),
		slog.String("before", word(before)),
		slog.String("after", word(r)),
		slog.String("why", why(r)),
		slog.String("leader", membership.ID(r.Leader).String()),
		slog.Uint64("term", r.Term),
		slog.Duration("window", window),
		slog.Duration("rtt", r.RoundTrip),
	)
}

func level(r healthsvc.Report) slog.Level {
	if r.Serving {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

func word(r healthsvc.Report) string {
	if r.Serving {
		return "serving"
	}
	return "not serving"
}

func why(r healthsvc.Report) string {
	if r.Reason == "" {
		return "quorum proved, local reads work"
	}
	return string(r.Reason)
}
