/* An identity over its own store in a private folder, with two apps; everything is removed at the end.
 *
 *     AUTO(fixture_close) struct fixture f = fixture_open();
 *     decide(&f, APP, "llm.chat", true, CONSENT_ALWAYS);
 */
#pragma once

#include "base/hash.h"
#include "identity/audit.h"
#include "identity/consent.h"
#include "identity/keys.h"
#include "identity/permissions.h"
#include "os/files.h"
#include "store/tables/apps.h"
#include "store/tables/grants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#define APP "11111111-1111-4111-8111-111111111111"
#define OTHER_APP "22222222-2222-4222-8222-222222222222"
#define NO_APP "33333333-3333-4333-8333-333333333333"

struct fixture {
    char path[64];
    struct store *store;
    struct identity *id;
    struct arena *a;
};

static inline void must(int r, const struct err *e)
{
    if (r < 0)
        fail_msg("%d %s: %s", r, e->code, e->text);
}

static inline void fixture_add_app(struct fixture *f, const char *app_id, const char *name)
{
    struct app_row row = {
        .app_id = app_id, .name = name, .display_name = name, .app_type = "custom", .config = "{}", .permissions = "[]"
    };
    struct err e = { 0 };

    must(store_apps_insert(f->store, &row, &e), &e);
}

static inline void fixture_open_identity(struct fixture *f)
{
    struct err e = { 0 };

    must(identity_open(f->store, NULL, f->path, &f->id, &e), &e);
}

static inline struct fixture fixture_open(void)
{
    struct fixture f = { .path = "/tmp/hearth-unit-XXXXXX", .a = arena_new() };
    struct err e = { 0 };

    assert_non_null(mkdtemp(f.path));
    must(hash_init(&e), &e);
    must(store_open(f.path, &f.store, &e), &e);
    fixture_add_app(&f, APP, "triage");
    fixture_add_app(&f, OTHER_APP, "other");
    fixture_open_identity(&f);
    return f;
}

static inline void fixture_close(struct fixture *f)
{
    struct err e = { 0 };

    identity_close(f->id);
    store_close(f->store);
    arena_free(f->a);
    must(dir_remove(f->path, &e), &e);
}

/* The caller with these credentials; fails the test when there is none. */
static inline struct caller caller_of(struct fixture *f, struct credentials given)
{
    struct caller caller = { .kind = CALLER_NOBODY };
    struct err e = { 0 };

    must(identity_caller(f->id, &given, f->a, &caller, &e), &e);
    return caller;
}

static inline struct caller app_caller(struct fixture *f)
{
    return caller_of(f, (struct credentials){ .x_app_id = APP });
}

static inline void decide(struct fixture *f, const char *app_id, const char *permission, bool is_allowed,
                          enum consent_scope scope)
{
    struct consent_decision d = {
        .app_id = app_id, .permission = permission, .is_allowed = is_allowed, .scope = scope, .actor = "admin"
    };
    struct err e = { 0 };

    must(consent_decide(f->id, &d, &e), &e);
}

/* "" when allowed, else the code. */
static inline const char *require_code(struct fixture *f, const struct caller *c, const char *permission)
{
    struct err e = { 0 };

    if (identity_require(f->id, c, permission, &e) == 0)
        return "";
    return arena_strdup(f->a, e.code);
}

static inline size_t count_pending(struct fixture *f)
{
    struct consent_questions pending;
    struct err e = { 0 };

    must(consent_pending(f->id, f->a, &pending, &e), &e);
    return pending.n;
}

static inline size_t count_audit(struct fixture *f, const char *action)
{
    struct audit_row *rows;
    struct err e = { 0 };
    size_t n, found = 0;

    must(audit_list(f->id, f->a, 0, 500, &rows, &n, &e), &e);
    for (size_t i = 0; i < n; i++)
        found += strcmp(rows[i].action, action) == 0;
    return found;
}
