/* A connection string of PostgreSQL as an app writes it. An accepted string names no file: libpq reads the same from it
 * and finds one host, and no parameter outside our list. */
#include "vector/pgvector/pgvector_conninfo.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_option(const PQconninfoOption *option)
{
    static const char *const never[] = { "service",     "passfile",   "sslcert", "sslkey",     "sslrootcert",
                                         "sslcrl",      "sslcrldir",  "options", "hostaddr",   "requirepeer",
                                         "sslpassword", "krbsrvname", "gsslib",  "gssencmode", "replication" };

    for (size_t i = 0; option->val && i < ARRAY_SIZE(never); i++)
        if (strcmp(option->keyword, never[i]) == 0)
            abort();
    if (strcmp(option->keyword, "host") == 0 &&
        (!option->val || !*option->val || strchr("/@", option->val[0]) || strchr(option->val, ',')))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char *text = xcalloc(n + 1, 1);
    PQconninfoOption *options;
    struct err e = { 0 };

    memcpy(text, bytes, n);
    if (pg_conninfo_check(text, &e) == 0) {
        options = PQconninfoParse(text, NULL);
        for (const PQconninfoOption *o = options; o->keyword; o++)
            check_option(o);
        PQconninfoFree(options);
    }
    free(text);
    return 0;
}
