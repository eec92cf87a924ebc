/* Between the system calls of SQLite (sqlite.c) and the Python methods that they happen in (sqlite_report.c). */
#ifndef PSB_SQLITE_H
#define PSB_SQLITE_H

#include "guard.h"

#define PSB_SQL_REFUSED_MAX 8

typedef struct {
    char *path; /* as SQLite has it; owned */
    int need;   /* PSB_READ or PSB_WRITE */
} psb_sql_refused;

/* A thread's methods under way: a function that SQL calls may call SQL. */
typedef struct {
    int depth, n;
    psb_sql_refused refused[PSB_SQL_REFUSED_MAX]; /* those of outer methods first */
    char site[512];                               /* a learning run: where the program called */
    size_t site_len;
} psb_sql_visit;

extern __thread psb_sql_visit psb_sql;

/* Databases that SQLite opened for reading because writing was refused: what fails later, for that reason, is said then.
 * Borrowed, NULL after the last; they are never taken out. */
const char *const *psb_sql_read_only(void);

#endif
