/* What dataclasses and namedtuple may run without a dynamic-code rule: the text of their own templates.
 *
 * Names stand in that text as the program gave them: @dataclass takes any key of __annotations__ for a field's name, and a
 * program can replace the helpers that put the text together. So the text itself is looked at, token by token, just before it
 * is compiled. It may read names and attributes, compare, and assign to attributes, as the templates do; what it calls is
 * among the functions that they call. Anything that a hostile name could want beyond that (another call, an attribute of an
 * attribute, a subscript, another keyword, a comment) makes it the program's own, charged like any other exec().
 *
 * These are rules of words, not the templates' letter, so that a bugfix release may change a line.
 */
#include "guard.h"

#include <string.h>

/* Keywords that the templates use; a keyword is never called. */
static const char *const KEYWORDS[] = {"def", "return", "if", "else", "is", "in", "or", "and", "not", "raise", "pass", "None", "True",
                                       "False", "NotImplemented", NULL};
static const char *const FOREIGN[] = {"as", "assert", "async", "await", "break", "class", "continue", "del", "elif", "except",
                                      "finally", "for", "from", "global", "import", "lambda", "nonlocal", "try", "while",
                                      "with", "yield", NULL};
static const char *const CALLED[] = {"hash", "super", "type", "FrozenInstanceError", "_tuple_new", "__dataclasses_recursive_repr",
                                     "__post_init__", NULL};
/* Called on object and on super() alone. */
static const char *const SETTERS[] = {"__setattr__", "__delattr__", NULL};

static bool letter(unsigned char c) { return c >= 0x80 || c == '_' || (c | 32u) - 'a' < 26u; }
static bool within(unsigned char c) { return letter(c) || (c >= '0' && c <= '9'); }

typedef struct {
    const char *s;
    size_t n;
} word;

static bool is(word w, const char *text) { return strlen(text) == w.n && memcmp(w.s, text, w.n) == 0; }

static bool among(word w, const char *const *list) {
    for (; *list; list++)
        if (is(w, *list))
            return true;
    return false;
}

static bool begins(word w, const char *text) { return w.n > strlen(text) && memcmp(w.s, text, strlen(text)) == 0; }

static word take(const char **p) {
    word w = {*p, 0};
    while (within((unsigned char)**p))
        ++*p;
    w.n = (size_t)(*p - w.s);
    return w;
}

/* {name!r}, {self.name!r} or {self.__class__.__qualname__}; *p is past the brace. */
static bool replacement(const char **p) {
    int names = 0;
    word last = {0};
    do {
        *p += names > 0;
        if (!letter((unsigned char)**p))
            return false;
        word w = take(p);
        if (names == 2 && !is(last, "__class__"))
            return false;
        last = w;
    } while (++names < 3 && **p == '.');
    if ((*p)[0] == '!' && (*p)[1] == 'r')
        *p += 2;
    return *(*p)++ == '}';
}

/* To the end of a string, *p at its first quote: names, or in an f-string names and what prints them. */
static bool string(const char **p, bool formatted) {
    char quote = *(*p)++;
    while (**p != quote) {
        unsigned char c = (unsigned char)*(*p)++;
        if (within(c))
            continue;
        if (!formatted || !c || !strchr("{ ,=()", c) || (c == '{' && !replacement(p)))
            return false;
    }
    ++*p;
    return **p != '\'' && **p != '"'; /* nor '''...''' */
}

/* May w be called, standing after the token `before`, and after owner where that is a dot? */
static bool may_call(word w, word before, char dot_after, word owner) {
    if (is(before, "def"))
        return true;
    if (among(w, SETTERS))
        return dot_after == ')' || (dot_after == 'a' && is(owner, "__dataclass_builtins_object__"));
    if (is(w, "__post_init__"))
        return dot_after == 'a';
    return !dot_after && (among(w, CALLED) || begins(w, "_dflt_") || begins(w, "__dataclass_dflt_"));
}

bool psb_template_text(const char *source) {
    static const char super[] = "super(cls, self)";
    const char *p = source;
    char last = 0;      /* the token before: 'a' a name, 'k' a keyword, 's' a string, or the character itself */
    word before = {0};  /* if that is a name or a keyword */
    word owner = {0};   /* the name before a dot */
    char dot_after = 0; /* what stood before the dot that this name follows */
    int chain = 0;      /* names joined by dots so far */
    int depth = 0;      /* of brackets */
    if (strncmp(p, "lambda ", 7) == 0) /* namedtuple's */
        p += 7;
    while (*p) {
        unsigned char c = (unsigned char)*p;
        if (c == ' ') {
            p++;
        } else if (c == '\n') { /* a statement's end: no template goes on in the next line */
            if (depth)
                return false;
            last = 0;
            before = (word){0};
            p++;
        } else if (letter(c)) {
            word w = take(&p);
            if (last == 'a' && !among(w, KEYWORDS))
                return false;
            if (*p == '"' || *p == '\'') {
                if (!is(w, "f") || last == 's' || last == '.' || !string(&p, true))
                    return false;
                last = 's';
                continue;
            }
            if (among(w, FOREIGN))
                return false;
            chain = last == '.' ? chain + 1 : 1;
            if (last != '.')
                dot_after = 0;
            if (chain > 2 && !is(owner, "__class__"))
                return false;
            bool keyword = among(w, KEYWORDS);
            const char *next = p;
            while (*next == ' ')
                next++;
            if (*next == '(' && (next == p || !keyword) && !may_call(w, before, dot_after, owner))
                return false;
            before = w;
            last = keyword ? 'k' : 'a';
        } else if (c == '"' || c == '\'') {
            if (last == 's' || !string(&p, false))
                return false;
            last = 's';
        } else {
            if (!strchr("().,:=<>+-*{}@", c) || (c == '(' && (last == ')' || last == 's' || last == '}')) || (c == '=' && last == ':') ||
                (c == '-' && p[1] != '>') || (c == '@' && strncmp(p, "@__dataclasses_recursive_repr()\n", 32) != 0))
                return false;
            if (c == '.') {
                if (last != 'a' && last != ')')
                    return false;
                if (last == ')') {
                    size_t n = sizeof super - 1;
                    if ((size_t)(p - source) < n || memcmp(p - n, super, n) != 0)
                        return false;
                    chain = 1;
                }
                owner = before;
                dot_after = last;
            }
            if (c != '.')
                before = (word){0};
            depth += (c == '(' || c == '{') - (c == ')' || c == '}');
            if (depth < 0)
                return false;
            last = (char)c;
            p++;
        }
    }
    return true;
}

/* The one text of multiprocessing.sharedctypes, of a name: letter for letter, the same from 3.11 to 3.13. */
bool psb_property_text(const char *source) {
    static const char *const parts[] = {"\ndef get", "(self):\n    self.acquire()\n    try:\n        return self._obj.", "\n    finally:\n        self.release()\ndef set",
                                        "(self, value):\n    self.acquire()\n    try:\n        self._obj.", " = value\n    finally:\n        self.release()\n",
                                        " = property(get", ", set", ")\n"};
    word name = {NULL, 0};
    const char *p = source;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t n = strlen(parts[i]);
        if (strncmp(p, parts[i], n) != 0)
            return false;
        p += n;
        if (i + 1 == sizeof parts / sizeof *parts)
            break;
        word w = letter((unsigned char)*p) ? take(&p) : (word){p, 0};
        if (!w.n || (name.n && (w.n != name.n || memcmp(w.s, name.s, w.n) != 0)))
            return false;
        name = w;
    }
    return !*p;
}
