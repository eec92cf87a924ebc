/* msgpack, the subset that the wire uses: nil, bool, integers, float64, str, bin, array, map. */
#include "guard.h"

#include <string.h>

static uint64_t take(mp_reader *r, int n) {
    uint64_t v = 0;
    if (r->bad || r->end - r->p < n) {
        r->bad = true;
        return 0;
    }
    while (n--)
        v = v << 8 | *r->p++;
    return v;
}

static int peek(mp_reader *r) {
    if (r->bad || r->p >= r->end) {
        r->bad = true;
        return -1;
    }
    return *r->p;
}

static uint32_t count(mp_reader *r, int fix, int fix_max, int first) {
    int c = peek(r);
    if (c < 0)
        return 0;
    r->p++;
    if (c >= fix && c <= fix + fix_max)
        return (uint32_t)(c - fix);
    if (c == first)
        return (uint32_t)take(r, 2);
    if (c == first + 1)
        return (uint32_t)take(r, 4);
    r->bad = true;
    return 0;
}

/* Every item is at least a byte: a count beyond the bytes that are left is a lie, refused before anyone allocates for it. */
static uint32_t bounded(mp_reader *r, uint32_t n) {
    if ((size_t)(r->end - r->p) < n) {
        r->bad = true;
        return 0;
    }
    return n;
}

uint32_t mp_read_array(mp_reader *r) { return bounded(r, count(r, 0x90, 15, 0xdc)); }
uint32_t mp_read_map(mp_reader *r) { return bounded(r, count(r, 0x80, 15, 0xde)); }

int64_t mp_read_int(mp_reader *r) {
    int c = peek(r);
    if (c < 0)
        return 0;
    r->p++;
    if (c <= 0x7f)
        return c;
    if (c >= 0xe0)
        return (int8_t)c;
    switch (c) {
    case 0xcc: return (int64_t)take(r, 1);
    case 0xcd: return (int64_t)take(r, 2);
    case 0xce: return (int64_t)take(r, 4);
    case 0xcf: {
        uint64_t v = take(r, 8);
        if (v > INT64_MAX)
            r->bad = true;
        return (int64_t)v;
    }
    case 0xd0: return (int8_t)take(r, 1);
    case 0xd1: return (int16_t)take(r, 2);
    case 0xd2: return (int32_t)take(r, 4);
    case 0xd3: return (int64_t)take(r, 8);
    }
    r->bad = true;
    return 0;
}

bool mp_read_bool(mp_reader *r) {
    int c = peek(r);
    if (c == 0xc2 || c == 0xc3) {
        r->p++;
        return c == 0xc3;
    }
    r->bad = true;
    return false;
}

bool mp_read_nil(mp_reader *r) {
    if (peek(r) != 0xc0)
        return false;
    r->p++;
    return true;
}

psb_text mp_read_text(mp_reader *r) {
    psb_text t = {"", 0};
    int c = peek(r);
    size_t n = 0;
    if (c < 0)
        return t;
    r->p++;
    if (c >= 0xa0 && c <= 0xbf)
        n = (size_t)(c - 0xa0);
    else if (c == 0xd9 || c == 0xc4)
        n = take(r, 1);
    else if (c == 0xda || c == 0xc5)
        n = take(r, 2);
    else if (c == 0xdb || c == 0xc6)
        n = take(r, 4);
    else
        r->bad = true;
    if (r->bad || (size_t)(r->end - r->p) < n) {
        r->bad = true;
        return t;
    }
    t.s = (const char *)r->p;
    t.n = n;
    r->p += n;
    return t;
}

static void skip(mp_reader *r, int depth) {
    int c = peek(r);
    if (c < 0)
        return;
    if (depth > 32) {
        r->bad = true;
        return;
    }
    if (c == 0xc0 || c == 0xc2 || c == 0xc3) {
        r->p++;
    } else if (c == 0xcb || c == 0xca) {
        r->p++;
        take(r, c == 0xcb ? 8 : 4);
    } else if ((c >= 0x90 && c <= 0x9f) || c == 0xdc || c == 0xdd) {
        for (uint32_t n = mp_read_array(r); n-- && !r->bad;)
            skip(r, depth + 1);
    } else if ((c >= 0x80 && c <= 0x8f) || c == 0xde || c == 0xdf) {
        for (uint32_t n = mp_read_map(r); n-- && !r->bad;) {
            skip(r, depth + 1);
            skip(r, depth + 1);
        }
    } else if ((c >= 0xa0 && c <= 0xbf) || (c >= 0xc4 && c <= 0xc6) || (c >= 0xd9 && c <= 0xdb)) {
        mp_read_text(r);
    } else {
        mp_read_int(r);
    }
}

