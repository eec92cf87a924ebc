package broker

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func netlinkMessage(kind uint16, length uint32, body int) []byte {
	m := binary.NativeEndian.AppendUint32(nil, length)
	m = binary.NativeEndian.AppendUint16(m, kind)
	return append(m, make([]byte, 10+body)...)
}

func TestOnlyQuestionsGoToTheKernel(t *testing.T) {
	ask, change := netlinkMessage(unix.RTM_GETADDR, 20, 4), netlinkMessage(unix.RTM_NEWADDR, 20, 4)
	for _, kind := range []uint16{unix.RTM_GETLINK, unix.RTM_GETADDR, unix.RTM_GETROUTE, unix.RTM_GETNEIGH} {
		assert.True(t, questionsOnly(netlinkMessage(kind, 17, 1)), "without its padding")
	}
	assert.True(t, questionsOnly(append(append([]byte(nil), ask...), ask...)))
	for name, data := range map[string][]byte{
		"a change":         change,
		"behind":           append(append([]byte(nil), ask...), change...),
		"behind an odd":    append(netlinkMessage(unix.RTM_GETADDR, 17, 4), change...),
		"an end":           netlinkMessage(unix.RTM_DELROUTE, 20, 4),
		"a setting":        netlinkMessage(unix.RTM_SETLINK, 20, 4),
		"no message":       ask[:15],
		"longer":           netlinkMessage(unix.RTM_GETADDR, 21, 4),
		"of no length":     netlinkMessage(unix.RTM_GETADDR, 0, 4),
		"of all lengths":   netlinkMessage(unix.RTM_GETADDR, ^uint32(0), 4),
		"of the transport": netlinkMessage(2, 20, 4),
		"a rest":           append(append([]byte(nil), ask...), 1, 2, 3, 4),
	} {
		assert.False(t, questionsOnly(data), name)
	}
}

func TestNetlinkGoesToTheKernelAlone(t *testing.T) {
	kernel := append(binary.NativeEndian.AppendUint16(nil, unix.AF_NETLINK), make([]byte, 10)...)
	other, group := append([]byte(nil), kernel...), append([]byte(nil), kernel...)
	other[4], group[8] = 1, 1
	assert.Zero(t, prepareNetlink(&request{}))
	assert.Zero(t, prepareNetlink(&request{name: kernel}))
	for _, r := range []*request{{name: other}, {name: group}, {name: kernel[:8]}, {control: make([]byte, 16)}} {
		assert.Equal(t, unix.EPERM, prepareNetlink(r))
	}
}
