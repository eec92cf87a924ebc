package unpickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// get refers to a memo entry.
func get(i int) string { return "j" + string(binary.LittleEndian.AppendUint32(nil, uint32(i))) }

// counted is a text of protocol 4 of any length.
func countedText(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// wide is a tuple of n Nones in memo entry 0, as an instruction sequence.
func wide(n int) string { return "(" + strings.Repeat("N", n) + "t\x94" }

// keyed is a list of n dicts, each with the memo entry as its only key.
func keyed(n, entry int) string { return "](" + strings.Repeat("}"+get(entry)+"Ns", n) + "e" }

// What costs the application more than it cost the sandbox to write: each is refused for its cost, and found out at a bounded number of
// steps and in memory of a bounded multiple of the stream. Steps are counted, not timed: those of hashing (machine.work) and
// one for each byte. A loop that is charged nowhere would let its attack pass here.
func TestAttacks(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		mode Mode
		want string // "" where it is harmless
	}{
		{"a chain of TUPLE1", p("N" + strings.Repeat("\x85", 300_000)), DataOnly, "nested too deeply"},
		{"a chain of TUPLE1 as a key", p("}N" + strings.Repeat("\x85", 900) + "Ns"), DataOnly, ""},
		{"a chain as many keys", p("N" + strings.Repeat("\x85", 900) + "\x94" + keyed(200_000, 0) + "\x86"), DataOnly, "too long to hash"},
		{"a wide tuple as many keys", p(wide(5000) + keyed(40_000, 0) + "\x86"), DataOnly, "too long to hash"},
		{"a DAG of tuples as a key", p("N\x85\x94" + func() string {
			s := ""
			for i := range 80 {
				s += get(i) + get(i) + "\x86\x94"
			}
			return s
		}() + "}" + get(80) + "Ns" + strings.Repeat("\x86", 81)), DataOnly, "too long to hash"},
		{"a DAG of frozensets as a key", p("N\x85\x94(h\x00N\x91\x94" + func() string {
			s := ""
			for i := range 60 {
				s += "(" + get(i) + get(i+1) + "\x91\x94"
			}
			return s
		}() + "}" + get(61) + "Ns"), DataOnly, "too long to hash"},
		{"a frozenset as many keys", p("(" + func() string {
			var b strings.Builder
			for i := range 3000 {
				b.WriteString("J" + string(binary.LittleEndian.AppendUint32(nil, uint32(i))))
			}
			return b.String()
		}() + "\x91\x94" + keyed(30_000, 0) + "\x86"), DataOnly, "too long to hash"},
		{"a huge LONG4", p(long(1 << 22)), DataOnly, "an integer of"},
		{"a LONG4 of which there is nothing", []byte("\x80\x05\x8b\xff\xff\xff\x7f."), DataOnly, "ends within an instruction"},
		{"a large integer as many keys", p(long(1<<20) + "\x94" + keyed(20_000, 0) + "\x86"), DataOnly, "too long to hash"},
		{"a long Decimal as many keys", p(lookup("decimal", "Decimal") + countedText(strings.Repeat("7", 99_000)) + "\x85R\x94" + keyed(30_000, 0) + "\x86"), DataOnly, "too long to hash"},
		{"a path of many parts as many keys", p(lookup("pathlib", "PurePosixPath") + "(" + text("a") + "\x94" + strings.Repeat("h\x00", 20_000) + "tR\x94" + keyed(20_000, 1) + "\x86"), DataOnly, "too long to hash"},
		{"a long path as many keys", p(lookup("pathlib", "PurePosixPath") + countedText(strings.Repeat("a/", 500_000)) + "\x85R\x94" + keyed(20_000, 0) + "\x86"), DataOnly, "too long to hash"},
		{"a Fraction of a text", p(lookup("fractions", "Fraction") + text("1e99999999") + "\x85R"), DataOnly, "in a form that CPython does not dump"},
		{"a Fraction of a text, with objects", p(lookup("fractions", "Fraction") + text("1e99999999") + "\x85R"), Objects, "in a form that CPython does not dump"},
		{"Fractions that are hard to reduce", p("](" + lookup("fractions", "Fraction") + "\x94" + long(65_000) + "\x94" + long(64_990) + "\x94\x86R" + strings.Repeat(get(0)+get(1)+get(2)+"\x86R", 2000) + "e"), DataOnly, "a call of fractions.Fraction"},
		{"marks within marks", p(strings.Repeat("(", 1_000_000)), DataOnly, "nested too deeply"},
		{"lists within lists", p(strings.Repeat("](", 100_000) + strings.Repeat("e", 100_000)), DataOnly, "nested too deeply"},
		{"a value many times", p(wide(1000) + "(" + strings.Repeat("h\x00", 500_000) + "t\x86"), DataOnly, ""},
		{"memo entries of one value", p("N" + strings.Repeat("\x94", 1_000_000)), DataOnly, ""},
		{"memo entries within UUIDs", p(func() string {
			var b strings.Builder
			b.WriteString(lookup("uuid", "UUID") + "\x94")
			for range 20_000 {
				b.WriteString(get(0) + ")\x81\x94") // shells in the entries 1 to 20 000
			}
			b.WriteString("N" + strings.Repeat("\x94", 100_000))
			for i := range 20_000 {
				b.WriteString(get(1+i) + "}" + text("int") + "K\x01sb")
			}
			return b.String()
		}()), DataOnly, "too long to build"},
		{"a name of a megabyte", p(lookup("app", "a") + "\x94" + countedText(strings.Repeat(".", 1<<20)) + text("x") + "\x93"), Objects, "whose name is 1048576 bytes long"},
		{"one name many times", p(text("app") + "\x94" + text(strings.Repeat("a.", 60)+"b") + "\x94" + "](" + strings.Repeat("h\x00h\x01\x93", 300_000) + "e"), Objects, "values and"},
		{"tuples of one hash beside a text", p(text("a") + "\x94}(" + func() string {
			var b strings.Builder
			for i := range 30_000 { // whatever the hash of the text is, it is the same in all
				hi, lo := mul(uint64(i+1), hashMod)
				b.WriteString("\x8a\x0c" + string(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, lo), uint32(hi))) + "h\x00\x86N")
			}
			return b.String()
		}() + "u\x86"), DataOnly, "too long to hash"},
		{"UUIDs of one hash", p(lookup("uuid", "UUID") + "\x94" + text("int") + "\x94\x8f(" + func() string {
			var b strings.Builder
			for i := range 5000 {
				hi, lo := mul(uint64(i+1), hashMod)
				b.WriteString("h\x00)\x81}h\x01\x8a\x0c" + string(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, lo), uint32(hi))) + "sb")
			}
			return b.String()
		}() + "\x90\x87"), Objects, "too long to hash"},
		{"IPv6 addresses of one hash", p(lookup("ipaddress", "IPv6Address") + "\x94\x8f(" + func() string {
			var b strings.Builder
			for i := range 2000 {
				hi, lo := mul(uint64(i+1), hashMod)
				b.WriteString("h\x00" + text(fmt.Sprintf("::%x:%x:%x:%x:%x", hi, lo>>48, lo>>32&0xffff, lo>>16&0xffff, lo&0xffff)) + "\x85R")
			}
			return b.String()
		}() + "\x90\x86"), Objects, "too long to hash"},
		{"ranges as keys", p(lookup("builtins", "range") + "\x94\x8f(" + func() string {
			var b strings.Builder
			for i := range 10_000 {
				b.WriteString("h\x00K\x00M" + string(binary.LittleEndian.AppendUint16(nil, uint16(i))) + "K\x01\x87R")
			}
			return b.String()
		}() + "\x90\x86"), Objects, "too long to hash"},
		{"one interface made again and again", p(lookup("ipaddress", "IPv6Interface") + "\x94" + text("::1/128") + "\x85\x94](" + strings.Repeat("h\x00h\x01R", 100_000) + "e\x87"), Objects, "too long to make"},
		{"sets without end", p("](" + strings.Repeat("\x8f", 400_000) + "e"), DataOnly, "too many containers"},
		{"NaN as many keys", p("\x8f(" + strings.Repeat("G\x7f\xf8\x00\x00\x00\x00\x00\x00", 50_000) + "\x90"), DataOnly, ""},
		{"ints that fall into one slot", p("\x8f(" + func() string {
			var b strings.Builder
			for i := range 40_000 { // their low 44 bits are the same
				b.WriteString("\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(i)<<44)))
			}
			return b.String()
		}() + "\x90"), DataOnly, ""},
		{"ints of one hash", p("}(" + func() string {
			var b strings.Builder
			for i := range 30_000 {
				hi, lo := mul(uint64(i+1), hashMod)
				b.WriteString("\x8a\x0c" + string(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, lo), uint32(hi))) + "N")
			}
			return b.String()
		}() + "u"), DataOnly, "too long to hash"},
		{"floats and ints of one hash in tuples", p("}(" + func() string {
			var b strings.Builder
			for i := range 30_000 { // the same tuple: the sender writes it again and again
				b.WriteString(fmt.Sprintf("K\x01M%sK\x02\x87N", string(binary.LittleEndian.AppendUint16(nil, uint16(i%7)))))
			}
			return b.String()
		}() + "u"), DataOnly, "too long to hash"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := machine{data: tt.data, mode: tt.mode, guard: true, root: "result", lim: Limits{HashWork: 20_000_000, Nodes: 1_000_000}.withDefaults()}
			err := m.validate()
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.want)
				var refused *RefusedError
				var malformed *MalformedError
				require.True(t, errors.As(err, &refused) || errors.As(err, &malformed))
			}
			// The last charge may pass the limit: by one comparison, or one pair of numbers, and twice where the general function
			// comes after the quick one.
			require.LessOrEqual(t, m.work, 2*m.workLimit()+1<<20, "steps")
			words := cap(m.stack) + cap(m.marks) + cap(m.memo) + 2*cap(m.nodes) + cap(m.items) + cap(m.hashes)
			require.LessOrEqual(t, words, 8*len(tt.data)+4096, "memory")
			require.LessOrEqual(t, len(m.globals), 8)
		})
	}
}

