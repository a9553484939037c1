package client

import (
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Client is the official client and what makes it leave bad members.
type Client struct {
	*clientv3.Client
	attachment *Attachment
}

// New makes a client. Like clientv3.New it does not wait for a connection: a
// member that is down, or all of them, does not fail it, and the first call
// waits for its own context. With Username and Password clientv3 logs in before
// it returns: New then waits for a member, as long as DialTimeout, or for ever.
//
// What [Attach] refuses is a *[ConfigError]; other errors are those of clientv3.New.
func New(cfg Config) (*Client, error) {
	att, err := Attach(&cfg.Config, cfg.Health)
	if err != nil {
		return nil, err
	}
	cli, err := clientv3.New(cfg.Config)
	if err != nil {
		att.Close()
		return nil, err
	}
	// The main connection is built before any that Maintenance or Dial make.
	att.main.Store(cli.ActiveConnection())
	cli.ActiveConnection().Connect()
	return &Client{Client: cli, attachment: att}, nil
}

// Health returns what is known of every endpoint now. It may have no endpoints
// for a moment after New, until the prober has taken them up.
func (c *Client) Health() *Snapshot { return c.attachment.Health() }

// Close ends the client, its streams, its probes and every goroutine, within a
// second unless OnMove blocks: a connection that its member does not read from is
// cut after half a second. The error is that of the official client's Close:
// nil, and context.Canceled when it was closed before.
func (c *Client) Close() error {
	err := c.Client.Close()
	c.attachment.Close()
	return err
}
