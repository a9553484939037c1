package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/quorumwise/quorumwise/picker"
)

// The retry policy is gRPC's own (gRFC A6): five attempts are its maximum.
// clientv3 repeats reads on top of it, so a read outlasts an election.
const (
	retryAttempts   = 5
	retryInitial    = "0.02s"
	retryMax        = "0.25s"
	retryMultiplier = 2
)

// Connection attempts: gRPC's defaults (20 s, backing off to 120 s) would keep
// a member that is back out of use for minutes.
const (
	connectTimeout    = 3 * time.Second
	connectBackoffMax = 3 * time.Second
)

type methodName struct {
	Service string `json:"service"`
	Method  string `json:"method"`
}

type retryPolicy struct {
	MaxAttempts          int      `json:"maxAttempts"`
	InitialBackoff       string   `json:"initialBackoff"`
	MaxBackoff           string   `json:"maxBackoff"`
	BackoffMultiplier    float64  `json:"backoffMultiplier"`
	RetryableStatusCodes []string `json:"retryableStatusCodes"`
}

type methodConfig struct {
	Name        []methodName `json:"name"`
	RetryPolicy retryPolicy  `json:"retryPolicy"`
}

// serviceConfig selects our policy and has gRPC retry the idempotent methods.
func serviceConfig(hub *picker.Hub) (string, error) {
	var names []methodName
	for service, methods := range idempotent {
		for _, method := range methods {
			names = append(names, methodName{service, method})
		}
	}
	slices.SortFunc(names, func(a, b methodName) int {
		if a.Service != b.Service {
			return cmp.Compare(a.Service, b.Service)
		}
		return cmp.Compare(a.Method, b.Method)
	})
	b, err := json.Marshal(struct {
		LoadBalancing json.RawMessage `json:"loadBalancingConfig"`
		Methods       []methodConfig  `json:"methodConfig"`
	}{
		json.RawMessage(fmt.Sprintf(`[{%q:{"hub":%q}}]`, policyName, hub.ID())), // as the hub's own, by our name
		[]methodConfig{{names, retryPolicy{retryAttempts, retryInitial, retryMax, retryMultiplier, []string{"UNAVAILABLE"}}}},
	})
	if err != nil {
		return "", fmt.Errorf("quorumwise: service config: %w", err)
	}
	return string(b), nil
}

// connectParams bounds how long a member that is back waits for a connection.
func connectParams() grpc.DialOption {
	b := backoff.DefaultConfig
	b.BaseDelay = 200 * time.Millisecond
	b.MaxDelay = connectBackoffMax
	return grpc.WithConnectParams(grpc.ConnectParams{Backoff: b, MinConnectTimeout: connectTimeout})
}
