package transport

import (
	"math/bits"
	"sync"
)

// Memory for output is lent: a sandbox that prints without end would otherwise leave its output to the garbage collector, which on a
// busy machine comes when some dozen megabytes are there.

// Sizes that are lent are powers of two, from leastLent on; greater parts than mostLent there are none.
const (
	leastLent = 12 // 4 KiB
	mostLent  = 20 // MaxPart
)

var lent [mostLent - leastLent + 1]sync.Pool // of *[]byte

// lend gives n bytes of any content.
func lend(n int) []byte {
	class := bits.Len(uint(max(n-1, 0)))
	if class < leastLent || class > mostLent {
		return make([]byte, n)
	}
	if have, ok := lent[class-leastLent].Get().(*[]byte); ok {
		return (*have)[:n]
	}
	return make([]byte, n, 1<<class)
}

// Release takes the memory of output back, once the caller has copied it: nobody may look at e.Data after that. Of other events,
// and of output that is never released, the garbage collector takes care.
func (e Event) Release() {
	size := cap(e.Data)
	class := bits.Len(uint(size)) - 1
	if e.Kind != KindStdout && e.Kind != KindStderr || size == 0 || size != 1<<class || class < leastLent || class > mostLent {
		return
	}
	whole := e.Data[:0:size]
	lent[class-leastLent].Put(&whole)
}
