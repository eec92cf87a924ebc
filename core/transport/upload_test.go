package transport

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// reads takes frames until n calls are complete.
func (p *peer) reads(n int) (order []uint64, payloads map[uint64][]byte, kinds []int) {
	payloads = map[uint64][]byte{}
	for n > 0 {
		kind, id, part := p.receive()
		kinds = append(kinds, kind)
		if kind == KindCall || kind == KindPiece {
			payloads[id] = append(payloads[id], part...)
		}
		if kind == KindCall {
			order = append(order, id)
			n--
		}
	}
	return order, payloads, kinds
}

func TestSmallCallsOvertakeLargeOnes(t *testing.T) {
	c, p := connect(t, Options{})
	large := random(20*MaxPart + 5)
	var ids []uint64
	for _, payload := range [][]byte{large, large, []byte("small")} {
		id, err := c.Begin(payload)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.NoError(t, c.Stop())
	go func() {
		order, payloads, _ := p.reads(3)
		kind, _, _, _ := p.next()
		if order[0] != ids[2] || string(payloads[ids[2]]) != "small" || !bytes.Equal(payloads[ids[0]], large) ||
			!bytes.Equal(payloads[ids[1]], large) || kind != KindStop {
			t.Error("not what was sent, or not in this order", order, kind)
		}
		for _, id := range ids {
			p.send(KindResult, id, pickled(nil))
		}
	}()
	for _, id := range ids {
		_, err := last(c, id)
		require.NoError(t, err)
	}
	require.Empty(t, c.uploads)
}

func TestCancelledUploads(t *testing.T) {
	c, p := connect(t, Options{})
	large := random(20 * MaxPart)
	first, _ := c.Begin(large)
	second, _ := c.Begin(large)
	require.NoError(t, c.Cancel(second), "of which nothing was sent")
	require.NoError(t, c.Cancel(first), "of which something was")
	third, _ := c.Begin([]byte("next"))
	require.NoError(t, c.Stop())
	go func() {
		order, payloads, kinds := p.reads(2)
		kind, _, _, _ := p.next()
		if order[0] != first || order[1] != third || kind != KindStop || payloads[second] != nil || len(payloads[first]) != MaxPart {
			t.Error("sent:", kinds, order)
		}
		p.send(KindCancelled, first)
		p.send(KindResult, third, pickled(nil))
	}()
	_, err := last(c, third)
	require.NoError(t, err)
	require.Empty(t, c.calls)
}