void mp_skip(mp_reader *r) { skip(r, 0); }

/* ---- writing ---- */

void mp_raw(mp_writer *w, const void *s, size_t n) {
    if (w->bad)
        return;
    if (w->cap - w->len < n) {
        size_t cap = w->cap ? w->cap : 256;
        while (cap - w->len < n) {
            if (cap > SIZE_MAX / 2) {
                w->bad = true;
                return;
            }
            cap *= 2;
        }
        uint8_t *grown = w->fixed ? NULL : realloc(w->buf, cap);
        if (!grown) {
            w->bad = true;
            return;
        }
        w->buf = grown;
        w->cap = cap;
    }
    memcpy(w->buf + w->len, s, n);
    w->len += n;
}

static void put(mp_writer *w, int tag, uint64_t v, int n) {
    uint8_t b[9];
    b[0] = (uint8_t)tag;
    for (int i = 0; i < n; i++)
        b[1 + i] = (uint8_t)(v >> 8 * (n - 1 - i));
    mp_raw(w, b, (size_t)n + 1);
}

void mp_array(mp_writer *w, uint32_t n) {
    if (n < 16)
        put(w, 0x90 | (int)n, 0, 0);
    else
        put(w, 0xdd, n, 4);
}

void mp_map(mp_writer *w, uint32_t n) {
    if (n < 16)
        put(w, 0x80 | (int)n, 0, 0);
    else
        put(w, 0xdf, n, 4);
}

void mp_int(mp_writer *w, int64_t v) {
    if (v >= 0 && v < 128)
        put(w, (int)v, 0, 0);
    else if (v >= 0 && v <= UINT32_MAX)
        put(w, 0xce, (uint64_t)v, 4);
    else
        put(w, 0xd3, (uint64_t)v, 8);
}

void mp_bool(mp_writer *w, bool v) { put(w, v ? 0xc3 : 0xc2, 0, 0); }
void mp_nil(mp_writer *w) { put(w, 0xc0, 0, 0); }

void mp_float(mp_writer *w, double v) {
    uint64_t bits;
    memcpy(&bits, &v, 8);
    put(w, 0xcb, bits, 8);
}

void mp_str(mp_writer *w, const char *s, size_t n) {
    if (n < 32)
        put(w, 0xa0 | (int)n, 0, 0);
    else
        put(w, 0xdb, n, 4);
    mp_raw(w, s, n);
}

void mp_bin(mp_writer *w, const void *s, size_t n) {
    if (n > UINT32_MAX) {
        w->bad = true;
        return;
    }
    put(w, 0xc6, n, 4);
    mp_raw(w, s, n);
}

/* ---- Python objects ---- */

static int object_text(mp_writer *w, PyObject *o) {
    Py_ssize_t n;
    const char *s = PyUnicode_AsUTF8AndSize(o, &n);
    if (s) {
        mp_str(w, s, (size_t)n);
        return 0;
    }
    PyErr_Clear(); /* lone surrogates: shown escaped, so that what is sent is UTF-8 */
    PyObject *b = PyUnicode_AsEncodedString(o, "utf-8", "backslashreplace");
    if (!b)
        return -1;
    mp_str(w, PyBytes_AS_STRING(b), (size_t)PyBytes_GET_SIZE(b));
    Py_DECREF(b);
    return 0;
}

