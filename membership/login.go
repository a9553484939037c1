package membership

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// asUser makes a call, and makes it again with a new token if the first was refused.
func (r *Remote) asUser(ctx context.Context, call func() error) error {
	err := call()
	if r.user.name == "" {
		return err
	}
	if errors.Is(err, ErrAuth) && r.relogin(ctx) {
		err = call()
	}
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.logins = pacing{}
	}
	return err
}

// relogin asks for a new token if it is time to, and reports whether it got one.
func (r *Remote) relogin(ctx context.Context) bool {
	r.mu.Lock()
	due := r.logins.due(time.Now())
	r.mu.Unlock()
	if !due {
		return false
	}
	err := r.login(ctx)
	if ctx.Err() != nil || status.Code(err) == codes.Unavailable {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.logins.unheard()
	}
	return err == nil
}

// login asks for a token. It needs consensus, so only calls that may fail for
// want of it wait for it.
func (r *Remote) login(ctx context.Context) error {
	resp, err := r.auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: r.user.name, Password: r.user.password})
	if err != nil {
		return explain(ctx, r.address, "login of user "+r.user.name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token = resp.GetToken()
	return nil
}

func (r *Remote) withToken(ctx context.Context) context.Context {
	r.mu.Lock()
	token := r.token
	r.mu.Unlock()
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token)
}

const (
	loginFirst = time.Second // least time between two logins while none has helped
	loginLast  = time.Minute // the same once many have not
)

// pacing keeps logins that do not help from being repeated with every
// observation. The check of a password costs a member more than all
// observations together, a wrong one also a line in its log, and a right one a
// proposal. Zero: the last login helped, or there was none.
type pacing struct {
	next  time.Time
	pause time.Duration
}

// due reports whether a login may begin now; the next one has to wait, longer each time.
func (p *pacing) due(now time.Time) bool {
	if now.Before(p.next) {
		return false
	}
	p.pause = min(max(2*p.pause, loginFirst), loginLast)
	p.next = now.Add(p.pause)
	return true
}

// unheard takes in that a login was not answered: that is the member's trouble
// with its peers, and will pass.
func (p *pacing) unheard() { p.pause = 0 }
