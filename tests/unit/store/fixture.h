/* An open store on a private folder, for the tests of the table groups.
 *
 *     struct fixture x = fixture_open();
 *     MUST(store_keys_insert(x.store, &row, &x.e));
 *     fixture_close(&x);
 */
#pragma once

#include "store/store.h"
#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct fixture {
    struct folder folder;
    struct store *store;
    struct arena *a;
    struct err e;
};

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        x.e.text[0] = '\0';                                                                                            \
        if ((call) < 0)                                                                                                \
            fail_msg("%s: %s", #call, x.e.text);                                                                       \
    } while (0)

#define MUST_FAIL(call, r, its_code)                                                                                   \
    do {                                                                                                               \
        x.e.code[0] = '\0';                                                                                            \
        assert_int_equal((call), (r));                                                                                 \
        assert_string_equal(x.e.code, (its_code));                                                                     \
    } while (0)

static inline struct fixture fixture_open(void)
{
    struct fixture x = { .folder = folder_make(), .a = arena_new() };

    MUST(store_open(x.folder.path, &x.store, &x.e));
    return x;
}

static inline void fixture_close(struct fixture *x)
{
    x->store = store_close(x->store);
    x->a = arena_free(x->a);
    folder_remove(&x->folder);
}

/* SQL that simulates another program's changes of the file. */
static inline int fixture_run_script(struct sql_db *db, void *sql, struct err *e)
{
    return sql_script(db, sql, e);
}
