/* What a guarded function's call meets before it reaches the function: by kind of door.
 *
 * A door stands before a C function (patch.c) or one that is written in Python (shim.c); what is behind it is called by
 * psb_call_original() either way.
 */
#include "guard.h"

#include <string.h>

/* posix.mkdir. A folder that the start made because the profile names it with a slash at its end is there for the program
 * to make: the first time, that it exists is no error. */
static PyObject *call_mkdir(PSB_CALL) {
    (void)door;
    PyObject *result = psb_call_original(original, args, n, kwnames);
    if (result || !psb.enforce || !n || !PyErr_ExceptionMatches(PyExc_FileExistsError))
        return result;
    PyObject *type, *value, *tb, *bytes = NULL;
    static __thread char text[PSB_PATH_MAX];
    size_t len;
    PyErr_Fetch(&type, &value, &tb);
    if (PyUnicode_FSConverter(args[0], &bytes) &&
        psb_path_lexical(-1, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes), text, &len) && psb_file_made(text, len)) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(tb);
        result = Py_NewRef(Py_None);
    } else {
        PyErr_Clear();
        PyErr_Restore(type, value, tb);
    }
    Py_XDECREF(bytes);
    return result;
}

/* posix.listdir for the import system. A folder that is not exposed itself but holds something that is (the script's, a
 * module that -m names) is shown to importlib with just those names, or it would find nothing there. */
static PyObject *call_listdir(PSB_CALL) {
    const char *path = n == 1 && !kwnames && PyUnicode_Check(args[0]) ? PyUnicode_AsUTF8(args[0]) : NULL;
    static __thread char text[PSB_PATH_MAX];
    size_t len;
    PyErr_Clear();
    if (path && psb.enforce && !psb.learn && psb_nearest_caller() == PSB_IMPORTLIB &&
        psb_path_lexical(-1, path, strlen(path), text, &len) && !psb_file_exposed(text, len, PSB_READ)) {
        psb_note_refused_folder(text, len);
        PyObject *names = psb_file_names(text, len);
        if (!names || PyList_GET_SIZE(names))
            return names;
        Py_DECREF(names);
    }
    return psb_list_shown(door, original, args, n, kwnames);
}

/* A sensitive function: judged here, then its category carries to the doors behind it. */
static PyObject *judged(PSB_CALL, psb_pass pass) {
    if (psb_call_check(door->call, door->name) < 0)
        return NULL;
    psb_grant grant = {psb_grants, psb_call(door->call)->category, NULL, 0, false};
    psb_grants = &grant;
    PyObject *result = pass ? pass(door, original, args, n, kwnames) : psb_call_original(original, args, n, kwnames);
    psb_grants = grant.up;
    return result;
}

static PyObject *call_call(PSB_CALL) { return judged(door, original, args, n, kwnames, NULL); }

static PyObject *call_fork_exec(PSB_CALL) { return judged(door, original, args, n, kwnames, psb_fork_exec); }

static PyObject *call_hand_on(PSB_CALL) {
    return door->call >= 0 ? judged(door, original, args, n, kwnames, psb_hand_on) : psb_hand_on(door, original, args, n, kwnames);
}

static PyObject *call_own_number(PSB_CALL) { return judged(door, original, args, n, kwnames, psb_own_number); }

static const psb_pass PASS[] = {
    [DOOR_CALL] = call_call,
    [DOOR_FILE] = psb_call_file,
    [DOOR_ENV] = psb_call_env,
    [DOOR_EXPLAINED] = psb_explained,
    [DOOR_FORK_EXEC] = call_fork_exec,
    [DOOR_IMPORT] = psb_import_call,
    [DOOR_FIND_AND_LOAD] = psb_find_and_load,
    [DOOR_CREATE] = psb_create_module,
    [DOOR_DYNAMIC] = psb_create_dynamic,
    [DOOR_SOCKET] = psb_socket_init,
    [DOOR_LISTDIR] = call_listdir,
    [DOOR_SCANDIR] = psb_scan_shown,
    [DOOR_MKDIR] = call_mkdir,
    [DOOR_CLOSE] = psb_close,
    [DOOR_CLOSERANGE] = psb_closerange,
    [DOOR_SQL] = psb_sql_call,
    [DOOR_HAND_ON] = call_hand_on,
    [DOOR_EXEC] = psb_exec_module,
    [DOOR_CFFI] = psb_cffi_call,
    [DOOR_CODE] = psb_load_code,
    [DOOR_EVAL] = psb_eval_door,
    [DOOR_OWN_NUMBER] = call_own_number,
    [DOOR_LIBRARY] = psb_library_call,
    [DOOR_HOST] = psb_host_call,
    [DOOR_AGAIN] = psb_call_again,
};

PyObject *psb_pass_door(PSB_CALL) { return PASS[door->kind](door, original, args, n, kwnames); }
