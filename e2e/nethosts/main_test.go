package nethosts_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/quorumwise/quorumwise/e2e/nethosts"
)

func TestMain(m *testing.M) {
	nethosts.Register("echo", echoMain)
	nethosts.EnterTests()
	goleak.VerifyTestMain(m)
}

// echoMain answers on the TCP address given, until it is ended.
func echoMain() int {
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	for {
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		go func() { _, _ = io.Copy(c, c) }()
	}
}
