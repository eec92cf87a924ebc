package control

import (
	"sync"
	"time"

	"github.com/pysandboxes/pysandboxes/bindings/border"
)

// slice is how long a door stays shut at a time: Python looks for signals that often.
const slice = 50 * time.Millisecond

// tasks are operations that take their time, each running once at a time under its name. Whoever asks for one that runs
// already waits for that one.
type tasks struct {
	mu      sync.Mutex
	running map[string]*task
}

type task struct {
	done  chan struct{}
	value int
	err   error
}

// do runs the operation, or joins it, and waits a slice for its end; border.ErrPending says that it goes on.
func (t *tasks) do(name string, run func() (int, error)) (int, error) {
	one := t.join(name, run)
	timer := time.NewTimer(slice)
	defer timer.Stop()
	select {
	case <-one.done:
	case <-timer.C:
		return 0, border.ErrPending
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[name] == one {
		delete(t.running, name)
	}
	return one.value, one.err
}

func (t *tasks) join(name string, run func() (int, error)) *task {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.running[name]; one != nil {
		return one
	}
	one := &task{done: make(chan struct{})}
	if t.running == nil {
		t.running = map[string]*task{}
	}
	t.running[name] = one
	go func() {
		defer close(one.done)
		defer func() {
			if value := recover(); value != nil {
				one.err = border.PanicFault(name, value)
			}
		}()
		one.value, one.err = run()
	}()
	return one
}
