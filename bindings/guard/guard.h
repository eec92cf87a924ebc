/* The guard: what holds the policy inside a sandboxed interpreter.
 *
 * C only, no Go runtime: see docs/implementation.md for why. It consists of an audit hook (hook.c), shims on
 * functions that raise no event or too little of one (patch.c, shim.c, import.c), a read-only snapshot of what is allowed
 * (boot.c, table.c), and a socket on which everything else is asked of the Go engine in the supervisor (ask.c).
 *
 * Locking: everything that touches Python objects runs with the GIL held. The verdict cache and the question socket are
 * also used without it (sqlite.c) and by interpreters with a GIL of their own (3.12+): psb_lock keeps them apart. Whoever
 * holds it never waits for a GIL. A fork takes it first, so the child's copy of that state is consistent; the question
 * socket itself is replaced (ask.c). The call channel (channel.c) has its own mutex.
 *
 * Stack: the guard stands between any two frames of a recursion (imports in imports, __fspath__ that calls os.stat), and a
 * program may make threads with little stack. So what is large is `static __thread`, and used only while no Python code
 * runs. Python code runs where one would not look for it: 3.11 collects garbage, and runs finalizers, wherever a tracked
 * object is made, a frame object included (frames.c). What has to live past such a place is copied first.
 */
#ifndef PSB_GUARD_H
#define PSB_GUARD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if PY_VERSION_HEX < 0x030D0000
#define PyThreadState_GetUnchecked _PyThreadState_UncheckedGet
#endif
#ifndef PSB_VERSION
#define PSB_VERSION "0.0.0"
#endif
#define PSB_PROTOCOL 1
#define PSB_MESSAGE_MAX 65536 /* bytes of one question or answer */
#define PSB_PATH_MAX 8192     /* bytes of a canonical path, NUL included */

/* ---- msgpack.c: the few types that the wire uses -------------------------------------------------------------- */

typedef struct {
    const uint8_t *p, *end;
    bool bad; /* sticky: a malformed or unexpected item was met */
} mp_reader;

typedef struct {
    const char *s;
    size_t n;
} psb_text; /* not NUL-terminated */

typedef struct {
    uint8_t *buf;
    size_t len, cap;
    bool bad;   /* sticky: out of memory or over the limit */
    bool fixed; /* buf belongs to the caller and does not grow */
    int64_t number; /* of the question it holds */
} mp_writer;

uint32_t mp_read_array(mp_reader *r);
uint32_t mp_read_map(mp_reader *r);
int64_t mp_read_int(mp_reader *r);
bool mp_read_bool(mp_reader *r);
bool mp_read_nil(mp_reader *r); /* true and consumed, or false and untouched */
psb_text mp_read_text(mp_reader *r); /* str or bin */
void mp_skip(mp_reader *r);
void mp_array(mp_writer *w, uint32_t n);
void mp_map(mp_writer *w, uint32_t n);
void mp_int(mp_writer *w, int64_t v);
void mp_bool(mp_writer *w, bool v);
void mp_nil(mp_writer *w);
void mp_float(mp_writer *w, double v);
void mp_str(mp_writer *w, const char *s, size_t n);
void mp_bin(mp_writer *w, const void *s, size_t n);
void mp_raw(mp_writer *w, const void *s, size_t n);
int mp_object(mp_writer *w, PyObject *o, int depth); /* 0, or -1 with an exception */
PyObject *mp_to_object(mp_reader *r, int depth);     /* new reference, or NULL with an exception */

/* ---- boot.c: the snapshot ------------------------------------------------------------------------------------- */

enum { PSB_READ = 1, PSB_WRITE = 2, PSB_ANCESTOR = 8 }; /* bits of a file entry */
enum { PSB_UNHELD = 16 };                               /* of a need: no kernel layer judges this, so links are followed here */
enum { PSB_EXACT = 1, PSB_RUNTIME = 2, PSB_MADE = 4 };  /* flags of a file entry; made: by this start, for the program */
enum { PSB_PHASE_BOOT, PSB_PHASE_USER };

typedef struct {
    psb_text *items;
    uint32_t n;
} psb_list;

