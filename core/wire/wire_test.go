package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// questions has one of each kind.
var questions = []Question{
	{Seq: 1, Op: OpHello, Pid: 4711, Version: "0.1.0", Python: "3.11.7 (main)\n[GCC]"},
	{Seq: 2, Op: OpFile, Path: "/etc/\xff\xfe", Write: true, Event: "open"},
	{Seq: 2, Op: OpFile, Path: "/etc/x", Event: "open", Via: "/data/\xff"},
	{Seq: 1 << 40, Op: OpImport, Name: "json"},
	{Seq: 3, Op: OpImport, Name: "tools\n", Hint: "/p/tools.py"},
	{Seq: 4, Op: OpCall, Names: []string{"subprocess.run", "_posixsubprocess.fork_exec"}, Event: "subprocess.Popen"},
	{Seq: 5, Op: OpNet, NetOp: "connect", Proto: "tcp", Host: "::1", Port: 65535},
	{Seq: 5, Op: OpNet, NetOp: "reverse", Proto: "udp", Host: "192.0.2.1"},
	{Seq: 6, Op: OpLearn, Family: OpNet, NetOp: "chosen", Proto: "tcp", Host: "", Port: 40001},
	{Seq: 5, Op: OpNet, NetOp: "socket", Proto: "raw", Port: 29},
	{Seq: 6, Op: OpEval, Kind: "compile"},
	{Seq: 7, Op: OpRemove, Path: "/w\xff", Event: "rmdir"},
	{Seq: 7, Op: OpEnv, Name: "A\xff"},
	{Op: OpLearn, Family: OpFile, Path: "/data/x", Event: "open", Site: "a.py:3", Quiet: true},
	{Op: OpLearn, Family: OpImport, Name: "json", Site: "a.py:1"},
	{Op: OpLearn, Family: OpCall, Names: []string{"os.system"}, Event: "os.system", Site: "a.py:9"},
	{Op: OpLearn, Family: OpNet, NetOp: "resolve", Proto: "tcp", Host: "example.com", Port: 443, Site: ""},
	{Op: OpLearn, Family: OpEval, Kind: "eval", Site: "<string>:1"},
	{Op: OpLearn, Family: OpEvalRule, Key: "eval-call:calc", Item: "round", Site: "a.py:2", Quiet: true},
	{Op: OpLearnEnv, Name: "HOME", Site: "a.py:2"},
	{Seq: 7, Op: OpHidden, Path: "/data", Names: []string{"a", "\xff\n"}},
	{Seq: 7, Op: OpNative, After: 1 << 40},
	{Op: OpNote, Level: "warning", Text: "two\nlines"},
}

func TestQuestionsComeBackAsTheyWere(t *testing.T) {
	for _, q := range questions {
		data, err := q.Encode()
		require.NoError(t, err, q.Op)
		got, err := DecodeQuestion(data)
		require.NoError(t, err, q.Op)
		assert.Equal(t, q, got)
	}
}

// encode builds a message that our own types would not.
func encode(t *testing.T, v ...any) []byte {
	t.Helper()
	data, err := msgpack.Marshal(v)
	require.NoError(t, err)
	return data
}

