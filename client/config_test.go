package client

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestDefaultsScaleWithALongElectionTimeout(t *testing.T) {
	for _, tt := range []struct {
		election, poll, hold, overdue time.Duration
	}{
		{0, 500 * time.Millisecond, 300 * time.Millisecond, 800 * time.Millisecond},
		{500 * time.Millisecond, 500 * time.Millisecond, 300 * time.Millisecond, 800 * time.Millisecond},
		{3 * time.Second, 1500 * time.Millisecond, 900 * time.Millisecond, 2400 * time.Millisecond},
	} {
		h, err := Health{ElectionTimeout: tt.election}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		if h.Poll != tt.poll || h.Hold != tt.hold || h.KeepaliveOverdue != tt.overdue {
			t.Errorf("election timeout %v: poll %v, hold %v, overdue %v; want %v, %v, %v",
				tt.election, h.Poll, h.Hold, h.KeepaliveOverdue, tt.poll, tt.hold, tt.overdue)
		}
	}
}

func TestBadSettingsAreRefusedByName(t *testing.T) {
	for field, cfg := range map[string]Config{
		"Health.Poll":             {Health: Health{Poll: -1}},
		"Health.Hold":             {Health: Health{Hold: -time.Second}},
		"Health.ElectionTimeout":  {Health: Health{ElectionTimeout: time.Millisecond}},
		"Health.KeepaliveOverdue": {Health: Health{KeepaliveOverdue: time.Microsecond}},
		"PermitWithoutStream":     {Config: clientv3.Config{PermitWithoutStream: true}},
	} {
		cfg.Endpoints = []string{"localhost:2379"}
		_, err := New(cfg)
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("New with a bad %s: error %v, want a ConfigError that names it", field, err)
		}
	}
	if _, err := Attach(nil, Health{}); err == nil {
		t.Error("Attach(nil) succeeds")
	}
}

// A TTL that detection cannot save is warned about, with the numbers, once.
func TestShortTTLIsWarnedAboutOnceWithTheNumbers(t *testing.T) {
	var log bytes.Buffer
	w := &ttlWarner{logger: slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 {
		for _, ttl := range []int64{1, 2, 3, 5, 30} {
			w.look(ttl, 800*time.Millisecond)
		}
	}
	got := log.String()
	if n := strings.Count(got, "level=WARN"); n != 2 {
		t.Errorf("%d warnings for TTLs of 1, 2, 3, 5 and 30 s, want 2 (1 s and 2 s):\n%s", n, got)
	}
	for _, part := range []string{"ttl=2s", "needed=2.01", "overdue after"} {
		if !strings.Contains(got, part) {
			t.Errorf("the warning does not say %q:\n%s", part, got)
		}
	}
}