typedef struct psb_state {
    bool active;   /* this process is a sandboxed interpreter */
    bool partial;  /* false: complete mode */
    bool learn;    /* everything is allowed and reported */
    bool enforce;  /* the Python layer is on (py-sandbox=true) */
    bool resolve;  /* no kernel layer holds files: decide on resolved paths */
    bool ignore;   /* ignore rules exist */
    bool signals_held; /* the kernel lets no signal out of the sandbox */
    bool no_inet;  /* no net rule: the kernel refuses internet sockets, so that connect() would never be reached */
    bool eval_all;   /* python-api=ALLOW:dynamic-code */
    bool eval_guard; /* the profile has eval-* rules: strings are guarded */
    psb_text evals;  /* those rules, JSON */
    bool started;     /* the program's own code has begun */
    bool interactive; /* a person types it */
    bool typed;       /* that was so, or asked for by -i, when the program began */
    dev_t stdin_dev;
    ino_t stdin_ino;
    pthread_t main_thread;
    int phase;
    int boot_fd, announce_fd, call_fd;
    ino_t boot_ino, announce_ino; /* as they were at the start: the numbers are the program's to reuse */
    psb_text extra, package, guard_path;
    psb_list stdlib, site, targets;
} psb_state;

extern psb_state psb;
int psb_boot(int boot_fd, int announce_fd, int call_fd, const char *guard_path);
void psb_enter_user_phase(void);
bool psb_stdin_kept(void); /* is standard input what it was when the program began? */

/* ---- table.c: what needs no question -------------------------------------------------------------------------- */

uint64_t psb_hash(const char *s, size_t n);
int psb_table_add_file(psb_text path, int bits, int flags);
int psb_table_add_import(psb_text name, bool deny);
int psb_table_add_call(psb_text name);
bool psb_file_allowed(const char *path, size_t n, int need);
bool psb_file_runtime(const char *path, size_t n);          /* of the runtime set, and nowhere to be written */
bool psb_file_in_runtime(const char *path, size_t n);
bool psb_file_exposed(const char *path, size_t n, int need); /* by the profile, whatever ignore rules say */
bool psb_file_writable(const char *path, size_t n);          /* the same for writing */
bool psb_file_made(const char *path, size_t n); /* once: was this folder made by the start of the sandbox? */
PyObject *psb_file_names(const char *folder, size_t n); /* names beneath it that lead to an entry: a list */
bool psb_import_denied(const char *name, size_t n); /* by a rule of its own; such a rule wins */
bool psb_import_denies(void);                       /* is there any such rule? */
bool psb_import_allowed(const char *name, size_t n);
bool psb_call_allowed(int call);
bool psb_seen(char kind, const char *text, size_t n); /* remembered by psb_remember? */
void psb_remember(char kind, const char *text, size_t n);

/* ---- path.c --------------------------------------------------------------------------------------------------- */

/* Each writes an absolute path and its length; false, and errno, when it does not fit or cannot be formed. */
bool psb_path_literal(int dir_fd, const char *path, size_t n, char *out, size_t *len); /* as written, ".." and all */
bool psb_path_lexical(int dir_fd, const char *path, size_t n, char *out, size_t *len);
bool psb_path_resolve(const char *absolute, bool follow_last, char *out, size_t *len);
bool psb_path_linked(const char *absolute, bool follow_last);
bool psb_path_plain(const char *path, size_t n); /* was it found to be no link, and to lead over none? */

/* ---- ask.c: questions to the Go engine ------------------------------------------------------------------------ */

typedef struct {
    bool allow;
    int exc, err;
    psb_text message;
    const uint8_t *denial, *denial_end; /* msgpack map, or NULL */
    bool lost;                          /* nobody answered: refused */
    uint8_t *buf;                       /* what the texts point into */
} psb_answer;

void psb_lock(void); /* recursive */
void psb_unlock(void);
int psb_ask_start(void);                 /* 0, or -1: this process cannot ask */
void psb_question(mp_writer *w, const char *op, uint32_t args, bool reply);
void psb_ask(mp_writer *w, psb_answer *a); /* sends w, waits; frees w */
void psb_tell(mp_writer *w);               /* sends w without waiting; frees w */
void psb_answer_free(psb_answer *a);
int psb_question_fd(void);
bool psb_own_fd(int fd); /* is it one of the guard's descriptors? */
int psb_fd_high(int fd); /* moves fd out of the program's way; the new number */

/* ---- exceptions.c --------------------------------------------------------------------------------------------- */

PyObject *psb_exception_class(const char *name); /* borrowed, or NULL with an exception */
int psb_raise(psb_answer *a, PyObject *subject); /* -1 with the exception set; frees a */
int psb_carry(PyObject *error, PyObject *refusal); /* another exception tells of a refusal: as a note and as its denials */
int psb_carry_answer(PyObject *error, const psb_answer *a); /* the same of an answer that raised nothing and is not recorded */
extern const char *const psb_exception_names[];

