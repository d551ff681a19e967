/* The names and values that PQconnectStartParams() takes, as pg_link_open() wants them. Of equal names the later one
 * counts; what is beyond PG_PARAMS_MAX, more than libpq has names, is left out. The texts are borrowed. One thread.
 *
 *     struct pg_params p = { .n = 0 };
 *     pg_params_add(&p, "application_name", "hearth");
 *     r = pg_link_open(p.names, p.values, wait, sqlstate, &link, e);
 */
#pragma once

#include <stddef.h>

enum { PG_PARAMS_MAX = 60 };

struct pg_params {
    const char *names[PG_PARAMS_MAX + 1], *values[PG_PARAMS_MAX + 1]; /* NULL ends them */
    size_t n;
};

static inline void pg_params_add(struct pg_params *p, const char *name, const char *value)
{
    if (p->n == PG_PARAMS_MAX)
        return;
    p->names[p->n] = name;
    p->values[p->n++] = value;
}
