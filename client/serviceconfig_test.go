package client

import (
	"encoding/json"
	"testing"

	"github.com/quorumwise/quorumwise/picker"
)

// gRPC retries what may be repeated and nothing else, and only when the member
// could not serve it.
func TestRetryPolicyNamesReadsOnly(t *testing.T) {
	hub := picker.NewHub()
	defer hub.Close()
	text, err := serviceConfig(hub)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		LoadBalancingConfig []map[string]json.RawMessage
		MethodConfig        []struct {
			Name        []struct{ Service, Method string }
			RetryPolicy struct {
				MaxAttempts          int
				RetryableStatusCodes []string
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if len(got.LoadBalancingConfig) != 1 || got.LoadBalancingConfig[0][policyName] == nil {
		t.Errorf("load balancing %v, want only the policy %q", got.LoadBalancingConfig, policyName)
	}
	names := 0
	for _, m := range got.MethodConfig {
		if m.RetryPolicy.MaxAttempts < 2 || len(m.RetryPolicy.RetryableStatusCodes) != 1 || m.RetryPolicy.RetryableStatusCodes[0] != "UNAVAILABLE" {
			t.Errorf("retry policy %+v, want several attempts on UNAVAILABLE only", m.RetryPolicy)
		}
		for _, n := range m.Name {
			names++
			if method := "/" + n.Service + "/" + n.Method; n.Method == "" || unaryClass(method, nil) != picker.ClassRead {
				t.Errorf("gRPC would retry %s, which is not a read", method)
			}
		}
	}
	if names < 5 {
		t.Errorf("%d methods are retried, want all reads: %s", names, text)
	}
}