/* ---- denials.c: what this process was refused ------------------------------------------------------------------ */

void psb_denial_record(const uint8_t *raw, size_t n, const char *site);
PyObject *psb_denial_map(const uint8_t *raw, size_t n, const char *site); /* new dict, or NULL with an exception */
PyObject *psb_denials_enter(PyObject *record); /* in this context, from here on; NULL: a new one. New reference */
PyObject *psb_denials_list(PyObject *record);  /* new list, the newest last; NULL: of this context's and the process's */

/* ---- frames.c: who is calling --------------------------------------------------------------------------------- */

typedef enum { PSB_NO_FRAME, PSB_IMPORTLIB, PSB_STDLIB, PSB_OTHER } psb_caller;
psb_caller psb_nearest_caller(void);
psb_caller psb_charged_caller(void); /* PSB_OTHER when any frame outside the standard library is on the stack */
bool psb_static_import(const char *name, size_t n); /* the running instruction is `import name` */
bool psb_frame_in(const char *const *files);        /* nearest frame's file below the standard library, NULL-terminated list */
bool psb_frame_rewrites(void);                       /* the package's own rewriting of evaluated code */
bool psb_frame_serves(void);                         /* the package's own serving code in a child */
bool psb_running_is(const PyFrameObject *frame);      /* the nearest frame is that one */
bool psb_outside_is(const PyFrameObject *frame);      /* ... the nearest one outside the standard library */
bool psb_package_import(const char *name, size_t n); /* the running instruction is the package's own `import name` */
bool psb_outside_serves(void);                       /* ... is the nearest one outside the standard library */
bool psb_frame_entered(const char *const *files, const char *const *functions, bool *first);
bool psb_importing(void);                            /* the import system itself is at work */
bool psb_frame_function(const char *const *names);
bool psb_frame_writes(const char *const *names);    /* its code has one of the names in it */
PyObject *psb_frame_local(const char *function, const char *name); /* a new reference, or NULL where it is not so */
bool psb_frame_subscripts(void);                    /* the running instruction is x[y] */
size_t psb_site(char *out, size_t cap);             /* "file:line" of the nearest frame outside the standard library */

/* ---- identity.c: is a code object what the file that it names holds? ------------------------------------------ */

bool psb_code_verified(PyCodeObject *code);
bool psb_code_never_verified(PyCodeObject *code); /* from here on, whatever its file holds */
bool psb_own_event(PyObject *args); /* raised by the guard's own reading of a file, or of what the application sent */
PyObject *psb_own_unmarshal(PyObject *bytes, Py_ssize_t from);

/* ---- template.c: what the standard library's code generators may run ------------------------------------------ */

bool psb_template_text(const char *source);
bool psb_property_text(const char *source); /* multiprocessing.sharedctypes' */

/* ---- loaded.c: code that the import system has read from a file ----------------------------------------------- */

bool psb_code_loaded(PyObject *code);
bool psb_cache_of_program(const char *path, size_t n); /* bytecode beside a source, where the program may write it */
bool psb_code_sent(PyObject *code); /* by the application, sent.c */
bool psb_code_mark_sent(PyObject *code);

/* ---- prompt.c: the interactive prompt ---------------------------------------------------------------------------- */

void psb_prompt_begins(void);
bool psb_prompt_completes(const char *source);
int psb_prompt_module(const char *name, PyObject *module);

/* ---- sent.c: functions that the application sends ---------------------------------------------------------------- */

PyObject *psb_sent_payload(const uint8_t *data, size_t n);
PyObject *psb_sent_function(PyObject *args);

/* ---- delivered.c: what the application's calls bring --------------------------------------------------------------- */

int psb_delivered_open(const char *main_package); /* before any code of the program has run */
PyObject *psb_delivered_bytes(const uint8_t *data, size_t n); /* a payload: a new reference, or NULL with an exception */
PyObject *psb_delivered_object(PyObject *bytes);
PyObject *psb_delivered_data(PyObject *payload); /* its bytes, borrowed, or NULL with an exception */
PyObject *psb_delivered_loads(PyObject *payload);
bool psb_delivered_class(PyObject *module, PyObject *name); /* the payload that is read just now names it */
bool psb_delivered_import(PyObject *subject, const char *name, size_t n);

/* ---- the families ---------------------------------------------------------------------------------------------- */

