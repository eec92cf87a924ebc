package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/pysandboxes/pysandboxes/core/transport"
	"github.com/pysandboxes/pysandboxes/core/unpickle"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

// connect hands our end of the call socket to the transport, which owns it from here on.
func connect(fd, pid int, p *Plan, made *denials, held bounds) (*transport.Conn, error) {
	pol := p.policy
	switches, limits := pol.Switches(), pol.Limits()
	return transport.New(fd, transport.Options{
		Who:  fmt.Sprintf("the sandbox (process %d)", pid),
		Mode: unpickle.Mode(switches.ResultMode), Guard: switches.ResultGuard, MaxResult: limits.Result, Version: wire.Version,
		ResultRule: pol.LimitRule("limit-result"), Vouch: made.vouch, Bound: held.ofException,
		Native: p.spec.Native,
	})
}

// cutOff ends a child whose connection is over while it runs: it broke the protocol, or closed its end. Nothing that it does is asked
// for any more.
func (c *Child) cutOff() {
	<-c.conn.Done()
	select {
	case <-c.process.Done():
	default:
		reason := c.conn.Err()
		c.cut.CompareAndSwap(nil, &reason)
		_ = c.process.Kill()
	}
}

// ready waits until the child's Python takes calls.
func (c *Child) ready(ctx context.Context, patience time.Duration) error {
	if patience <= 0 {
		patience = time.Millisecond
	}
	givenUp := context.AfterFunc(ctx, func() {
		c.conn.Fail(fmt.Errorf("the start of the sandbox was given up: %w", context.Cause(ctx)))
	})
	defer givenUp()
	if _, err := c.conn.Ready(patience); err != nil {
		if ended := c.Ended(); ended != nil {
			err = ended
		}
		return fmt.Errorf("the sandbox did not get ready for calls: %w", err)
	}
	return nil
}