int mp_object(mp_writer *w, PyObject *o, int depth) {
    if (depth > 64) {
        PyErr_SetString(PyExc_ValueError, "pack: nested too deeply");
        return -1;
    }
    if (o == Py_None) {
        mp_nil(w);
    } else if (PyBool_Check(o)) {
        mp_bool(w, o == Py_True);
    } else if (PyLong_Check(o)) {
        long long v = PyLong_AsLongLong(o);
        if (v == -1 && PyErr_Occurred())
            return -1;
        mp_int(w, v);
    } else if (PyFloat_Check(o)) {
        mp_float(w, PyFloat_AS_DOUBLE(o));
    } else if (PyUnicode_Check(o)) {
        if (object_text(w, o) < 0)
            return -1;
    } else if (PyBytes_Check(o)) {
        mp_bin(w, PyBytes_AS_STRING(o), (size_t)PyBytes_GET_SIZE(o));
    } else if (PyList_Check(o) || PyTuple_Check(o)) {
        PyObject *seq = PySequence_Tuple(o); /* a copy: another thread may change a list meanwhile */
        if (!seq)
            return -1;
        Py_ssize_t n = PyTuple_GET_SIZE(seq);
        mp_array(w, (uint32_t)n);
        for (Py_ssize_t i = 0; i < n; i++) {
            if (mp_object(w, PyTuple_GET_ITEM(seq, i), depth + 1) < 0) {
                Py_DECREF(seq);
                return -1;
            }
        }
        Py_DECREF(seq);
    } else if (PyDict_Check(o)) {
        PyObject *items = PyDict_Items(o);
        if (!items)
            return -1;
        Py_ssize_t n = PyList_GET_SIZE(items);
        mp_map(w, (uint32_t)n);
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *pair = PyList_GET_ITEM(items, i);
            if (mp_object(w, PyTuple_GET_ITEM(pair, 0), depth + 1) < 0 ||
                mp_object(w, PyTuple_GET_ITEM(pair, 1), depth + 1) < 0) {
                Py_DECREF(items);
                return -1;
            }
        }
        Py_DECREF(items);
    } else {
        PyErr_Format(PyExc_TypeError, "pack: %.100s is not a plain value", Py_TYPE(o)->tp_name);
        return -1;
    }
    if (w->bad) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

PyObject *mp_to_object(mp_reader *r, int depth) {
    int c = peek(r);
    if (c < 0 || depth > 32)
        goto bad;
    if (c == 0xc0) {
        r->p++;
        Py_RETURN_NONE;
    }
    if (c == 0xc2 || c == 0xc3)
        return PyBool_FromLong(mp_read_bool(r));
    if ((c >= 0x90 && c <= 0x9f) || c == 0xdc || c == 0xdd) {
        uint32_t n = mp_read_array(r);
        PyObject *list = PyList_New(0);
        for (uint32_t i = 0; list && i < n; i++) {
            PyObject *v = mp_to_object(r, depth + 1);
            if (!v || PyList_Append(list, v) < 0)
                Py_CLEAR(list);
            Py_XDECREF(v);
        }
        return list;
    }
    if ((c >= 0x80 && c <= 0x8f) || c == 0xde || c == 0xdf) {
        uint32_t n = mp_read_map(r);
        PyObject *dict = PyDict_New();
        for (uint32_t i = 0; dict && i < n; i++) {
            PyObject *k = mp_to_object(r, depth + 1);
            PyObject *v = k ? mp_to_object(r, depth + 1) : NULL;
            if (!v || PyDict_SetItem(dict, k, v) < 0)
                Py_CLEAR(dict);
            Py_XDECREF(k);
            Py_XDECREF(v);
        }
        return dict;
    }
    if (c >= 0xc4 && c <= 0xc6) {
        psb_text t = mp_read_text(r);
        if (r->bad)
            goto bad;
        return PyBytes_FromStringAndSize(t.s, (Py_ssize_t)t.n);
    }
    if ((c >= 0xa0 && c <= 0xbf) || (c >= 0xd9 && c <= 0xdb)) {
        psb_text t = mp_read_text(r);
        if (r->bad)
            goto bad;
        return PyUnicode_DecodeUTF8(t.s, (Py_ssize_t)t.n, "backslashreplace");
    }
    int64_t v = mp_read_int(r);
    if (!r->bad)
        return PyLong_FromLongLong(v);
bad:
    PyErr_SetString(PyExc_ValueError, "malformed message from the supervisor");
    return NULL;
}
