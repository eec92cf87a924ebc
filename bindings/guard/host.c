/* Names of hosts, as the C library gets them.
 *
 * The functions of _socket turn a str into the bytes that are looked up by the "idna" codec, which is Python code that a program
 * can replace: asked a second time it may answer otherwise. So it is asked once, here, and the verdict and the call get the
 * answer. It also makes one name of the several that mean the same (wide digits, capitals that are no ASCII): rules are
 * written in ASCII.
 */
#include "guard.h"

#include <string.h>

/* A host as exact bytes, a new reference; what is no name stays as it is, for the call to say so. NULL with an exception. */
PyObject *psb_host_name(PyObject *host) {
    PyObject *bytes;
    if (PyUnicode_Check(host))
        bytes = PyUnicode_AsEncodedString(host, "idna", NULL);
    else if (PyByteArray_Check(host))
        bytes = PyBytes_FromObject(host);
    else
        return Py_NewRef(host);
    return bytes;
}

/* The C library reads up to the first NUL, and so it judges: getaddrinfo() lets one pass, the others say that it may not be. */
static PyObject *looked_up(const psb_door *door, PyObject *host, PyObject *bytes, bool cut) {
    if (!bytes || strlen(PyBytes_AS_STRING(bytes)) == (size_t)PyBytes_GET_SIZE(bytes))
        return bytes;
    if (cut) {
        Py_SETREF(bytes, PyBytes_FromString(PyBytes_AS_STRING(bytes)));
        return bytes;
    }
    Py_DECREF(bytes);
    return PyErr_Format(PyExc_TypeError, "%s() argument 1 must be encoded string without null bytes, not %.50s", door->name,
                        Py_TYPE(host)->tp_name);
}

/* getaddrinfo(host, port, ...), gethostbyname(name), gethostbyname_ex(name), gethostbyaddr(name): their events judge them. */
PyObject *psb_host_call(PSB_CALL) {
    enum { MAX = 8 };
    PyObject *copy[MAX];
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), at = n >= 1 ? 0 : -1;
    for (Py_ssize_t k = 0; at < 0 && kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, k), "host") == 0)
            at = n + k;
    bool info = strcmp(door->name, "getaddrinfo") == 0; /* it takes no bytearray */
    if (!psb.enforce || at < 0 || total > MAX || !(PyUnicode_Check(args[at]) || (PyByteArray_Check(args[at]) && !info)))
        return psb_call_original(original, args, n, kwnames);
    PyObject *name = looked_up(door, args[at], psb_host_name(args[at]), info);
    if (!name)
        return NULL;
    memcpy(copy, args, sizeof *copy * (size_t)total);
    copy[at] = name;
    PyObject *result = psb_call_original(original, copy, n, kwnames);
    Py_DECREF(name);
    return result;
}
