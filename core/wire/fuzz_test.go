package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDecodeQuestion: what a hostile child sends never panics, and what is accepted means one thing only: written again
// and read again it is the same question.
func FuzzDecodeQuestion(f *testing.F) {
	for _, q := range questions {
		data, err := q.Encode()
		require.NoError(f, err)
		f.Add(data)
	}
	for _, seed := range []string{
		"", "\xc0", "\x80", "\x90", "\xdd\xff\xff\xff\xff", "\xdc\xff\xff\x01", "\x93\x01\xa4eval\xdb\x7f\xff\xff\xff",
		"\x93\xff\xa4eval\xa4eval", "\x93\xd3\x80\x00\x00\x00\x00\x00\x00\x00\xa4eval\xa4eval", "\x93\x01\xa4eval\xc7\x04\xffeval",
		"\x94\x01\xa4call\xdd\x00\x00\xff\xff\xa1a\xa0", "\x93\x01\xa4eval\xcb\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := DecodeQuestion(data)
		if err != nil {
			return
		}
		again, err := q.Encode()
		require.NoError(t, err)
		same, err := DecodeQuestion(again)
		require.NoError(t, err)
		require.Equal(t, q, same)
	})
}

// FuzzDecodeAnswer: the other end of the same wire.
func FuzzDecodeAnswer(f *testing.F) {
	for _, a := range []Answer{{Seq: 1, Allow: true}, {Exc: ExcSandBox, Message: "m", Denial: &Denial{Add: []string{"a"}}}} {
		data, err := a.Encode()
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = DecodeAnswer(data) })
}
