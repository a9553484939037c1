package conns

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/test/bufconn"
)

func TestListenerClosesWhatItAcceptedAndWhatItAcceptsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(1)
		tracked := Track(lis)
		accepted := make(chan net.Conn, 3)
		ended := make(chan error, 1)
		go func() {
			for {
				c, err := tracked.Accept()
				if err != nil {
					ended <- err
					return
				}
				accepted <- c
			}
		}()
		dial := func() net.Conn {
			c, err := lis.Dial()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		before, gone := dial(), dial()
		synctest.Wait()
		<-accepted
		_ = (<-accepted).Close()
		if len(tracked.open) != 1 {
			t.Errorf("%d connections are known after one of two was closed, want 1: the others would pile up", len(tracked.open))
		}
		tracked.CloseConns()
		after := dial()
		for name, c := range map[string]net.Conn{"open": before, "closed by itself": gone, "later": after} {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("connection %q: got %v, want EOF: whoever holds it delays the end of the server", name, err)
			}
		}
		synctest.Wait()
		if len(accepted) != 0 || len(ended) != 0 {
			t.Errorf("after CloseConns: %d accepted, %d ends; want none before the listener is closed", len(accepted), len(ended))
		}
		_ = tracked.Close()
		if err := <-ended; err == nil {
			t.Error("Accept after Close: got nil, want an error")
		}
	})
}