int psb_hook(const char *event, PyObject *args, void *unused);
extern uint64_t psb_judged; /* how many events of this process had a judge: shows that a run was held at all */
int psb_file_event(const char *spec, const char *event, PyObject *args);
int psb_ioctl_event(PyObject *args);
int psb_file_by_descriptor(PyObject *number, const char *event);
bool psb_fcntl_event(PyObject *args); /* does this command of fcntl.fcntl reach another process? */
int psb_file_object(PyObject *path, int dir_fd, int need, bool follow, bool metadata, const char *event);
bool psb_file_look(const char *path, size_t n, int dir_fd, int need, bool follow, char *text, size_t *len, bool *allowed);
int psb_open_need(long flags);
PyObject *psb_own_copy(PyObject *text); /* an exact str or bytes that nobody else has */
extern __thread PyObject *psb_judged_open; /* the path of an open() that a shim has judged already */
int psb_call_check(int call, const char *event);
int psb_call_ask(int call, const char *event); /* whoever the caller is */
bool psb_own_child(long pid); /* child.c */
int psb_find_class(int call, PyObject *args); /* pickle.find_class: values are free */
int psb_eval_check(const char *kind, PyObject *args);
bool psb_eval_spared(void);
int psb_net_event(const char *event, PyObject *args);
int psb_native_import(PyObject *name); /* an extension of this name is about to be loaded */
int psb_extension_event(PyObject *file); /* an extension is about to be loaded from this file */
int psb_import_check(PyObject *name); /* the finder's own question */
void psb_import_missing(PyObject *name); /* a ModuleNotFoundError is set: explain it when a rule is the cause */
void psb_note_path(void); /* the program begins */
void psb_note_refused_folder(const char *path, size_t n);
int psb_net_listen(PyObject *sock);                  /* listen(), where no bind() has been allowed */
void psb_net_bound(PyObject *sock, PyObject *address); /* an allowed bind() has succeeded */
int psb_net_renamed(PyObject *args); /* os.rename, os.link: what reaching a local socket takes */
int psb_net_name(const char *op, PyObject *sock, PyObject *address);    /* an address whose host has to be looked up */
PyObject *psb_host_name(PyObject *host);
PyObject *psb_net_address(PyObject *sock, PyObject *address);          /* as the call shall get it */
int psb_guard_methods(const char *name, PyObject *module);
bool psb_sqlite_held(void);                          /* is what SQL opens judged? */
int psb_sqlite_methods(const char *name, PyObject *module);
int psb_environment_event(PyObject *args);                 /* os.putenv */
int psb_leads_anywhere(const char *event);                /* -1: a refusal that no rule could lift */
int psb_guard_semaphore(PyObject *module);
int psb_guard_fileio(const char *name, PyObject *module);
int psb_guard_cffi(PyObject *module);
int psb_guard_ctypes(PyObject *module);                      /* _ctypes' types */
int psb_ctypes_event(const char *event, PyObject *args); /* 1: nothing has to be judged */
int psb_install_base(void);
int psb_install_module(PyObject *name, PyObject *module);

typedef struct {
    const char *name, *category;
    int flags;
} psb_call_row;
typedef struct {
    const char *event;
    int call;
} psb_event_row;
typedef struct {
    const char *event, *spec;
} psb_event_row2;
typedef struct {
    const char *module, *attr;
    int call;
} psb_shim_row;
typedef struct {
    const char *module, *attr, *spec;
} psb_shim_row2;
const psb_call_row *psb_call(int id);
int psb_call_id(const char *name, size_t n);

/* A grant carries from an outer function (subprocess.run) to the doors behind it, while the standard library runs. */
typedef struct psb_grant {
    struct psb_grant *up;
    const char *category; /* or NULL */
    const char *import;   /* name being imported, or NULL */
    size_t import_len;
    bool standard; /* by a statement of the standard library */
} psb_grant;
extern __thread psb_grant *psb_grants;

/* ---- door.c, patch.c, shim.c: guarded functions ------------------------------------------------------------------ */

enum psb_door_kind { DOOR_CALL, DOOR_FILE, DOOR_ENV, DOOR_FORK_EXEC, DOOR_IMPORT, DOOR_FIND_AND_LOAD, DOOR_CREATE, DOOR_DYNAMIC, DOOR_SOCKET, DOOR_LISTDIR, DOOR_SCANDIR, DOOR_MKDIR, DOOR_CLOSE, DOOR_CLOSERANGE, DOOR_SQL, DOOR_EXEC, DOOR_CFFI, DOOR_HAND_ON, DOOR_CODE, DOOR_EVAL, DOOR_OWN_NUMBER, DOOR_EXPLAINED, DOOR_LIBRARY, DOOR_HOST, DOOR_AGAIN };

