//go:build linux

package app

import (
	"strings"
	"testing"
	"time"
)

func TestAConfigurationThatCannotWorkIsRefusedByName(t *testing.T) {
	good := Config{Name: "ours", Endpoints: []string{"10.0.0.1:2379"}}
	if err := good.withDefaults().check(); err != nil {
		t.Errorf("a name and endpoints are enough, got %v", err)
	}
	for field, spoil := range map[string]func(*Config){
		"Name":           func(c *Config) { c.Name = "" },
		"Endpoints":      func(c *Config) { c.Endpoints = nil },
		"LeaseTTL":       func(c *Config) { c.LeaseTTL = 1500 * time.Millisecond },
		"RequestTimeout": func(c *Config) { c.RequestTimeout = -time.Second },
	} {
		c := good
		spoil(&c)
		if err := c.withDefaults().check(); err == nil || !strings.Contains(err.Error(), "Config."+field) {
			t.Errorf("a bad %s: %v; want an error that names it", field, err)
		}
	}
}

func TestWatchesOfEveryKindAreWanted(t *testing.T) {
	c := Config{Name: "ours", Watches: true, Big: time.Second, ManyWatchers: 25}
	streams, kinds := make(map[string]int), make(map[string]int)
	for _, w := range c.wanted() {
		if w.stream == "" {
			w.stream = w.name
		}
		streams[w.stream]++
		for kind, is := range map[string]bool{
			"no puts": w.noPuts, "no deletes": w.noDels, "previous": w.prevKV, "fragments": w.fragment,
			"one key": w.end() == "", "range": w.end() != "", "reference": strings.HasPrefix(w.key, eventPrefix),
		} {
			if is {
				kinds[kind]++
			}
		}
	}
	for _, kind := range []string{"no puts", "no deletes", "previous", "fragments", "one key", "range", "reference"} {
		if kinds[kind] == 0 {
			t.Errorf("no watch of the kind %q", kind)
		}
	}
	if streams["shared"] < 5 || streams["plain"] != 1 || streams["many-0"] != 10 || streams["many-2"] != 5 {
		t.Errorf("watches by stream: %v; want several on shared ones, ten on those of many, and some alone", streams)
	}
}
