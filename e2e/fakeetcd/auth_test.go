package fakeetcd

import (
	"errors"
	"testing"

	"google.golang.org/grpc/metadata"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestOfficialClientGetsANewTokenWhenItsOwnIsForgotten(t *testing.T) {
	inBubble(t, Options{User: "root", Password: "pw"}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		for range 2 {
			for range 3 {
				if _, err := cli.Put(soon(t), "k", "v"); err != nil {
					t.Errorf("Put: %v", err)
				}
			}
			c.InvalidateTokens()
		}
		if n := len(c.Requests("Authenticate")); n != 2 {
			t.Errorf("%d tokens were asked for, want one at the start and one after they were forgotten", n)
		}
	})
}

func TestCallsWithoutATokenAreRefusedAfterConsensus(t *testing.T) {
	inBubble(t, Options{User: "root", Password: "pw"}, func(t *testing.T, c *Cluster, _ *clientv3.Client) {
		kv := pb.NewKVClient(connect(t, c, c.Member(1).Address))
		_, err := kv.Range(soon(t), &pb.RangeRequest{Key: []byte("k")})
		if !errors.Is(rpctypes.Error(err), rpctypes.ErrUserEmpty) {
			t.Errorf("no token: got %v, want %v", err, rpctypes.ErrUserEmpty)
		}
		wrong := metadata.AppendToOutgoingContext(soon(t), rpctypes.TokenFieldNameGRPC, "x")
		if _, err := kv.Range(wrong, &pb.RangeRequest{Key: []byte("k")}); !errors.Is(rpctypes.Error(err), rpctypes.ErrInvalidAuthToken) {
			t.Errorf("wrong token: got %v, want %v", err, rpctypes.ErrInvalidAuthToken)
		}
		c.Member(1).CutPeers()
		if _, err := kv.Range(soon(t), &pb.RangeRequest{Key: []byte("k")}); errors.Is(rpctypes.Error(err), rpctypes.ErrUserEmpty) {
			t.Errorf("cut off: got %v, want the read to hang: a refusal would prove quorum where there is none", err)
		}
	})
}

func TestAlarmsStopWritesOnly(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, c *Cluster, cli *clientv3.Client) {
		c.SetAlarm(pb.AlarmType_NOSPACE, true)
		if _, err := cli.Put(soon(t), "k", "v"); !errors.Is(err, rpctypes.ErrNoSpace) {
			t.Errorf("Put: got %v, want %v", err, rpctypes.ErrNoSpace)
		}
		if _, err := cli.Get(soon(t), "k"); err != nil {
			t.Errorf("Get: %v", err)
		}
		if list, err := cli.AlarmList(soon(t)); err != nil || len(list.Alarms) != 3 {
			t.Errorf("AlarmList: %v, %v; want one for each member", list, err)
		}
		if st, err := cli.Status(soon(t), c.Member(0).Address); err != nil || len(st.Errors) != 3 {
			t.Errorf("Status: %v, %v; want the alarms among its errors", st, err)
		}
		c.SetAlarm(pb.AlarmType_NOSPACE, false)
		if _, err := cli.Put(soon(t), "k", "v"); err != nil {
			t.Errorf("Put without alarm: %v", err)
		}
	})
}
