package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

// maxSockets bounds how many processes of one sandbox may ask at a time. A further one gets no answers, so its guard
// refuses what its snapshot does not hold.
const maxSockets = 512

// socketsFor is that bound where this process may have so many descriptors: a sandbox must not take those of the application.
func socketsFor(limit uint64) int { return int(min(maxSockets, max(limit/4, 16))) }

func socketBound() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return socketsFor(0)
	}
	return socketsFor(limit.Cur)
}

// server answers the question sockets of one child and all its descendants.
type server struct {
	judge    *judge
	recorder *learn.Recorder // nil: this run does not learn
	logger   *slog.Logger

	most    int        // sockets at a time
	hello   chan error // the first hello's outcome; room for one
	greeted atomic.Bool

	mu       sync.Mutex
	open     map[*socket]bool
	ended    bool
	finished sync.WaitGroup // the announce loop and every socket
}

func newServer(j *judge, recorder *learn.Recorder, logger *slog.Logger) *server {
	return &server{most: socketBound(), judge: j, recorder: recorder, logger: logger, hello: make(chan error, 1), open: make(map[*socket]bool)}
}

// run starts to take announcements.
func (s *server) run(announce *socket) {
	s.adopt(announce, func() { s.announcements(announce) })
}

// stop ends all service: what was sent before is still read, then every socket is closed. It returns when nothing is left.
func (s *server) stop() {
	s.mu.Lock()
	s.ended = true
	for f := range s.open {
		f.end()
	}
	s.mu.Unlock()
	s.finished.Wait()
}