// What is no attack is let through by the same limits.
func TestManyHonestKeys(t *testing.T) {
	set := func(n int, member func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(member(i))
		}
		return "\x8f(" + b.String() + "\x90"
	}
	number := func(i int) string {
		return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(i*7919)))
	}
	address := func(i int) string { return fmt.Sprintf("10.%d.%d.0", i>>8&0xff, i&0xff) }
	for name, data := range map[string][]byte{
		"numbers and texts": p(set(100_000, func(i int) string { return number(i) + text(fmt.Sprint(i%100)) + "\x86" })),
		"networks": p(lookup("ipaddress", "IPv4Network") + "\x94" + set(20_000, func(i int) string {
			return "h\x00" + text(address(i)+"/24") + "\x85R"
		}) + "\x86"),
		"interfaces": p(lookup("ipaddress", "IPv4Interface") + "\x94" + set(20_000, func(i int) string {
			return "h\x00" + text(address(i)+"/16") + "\x85R"
		}) + "\x86"),
		"UUIDs": p(lookup("uuid", "UUID") + "\x94" + text("int") + "\x94" + set(50_000, func(i int) string {
			return "h\x00)\x81}h\x01\x8a\x10" + string(binary.LittleEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(i)*xxPrime1), uint64(i)*xxPrime2>>1)) + "sb"
		}) + "\x87"),
		"Fractions": p(lookup("fractions", "Fraction") + "\x94" + set(50_000, func(i int) string {
			return "h\x00" + number(i) + "K\x07\x86R"
		}) + "\x86"),
	} {
		// The class and the names before the set are no part of the value; a tuple holds what is left.
		m := machine{data: data, mode: Objects, root: "result", lim: Limits{}.withDefaults()}
		require.NoError(t, m.validate(), name)
	}
}
