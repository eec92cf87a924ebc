package interpreter

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pysandboxes/pysandboxes/core/wire"
)

// cache is one file under XDG_CACHE_HOME/pysandboxes: the answer of one interpreter and the stamps that it rests on.
// No path is an answer without a cache: where there is no home, nothing is kept.
type cache struct {
	path string
	key  string
}

// entry is the content of a cache file.
type entry struct {
	Key         string // the product's version, the interpreter and the variables that steer it
	Stamps      []stamp
	Interpreter *Interpreter
}

// stamp is the state of one file or folder; Time 0 means absent.
type stamp struct {
	Path string
	Time int64 // modification, nanoseconds
	Size int64
	Node uint64
}

// CacheFolder is where answers are kept, "" where the environment has no place for them. A sandbox must not write there.
func CacheFolder(env map[string]string) string {
	base := env["XDG_CACHE_HOME"]
	if !filepath.IsAbs(base) {
		home := env["HOME"]
		if !filepath.IsAbs(home) {
			return ""
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "pysandboxes")
}

func cacheFor(exe string, env map[string]string) cache {
	folder := CacheFolder(env)
	if folder == "" {
		return cache{}
	}
	key := wire.Version + "\x00" + probeScript + "\x00" + exe
	for _, name := range []string{"HOME", "PYTHONUSERBASE", "LD_LIBRARY_PATH"} {
		key += "\x00" + env[name]
	}
	hash := fnv.New128a() // tells files apart, no more
	hash.Write([]byte(key))
	name := hex.EncodeToString(hash.Sum(nil))
	return cache{path: filepath.Join(folder, "interpreter-"+name+".json"), key: name}
}

// load gives the cached answer, nil where there is none that may be trusted and still holds.
func (c cache) load() *Interpreter {
	if c.path == "" {
		return nil
	}
	in, err := c.read()
	if err != nil {
		return nil
	}
	return in
}

func (c cache) read() (*Interpreter, error) {
	f, err := os.OpenFile(c.path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !own(info) || info.Size() > 4<<20 {
		return nil, errStale
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, err
	}
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, err
	}
	if e.Key != c.key || e.Interpreter == nil || len(e.Stamps) == 0 {
		return nil, errStale
	}
	for _, was := range e.Stamps {
		if take(was.Path) != was {
			return nil, errStale
		}
	}
	return e.Interpreter, nil
}

// own reports whether the file is a plain one of this user that nobody else may write.
func own(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

// save keeps an answer. A cache that cannot be written costs time, never a start.
func (c cache) save(in *Interpreter, sources []string) {
	if c.path == "" {
		return
	}
	e := entry{Key: c.key, Interpreter: in}
	for _, path := range sources {
		e.Stamps = append(e.Stamps, take(path))
	}
	data, err := json.Marshal(e)
	if err != nil {
		return
	}
	folder := filepath.Dir(c.path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return
	}
	tmp, err := os.CreateTemp(folder, ".interpreter-*") // 0600
	if err != nil {
		return
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if closed := tmp.Close(); err != nil || closed != nil {
		return
	}
	_ = os.Rename(tmp.Name(), c.path)
}

func take(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{Path: path}
	}
	s := stamp{Path: path, Time: info.ModTime().UnixNano(), Size: info.Size()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Node = stat.Ino
	}
	return s
}