// adopt runs serve on a goroutine that owns f and recovers at its top. It reports whether there was room.
func (s *server) adopt(f *socket, serve func()) bool {
	s.mu.Lock()
	if len(s.open) >= s.most+1 {
		s.mu.Unlock()
		f.Close()
		return false
	}
	s.open[f] = true
	if s.ended {
		f.end()
	}
	s.finished.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.finished.Done()
		defer func() {
			if v := recover(); v != nil {
				s.logger.Error("the sandbox's supervisor failed on a message", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
			s.mu.Lock()
			delete(s.open, f)
			s.mu.Unlock()
			f.Close()
		}()
		serve()
	}()
	return true
}

func (s *server) announcements(announce *socket) {
	for {
		asking, err := announce.receiveSocket()
		switch {
		case errors.Is(err, errAnnounce):
			s.logger.Warn("a process of the sandbox sent no question socket where one belongs")
		case err != nil:
			return
		case !s.adopt(asking, func() { s.questions(asking) }):
			s.logger.Warn("too many processes of the sandbox ask at once", "limit", s.most)
		}
	}
}

// messages lends buffers for one receive; a waiting socket holds none.
var messages = sync.Pool{New: func() any { b := make([]byte, wire.MaxMessage+1); return &b }}

// questions answers one process until it ends or breaks the protocol.
func (s *server) questions(f *socket) {
	asker := f.maker()
	for first := true; ; first = false {
		buf := messages.Get().(*[]byte)
		n, err := f.receive(*buf)
		if err != nil || n == 0 {
			messages.Put(buf)
			return
		}
		q, err := wire.DecodeQuestion((*buf)[:n])
		messages.Put(buf)
		if err == nil && first != (q.Op == wire.OpHello) {
			err = fmt.Errorf("%q at the wrong time", q.Op)
		}
		if err != nil {
			level, text := slog.LevelWarn, "a process of the sandbox broke the protocol and gets no more answers"
			if s.recorder != nil { // nothing else would tell that rules are missing
				level, text = slog.LevelError, "a process of the sandbox broke the protocol: what it does from here on is not learned"
			}
			s.logger.Log(context.Background(), level, text, "error", err)
			return
		}
		a, wanted, last := s.handle(q, asker)
		if wanted && !s.reply(f, a) || last {
			return
		}
	}
}

func (s *server) reply(f *socket, a wire.Answer) bool {
	data, err := a.Encode()
	if err != nil {
		s.logger.Error("an answer could not be written", "error", err)
		return false
	}
	return f.send(data) == nil
}

// handle gives the answer to a question of a process, whether one is wanted, and whether it is the last of this socket.
func (s *server) handle(q wire.Question, asker int) (a wire.Answer, wanted, last bool) {
	switch q.Op {
	case wire.OpHello:
		a, err := s.greet(q)
		return a, q.Seq != 0, err != nil
	case wire.OpLearn, wire.OpLearnEnv:
		s.learned(q, asker)
		return wire.Answer{Seq: q.Seq, Allow: true}, q.Seq != 0, false
	case wire.OpNote:
		s.note(q)
		return wire.Answer{Seq: q.Seq, Allow: true}, q.Seq != 0, false
	}
	if q.Op == wire.OpFile && s.judge.ownProcess(q, asker) {
		return wire.Answer{Seq: q.Seq, Allow: true}, q.Seq != 0, false
	}
	a = s.judge.answer(q)
	return a, q.Seq != 0, false
}

// VersionError is a guard of another version than its supervisor's.
type VersionError struct{ Supervisor, Guard string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("python-sb is version %s, but the guard of this interpreter is version %s\nInstall both in one version: pip install pysandboxes==%s python-sb==%s",
		e.Supervisor, e.Guard, e.Supervisor, e.Supervisor)
}

func (s *server) greet(q wire.Question) (wire.Answer, error) {
	var err error
	a := wire.Answer{Seq: q.Seq, Allow: true}
	if q.Version != wire.Version {
		err = &VersionError{wire.Version, q.Version}
		a = wire.Answer{Seq: q.Seq, Exc: wire.ExcSandBox, Message: err.Error()}
	}
	if s.greeted.CompareAndSwap(false, true) {
		s.hello <- err
	}
	return a, err
}

// learned hands an observation of the guard to the recorder. Outside of a learning run it is noise.
func (s *server) learned(q wire.Question, asker int) {
	if s.recorder == nil {
		return
	}
	if q.Quiet && q.Family == wire.OpImport {
		s.recorder.Absent(q.Name, asker)
		return
	}
	if q.Family == wire.OpFile {
		q.Path = ofAsker(q.Path, asker)
	}
	if q.Quiet && q.Family == wire.OpFile {
		s.recorder.Passed(q.Path, q.Write)
		path, kept := importedFile(q)
		if !kept {
			return
		}
		q.Path = path
	}
	o := learn.Observation{Event: q.Event, Site: q.Site, Process: asker}
	switch q.Family {
	case wire.OpFile:
		o.Family, o.Op, o.Subject, o.Write = learn.FamilyFile, q.Event, q.Path, q.Write
	case wire.OpImport:
		o.Family, o.Op, o.Subject = learn.FamilyImport, "import", q.Name
	case wire.OpCall:
		// The outermost function is what the program called, and a grant of it is enough.
		o.Family, o.Op, o.Subject, o.Category = learn.FamilyCall, "call", q.Names[0], category(q.Names[0])
	case wire.OpNet:
		o.Family, o.Op, o.Proto, o.Host, o.Port = learn.FamilyNet, q.NetOp, q.Proto, q.Host, q.Port
	case wire.OpEval:
		o.Family, o.Op, o.Subject = learn.FamilyEval, q.Kind, q.Kind
	case wire.OpEvalRule:
		o.Family, o.Op, o.Subject, o.Event = learn.FamilyEval, learn.OpEvalRule, q.Item, q.Key
		if q.Quiet {
			o.Op = learn.OpEvalGiven
		}
	default: // learn-env
		o.Family, o.Op, o.Subject = learn.FamilyEnv, "read", q.Name
	}
	s.recorder.Add(o)
}

// ofAsker is a path beneath the folder of the asking process by the name that means it at each start: its number does not.
func ofAsker(path string, asker int) string {
	own := "/proc/" + strconv.Itoa(asker)
	if rest, ok := strings.CutPrefix(path, own); ok && asker > 0 && (rest == "" || rest[0] == '/') {
		return "/proc/self" + rest
	}
	return path
}

// importedFile says which of the files that the import system touches an import needs. It looks into every folder of
// sys.path for every name, and writes what it compiled: of that only the module that it read counts, and of a compiled
// module its source.
func importedFile(q wire.Question) (path string, kept bool) {
	if q.Write || q.Event != "open" {
		return "", false
	}
	folder, name := filepath.Split(q.Path)
	if filepath.Base(folder) != "__pycache__" {
		return q.Path, true
	}
	module, _, compiled := strings.Cut(name, ".")
	return filepath.Join(filepath.Dir(filepath.Clean(folder)), module+".py"), compiled
}

func (s *server) note(q wire.Question) {
	level := slog.LevelInfo
	switch strings.ToLower(q.Level) {
	case "debug":
		level = slog.LevelDebug
	case "warning", "warn":
		level = slog.LevelWarn
	case "error", "critical":
		level = slog.LevelError
	}
	s.logger.Log(context.Background(), level, "from the sandbox", "text", q.Text)
}