func TestMalformedQuestionsAreRefused(t *testing.T) {
	file := []byte("/x")
	for name, tc := range map[string]struct {
		data []byte
		says string
	}{
		"nothing":           {nil, "question is missing"},
		"a map":             {[]byte{0x80}, "wrong type"},
		"empty array":       {[]byte{0x90}, "sequence number is missing"},
		"negative sequence": {encode(t, -1, "eval", "eval"), "wrong type"},
		"signed negative":   {encode(t, int64(-5), "eval", "eval"), "sequence number"},
		"nil for a number":  {encode(t, nil, "eval", "eval"), "wrong type"},
		"unknown op":        {encode(t, 1, "rm", "x"), `unknown operation "rm"`},
		"too few":           {encode(t, 1, "file", file, false), "2 arguments where 4 belong"},
		"too many":          {encode(t, 1, "eval", "eval", 1), "2 arguments where 1 belong"},
		"text for a path":   {encode(t, 1, "file", "/x", false, "open", nil), "path has the wrong type"},
		"number for a bool": {encode(t, 1, "file", file, 1, "open", nil), "write has the wrong type"},
		"env learned":       {encode(t, 0, "learn", "env", file, "a.py:1", false), "unknown family"},
		"NUL in a path":     {encode(t, 1, "file", []byte("/x\x00/y"), false, "open", nil), "NUL"},
		"long way":          {encode(t, 1, "file", file, false, "open", make([]byte, 9<<10)), "the limit is 8192"},
		"long path":         {encode(t, 1, "file", make([]byte, 9<<10), false, "open", nil), "the limit is 8192"},
		"port":              {encode(t, 1, "net", "connect", "tcp", file, 65536), "port is out of range"},
		"protocol":          {encode(t, 1, "net", "connect", "sctp", file, 1), `unknown protocol "sctp"`},
		"no names":          {encode(t, 1, "call", []string{}, ""), "0 names"},
		"many names":        {encode(t, 1, "call", make([]string, 65), ""), "65 names"},
		"no name in a list": {encode(t, 1, "hidden", file, [][]byte{}), "0 names"},
		"a long list":       {encode(t, 1, "hidden", file, make([][]byte, 513)), "513 names"},
		"text in a list":    {encode(t, 1, "hidden", file, []string{"a"}), "name has the wrong type"},
		"NUL in a list":     {encode(t, 1, "hidden", file, [][]byte{{0}}), "NUL"},
		"line end in event": {encode(t, 1, "call", []string{"a"}, "x\ny"), "not plain"},
		"learn of a learn":  {encode(t, 0, "learn", "learn", "x", ""), `unknown family "learn"`},
		"more than one":     {append(encode(t, 1, "eval", "eval"), 0xc0), "1 bytes too many"},
		"long array header": {[]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, "more than the message holds"},
		"long names header": {append(encode(t, 1, "call")[:0], 0x94, 1, 0xa4, 'c', 'a', 'l', 'l', 0xdd, 0xff, 0xff, 0xff, 0xff), "more than the message holds"},
		"long string":       {[]byte{0x93, 1, 0xa4, 'e', 'v', 'a', 'l', 0xdb, 0xff, 0xff, 0xff, 0xff}, "more than the message holds"},
		"cut short":         {encode(t, 1, "eval", "compile")[:8], "more than the message holds"},
		"over the limit":    {make([]byte, MaxMessage+1), "the limit is 65536"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeQuestion(tc.data)
			assert.ErrorContains(t, err, tc.says)
		})
	}
}

func TestAnswersComeBackAsTheyWere(t *testing.T) {
	for _, a := range []Answer{
		{Seq: 1, Allow: true},
		{Seq: 9, Exc: ExcFileNotFound, Errno: 2, Message: "reading /etc/passwd is refused: … Add:\n    expose-ro=/etc/passwd", Scope: "x",
			Denial: &Denial{Layer: "python", Family: "file", Subject: "/etc/passwd", Op: "open", Rule: "p:3", Add: []string{"a", "b"}, Message: "m"}},
	} {
		data, err := a.Encode()
		require.NoError(t, err)
		got, err := DecodeAnswer(data)
		require.NoError(t, err)
		assert.Equal(t, a, got)
	}
}

func TestAnAnswerIsBoundedWhateverTheChildAsked(t *testing.T) {
	long := strings.Repeat("ä\xff", 40<<10)
	a := Answer{Seq: 1<<64 - 1, Exc: ExcSandBox, Errno: 65535, Message: long + "expose-ro=/x", Scope: long,
		Denial: &Denial{Layer: long, Family: long, Subject: long, Op: long, Category: long, Rule: long, Message: long,
			Add: []string{long, long, long, long, long, long}}}
	data, err := a.Encode()
	require.NoError(t, err)
	assert.LessOrEqual(t, len(data), MaxMessage)
	got, err := DecodeAnswer(data)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(got.Message, "expose-ro=/x"), "a cut message keeps its end")
	assert.Len(t, got.Denial.Add, maxAdd)
}

func TestBootDataHoldsEveryKeyOfTheContract(t *testing.T) {
	b := Boot{Mode: ModePartial, Learn: true, Resolve: true, Files: []File{{"/a\xff", BitRead | BitWrite, FlagExact}},
		Imports: []string{"json"}, Eval: "refuse", Stdlib: []string{"/usr/lib/python3.11"}, Package: "/p", Extra: []byte{1, 2}}
	data, err := b.Encode()
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, msgpack.NewDecoder(bytes.NewReader(data)).Decode(&got))
	assert.Len(t, got, bootKeys)
	assert.EqualValues(t, Protocol, got["v"])
	assert.Equal(t, Version, got["version"])
	assert.Equal(t, "partial", got["mode"])
	assert.Equal(t, true, got["learn"])
	assert.Equal(t, false, got["py"])
	assert.Equal(t, []any{[]any{[]byte("/a\xff"), int8(3), int8(1)}}, got["files"])
	assert.Equal(t, []any{}, got["imports_deny"], "an absent list is an empty one, not nil")
	assert.Equal(t, []byte{1, 2}, got["extra"])
}

func TestBootDataOfNoModeIsRefused(t *testing.T) {
	_, err := (&Boot{}).Encode()
	assert.ErrorContains(t, err, `mode ""`)
}
