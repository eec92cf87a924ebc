/* Extension modules that are raw memory by design: CPython's tests of itself. Who imports one has machine code, whatever
 * python-import says, so the import asks for `native`.
 */
#include "guard.h"

#include <string.h>

static const char *const REACHING[] = {"_testcapi", "_testinternalcapi", "_testlimitedcapi", "_testbuffer", "_testclinic", "_testclinic_limited",
                                       "_testexternalinspection", "_testmultiphase", "_testsinglephase", "_testimportmultiple",
                                       "_ctypes_test", "_xxtestfuzz", NULL};

/* By the last part of the name: it chooses the function of the library that is run, wherever a finder puts the module. */
static bool reaching(const char *name) {
    const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;
    for (const char *const *p = REACHING; *p; p++)
        if (strcmp(*p, last) == 0)
            return true;
    return false;
}

/* 0: go on. -1: refused, exception set. */
int psb_native_import(PyObject *name) {
    const char *s = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    PyErr_Clear();
    return s && reaching(s) ? psb_call_ask(psb_call_id("_testcapi", 9), "import") : 0;
}