typedef struct {
    enum psb_door_kind kind;
    int call;         /* of the registry, or -1 */
    const char *spec; /* of a path function, or NULL */
    const char *name; /* what the function calls itself; as long as the process lives */
} psb_door;

/* What stands behind a door, for one call: a Python function, or a C function with what it was called with. */
typedef struct {
    PyObject *function; /* NULL: the C function below */
    int convention;
    PyCFunction c;
    PyObject *self;
    PyTypeObject *cls;
    PyObject *const *given; /* the arguments as they came: where they are unchanged, so are tuple and dict */
    PyObject *given_names, *tuple, *dict;
} psb_original;

#define PSB_CALL const psb_door *door, const psb_original *original, PyObject *const *args, Py_ssize_t n, PyObject *kwnames
typedef PyObject *(*psb_pass)(PSB_CALL);
PyObject *psb_pass_door(PSB_CALL);
PyObject *psb_call_original(const psb_original *original, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
int psb_patch(PyMethodDef *def, enum psb_door_kind kind, int call, const char *spec); /* 0, or -1 with an exception */
bool psb_types_own(PyObject *descriptor, PyTypeObject *type, const void *function, const void *module);
void psb_patch_slot(PyTypeObject *type, const void *module, const char *name, void **slot, void **original, void *guarded);
PyObject *psb_shim_new(enum psb_door_kind kind, PyObject *function, int call, const char *spec);
bool psb_is_shim(PyObject *o);
PyObject *psb_call_file(PSB_CALL);
PyObject *psb_plain_path(const psb_door *door, PyObject *path);
PyObject *psb_list_shown(PSB_CALL); /* names.c */
PyObject *psb_scan_shown(PSB_CALL);
PyObject *psb_entry_name(PyObject *entry); /* of a DirEntry: borrowed */
PyObject *psb_import_call(PSB_CALL);
PyObject *psb_find_and_load(PSB_CALL);
PyObject *psb_create_dynamic(PSB_CALL);
PyObject *psb_create_module(PSB_CALL);
PyObject *psb_exec_module(PSB_CALL);
PyObject *psb_cffi_call(PSB_CALL);
PyObject *psb_library_call(PSB_CALL); /* library_files.c */
PyObject *psb_fork_exec(PSB_CALL);
PyObject *psb_socket_init(PSB_CALL);
PyObject *psb_host_call(PSB_CALL);
PyObject *psb_close(PSB_CALL);
PyObject *psb_closerange(PSB_CALL);
PyObject *psb_sql_call(PSB_CALL);
PyObject *psb_dbm_open(PSB_CALL);
PyObject *psb_call_env(PSB_CALL);
PyObject *psb_readline_call(PSB_CALL);
PyObject *psb_own_number(PSB_CALL);
PyObject *psb_explained(PSB_CALL);
PyObject *psb_call_again(PSB_CALL); /* again.c */
PyObject *psb_connect_again(PyCFunction original, PyObject *self, PyObject *address);
void psb_tell_file(PyObject *error, const char *path, int need, const char *event); /* hangs the refusal of a file on an error */
typedef struct {
    const char *module, *attr, *spec;
} psb_explained_row;
extern const psb_explained_row PSB_EXPLAINED[];
PyObject *psb_hand_on(PSB_CALL);
PyObject *psb_exec_environment(PyObject *given);
PyObject *psb_load_code(PSB_CALL);
PyObject *psb_eval_door(PSB_CALL); /* eval_door.c */
int psb_exec_event(const char *event, PyObject *args); /* a granted start of a program: may its file be run? */
int psb_exec_file(PyObject *path);

/* ---- channel*.c ------------------------------------------------------------------------------------------------------------------ */

#define PSB_PART (1 << 20) /* bytes of a payload in one frame */
int psb_channel_open(int fd);
int psb_channel_ready(int fd);
PyObject *psb_channel_recv(void);
void psb_channel_close(void);
PyObject *psb_channel_lend(void);
PyObject *psb_channel_look(void);
PyObject *psb_channel_leave(void);
PyObject *psb_channel_take(PyObject *known);
PyObject *psb_channel_target(const uint8_t *data, size_t n);
PyObject *psb_channel_send(PyObject *args);

/* ---- channel_window.c --------------------------------------------------------------------------------------------------------- */

void psb_window_begin(int64_t id);
void psb_window_spend(int64_t id, size_t n);
void psb_window_taken(int64_t id, int64_t n);
void psb_window_free(int64_t id);
void psb_window_forget(int64_t id);
void psb_window_close(void);

#endif
