/* What a provider of backends gives the contract tests: a place of its own, services on that place, another program. */
#pragma once

#include "backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>

/* cmocka's macro hides the operation with that name, but fail_msg() needs a function of this name. */
#undef fail
static inline void fail(void)
{
    _fail(__FILE__, __LINE__);
}

static inline void must(int r, const struct err *e)
{
    if (r < 0)
        fail_msg("%d %s %s", r, e->code, e->text);
}

/* One transaction of a program that knows the table and not Hearth. Texts hold no single quotes. */
struct foreign_write {
    enum backend_op op;
    const char *table;
    size_t n;                   /* INSERT: that many rows; 0: 1 */
    const char *raw_data;       /* INSERT */
    const char *id;             /* UPDATE, DELETE: the row; NULL: every row */
    const char *column, *value; /* UPDATE; value NULL: NULL */
    bool is_undone;             /* rolled back at its end */
};

struct fixture {
    bool has_events;
    const char *name;
    const char *provider; /* of backend_providers */
    void *(*make)(void);  /* an empty place */
    void (*remove)(void *place);
    struct backend *(*open)(void *place); /* a service on the place; any number of them at the same time; abbr svc */
    void (*write)(void *place, const struct foreign_write *w);
    void (*lose)(void *place);  /* a change is made that no service is told of as an event */
    bool (*is_installed)(void); /* NULL: always; what is not installed has no tests */
    bool is_only_events;        /* differs from another fixture of the provider only in its events */
    bool is_one_machine;        /* a service's presence is its connection's: it puts that of one machine */
    bool has_fixed_tables;      /* a table that is made later is not seen */
};
