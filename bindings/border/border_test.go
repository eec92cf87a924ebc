package border

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTextRoundTrip(t *testing.T) {
	for _, want := range []string{"", "plain", "/home/\xff\xfe.txt", "ä€😀", `"\/`, "\b\f\n\r\t\x00\x7f", "\xf0\x9f\x98", "\xed\xb3\xbf"} {
		data, err := json.Marshal(Text(want))
		require.NoError(t, err)
		for _, b := range data {
			assert.True(t, b >= 0x20 && b < 0x7f, "%q is not plain ASCII", data)
		}
		var got Text
		require.NoError(t, json.Unmarshal(data, &got), "%s", data)
		assert.Equal(t, want, string(got), "%s", data)
	}
}

// What Python's json.dumps(os.fsdecode(path)) gives, in both of its ways.
func TestTextReadsWhatPythonWrites(t *testing.T) {
	for raw, want := range map[string]string{
		`"/tmp/\udcff"`:        "/tmp/\xff",
		`"\udce4\u00e4"`:       "\xe4ä",
		`"\ud83d\ude00\udc80"`: "😀\x80",
		`"ä😀"`:                 "ä😀",
		`"\/\"\\\u0000"`:       "/\"\\\x00",
		`null`:                 "",
	} {
		var got Text
		require.NoError(t, json.Unmarshal([]byte(raw), &got), raw)
		assert.Equal(t, want, string(got), raw)
	}
}

func TestTextRefuses(t *testing.T) {
	for _, raw := range []string{`"\ud83d"`, `"\ud83dx"`, `"\udc00"`, `"\ude00\ud83d"`, `1`, `["a"]`, `{}`} {
		var got Text
		assert.Error(t, json.Unmarshal([]byte(raw), &got), raw)
	}
	// Called without encoding/json's own check before it.
	for _, raw := range []string{``, `"`, `"\"`, `"\u12"`, `"\u12x4"`, `"\q"`} {
		var got Text
		assert.Error(t, got.UnmarshalJSON([]byte(raw)), raw)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("/home/\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		raw, err := json.Marshal(Text(data))
		require.NoError(t, err)
		var got Text
		require.NoError(t, json.Unmarshal(raw, &got))
		assert.Equal(t, string(data), string(got))
	})
}

func TestFault(t *testing.T) {
	fault := AsFault(fmt.Errorf("while opening: %w", &Fault{Kind: KindConfig, Message: "no", File: "p\xff", Line: 3}))
	assert.JSONEq(t, `{"kind":"ConfigSyntaxError","message":"no","file":"p\udcff","line":3}`, fault.Error())
	assert.JSONEq(t, `{"kind":"SandBoxError","message":"plain"}`, AsFault(errors.New("plain")).Error())
}

func TestPanicFaultNamesTheOperation(t *testing.T) {
	fault := PanicFault("control.Open", "boom")
	assert.Contains(t, string(fault.Message), "control.Open")
	assert.Contains(t, string(fault.Message), "boom")
	assert.Contains(t, fault.Stack, "TestPanicFaultNamesTheOperation")
}
