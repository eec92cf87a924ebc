package transport

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/pysandboxes/pysandboxes/core/wire"
)

// What a child says that it was refused ends in "add this line", and people do. So of a child's account only the name of the
// refusal is taken: the words are those in which this side made it. What this side did not refuse has no line to add.

// denial is a refusal as the application gets it.
type denial struct {
	wire.Denial
	Site string `json:"site"` // file:line in the program, by the child's word alone
}

// denials writes the refusals that the child names.
func (t *transcriber) denials(depth int) error {
	n, err := t.dec.DecodeArrayLen()
	if err != nil {
		return err
	}
	if n > t.src.Len() {
		return fmt.Errorf("an array of %d items with %d bytes left", n, t.src.Len())
	}
	t.out.WriteByte('[')
	for range n {
		said := transcriber{src: t.src, dec: t.dec, values: t.values}
		if err := said.value(anyValue, depth+1); err != nil {
			return err
		}
		t.values = said.values
		if t.told++; t.told > maxDenials || t.out.Len() > 2*maxStructure {
			continue
		}
		if !bytes.HasSuffix(t.out.Bytes(), []byte("[")) {
			t.out.WriteByte(',')
		}
		if err := t.quoted(t.vouched(said.out.Bytes())); err != nil {
			return err
		}
	}
	t.out.WriteByte(']')
	return nil
}

// vouched is this side's account of the refusal that a child's names. What is no such account becomes an empty one.
func (t *transcriber) vouched(said []byte) denial {
	var fields map[string]any
	if json.Unmarshal(said, &fields) != nil {
		return denial{Denial: wire.Denial{Add: []string{}}}
	}
	text := func(name string) string { s, _ := fields[name].(string); return s }
	claimed := wire.Denial{Layer: text("layer"), Family: text("family"), Op: text("op"), Subject: text("subject"), Add: []string{}}
	if t.vouch != nil {
		if made, ok := t.vouch(claimed.Layer, claimed.Family, claimed.Op, claimed.Subject); ok {
			return denial{made, text("site")}
		}
	}
	claimed.Message = fmt.Sprintf("the sandbox says that %s %s was refused; its supervisor has no record of that", claimed.Op, claimed.Subject)
	return denial{claimed, text("site")}
}
