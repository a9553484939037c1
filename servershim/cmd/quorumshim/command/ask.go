package command

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/quorumwise/quorumwise/healthsvc"
)

// via says who answered for an endpoint.
type via string

const (
	viaShim      via = "shim"       // the sidecar beside it
	viaInProcess via = "in-process" // a shim in etcd's own process
	viaNobody    via = "none"       // something answers on etcd's port, but no shim anywhere
	viaSilence   via = ""           // nothing answers
)

// answer is what is known of one endpoint.
type answer struct {
	endpoint string
	via      via
	news     healthsvc.News
}

// askAll asks about all targets at once; the answers are in their order.
func askAll(ctx context.Context, targets []target, timeout time.Duration) []answer {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers := make([]answer, len(targets))
	var asking sync.WaitGroup
	for i, t := range targets {
		asking.Go(func() { answers[i] = t.ask(ctx) })
	}
	asking.Wait()
	return answers
}

// ask asks both places where a shim can be, at once: the wrong one may be a port that swallows
// everything, and would cost all of the time.
func (t target) ask(ctx context.Context) answer {
	var beside, inside healthsvc.News
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var asking sync.WaitGroup
	if t.shim != "" {
		asking.Go(func() {
			if beside = askOne(ctx, t.shim, t.creds); known(beside) {
				enough()
			}
		})
	}
	asking.Go(func() {
		// An etcd without a shim answers too, so only a shim's answer ends the other question.
		if inside = askOne(ctx, t.etcd, t.creds); known(inside) {
			enough()
		}
	})
	asking.Wait()
	return t.choose(beside, inside)
}

func (t target) choose(beside, inside healthsvc.News) answer {
	switch {
	case known(beside):
		return answer{t.endpoint, viaShim, beside}
	case known(inside):
		return answer{t.endpoint, viaInProcess, inside}
	case inside.Status == healthsvc.StatusAbsent:
		if t.shim != "" { // more to the point than etcd's "unknown service"
			inside.Err = fmt.Errorf("no shim at %s: %w", t.shim, beside.Err)
		}
		return answer{t.endpoint, viaNobody, inside}
	default:
		return answer{t.endpoint, viaSilence, inside}
	}
}

func known(n healthsvc.News) bool {
	return n.Status == healthsvc.StatusServing || n.Status == healthsvc.StatusNotServing
}

func askOne(ctx context.Context, address string, creds credentials.TransportCredentials) healthsvc.News {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds), grpc.WithNoProxy(), grpc.WithDisableServiceConfig())
	if err != nil {
		return healthsvc.News{Err: err}
	}
	defer conn.Close()
	return healthsvc.Ask(ctx, conn, healthsvc.ServiceServing)
}
