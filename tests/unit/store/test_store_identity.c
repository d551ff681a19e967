/* The tables keys, apps, grants, audit, sessions, settings_rows, meta, backend_tokens. */
#include "fixture.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/tables/apps.h"
#include "store/tables/audit.h"
#include "store/tables/backend_tokens.h"
#include "store/tables/grants.h"
#include "store/tables/keys.h"
#include "store/meta.h"
#include "store/tables/sessions.h"
#include "store/tables/settings_rows.h"

#include <pthread.h>

static const char long_ago[] = "2001-01-01T00:00:00.000Z", far_off[] = "2999-01-01T00:00:00.000Z";

/* --- keys --- */

static struct key_row key_of(const char *id)
{
    return (struct key_row){ .id = id, .name = "name", .hash = slice_of(id), .last4 = "abcd", .fingerprint = "f" };
}

static void a_key_is_kept_and_stays_listed_when_it_is_revoked(void **state)
{
    struct fixture x = fixture_open();
    struct key_row row = key_of("one"), got, *list;
    size_t n;

    MUST(store_keys_insert(x.store, &row, &x.e));
    MUST_FAIL(store_keys_insert(x.store, &row, &x.e), -EEXIST, "ALREADY_EXISTS");
    MUST(store_keys_get(x.store, x.a, "one", &got, &x.e));
    assert_string_equal(got.id, "one");
    assert_string_equal(got.last4, "abcd");
    assert_non_null(got.created_at);
    assert_null(got.last_used_at);
    MUST(store_keys_touch(x.store, "one", &x.e));
    MUST(store_keys_get(x.store, x.a, "one", &got, &x.e));
    assert_non_null(got.last_used_at);
    MUST_FAIL(store_keys_get(x.store, x.a, "two", &got, &x.e), -ENOENT, "KEY_NOT_FOUND");
    MUST(store_keys_revoke(x.store, "one", &x.e));
    MUST(store_keys_list(x.store, x.a, &list, &n, &x.e));
    assert_non_null(list[0].revoked_at);
    MUST(store_keys_revoke(x.store, "one", &x.e));
    MUST_FAIL(store_keys_revoke(x.store, "two", &x.e), -ENOENT, "KEY_NOT_FOUND");
    assert_int_equal(store_keys_touch(x.store, "two", NULL), -ENOENT);
    fixture_close(&x);
}

static int fill_keys(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(
        db, e,
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        "INSERT INTO api_keys (id, name, hash, last4, fingerprint, created_at) SELECT i, '', i, '', '', '' FROM n",
        "i", (int64_t)(LIMIT_KEYS - 1));
}

static void the_last_key_below_the_limit_is_taken_and_revoking_makes_room(void **state)
{
    struct fixture x = fixture_open();
    struct key_row last = key_of("last"), more = key_of("more");

    MUST(store_write(x.store, fill_keys, NULL, &x.e));
    MUST(store_keys_insert(x.store, &last, &x.e));
    MUST_FAIL(store_keys_insert(x.store, &more, &x.e), -E2BIG, "TOO_MANY_KEYS");
    MUST(store_keys_revoke(x.store, "last", &x.e));
    MUST(store_keys_insert(x.store, &more, &x.e));
    fixture_close(&x);
}

/* --- apps --- */

static struct app_row app_of(const char *id, const char *name)
{
    return (struct app_row){
        .app_id = id, .name = name, .display_name = "A", .app_type = "node", .config = "{}", .is_enabled = true
    };
}

static void an_app_is_kept_changed_and_removed(void **state)
{
    struct fixture x = fixture_open();
    struct app_row one = app_of("1", "one"), two = app_of("2", "another"), got, *list;
    size_t n;

    one.permissions = "[\"llm.chat\"]";
    one.icon = "i";
    MUST(store_apps_insert(x.store, &one, &x.e));
    MUST(store_apps_insert(x.store, &two, &x.e));
    MUST_FAIL(store_apps_insert(x.store, &one, &x.e), -EEXIST, "APP_EXISTS");
    one.app_id = "3";
    MUST_FAIL(store_apps_insert(x.store, &one, &x.e), -EEXIST, "APP_EXISTS");
    MUST(store_apps_get_by_name(x.store, x.a, "one", &got, &x.e));
    assert_string_equal(got.app_id, "1");
    assert_string_equal(got.permissions, "[\"llm.chat\"]");
    assert_string_equal(got.icon, "i");
    assert_true(got.is_enabled && !got.requires_user_auth);
    MUST(store_apps_list(x.store, x.a, &list, &n, &x.e));
    assert_int_equal(n, 2);
    assert_string_equal(list[0].name, "another");
    assert_string_equal(list[0].permissions, "[]");

    two.name = "one";
    MUST_FAIL(store_apps_update(x.store, &two, NULL, &x.e), -EEXIST, "APP_EXISTS");
    two.name = "zwei";
    two.is_enabled = false;
    two.requires_user_auth = true;
    MUST(store_apps_update(x.store, &two, NULL, &x.e));
    MUST(store_apps_get(x.store, x.a, "2", &got, &x.e));
    assert_string_equal(got.name, "zwei");
    assert_true(!got.is_enabled && got.requires_user_auth);
    two.app_id = "9";
    two.name = "nine";
    MUST_FAIL(store_apps_update(x.store, &two, NULL, &x.e), -ENOENT, "APP_NOT_FOUND");
    MUST(store_apps_delete(x.store, "2", &x.e));
    MUST_FAIL(store_apps_delete(x.store, "2", &x.e), -ENOENT, "APP_NOT_FOUND");
    MUST_FAIL(store_apps_get(x.store, x.a, "2", &got, &x.e), -ENOENT, "APP_NOT_FOUND");
    fixture_close(&x);
}

static void an_app_takes_its_grants_and_token_along(void **state)
{
    struct fixture x = fixture_open();
    struct app_row app = app_of("1", "one");
    struct backend_token_row token;
    struct grant_row *list;
    size_t n;

    MUST(store_apps_insert(x.store, &app, &x.e));
    MUST(store_grants_set(
        x.store, &(struct grant_row){ .app_id = "1", .permission = "p", .decision = "allow", .scope = "always" },
        &x.e));
    MUST(store_backend_tokens_set(x.store, x.a, "1", slice_of("secret"), NULL, &x.e));
    MUST(store_apps_delete(x.store, "1", &x.e));
    MUST(store_grants_list(x.store, x.a, NULL, &list, &n, &x.e));
    assert_int_equal(n, 0);
    assert_int_equal(store_backend_tokens_get(x.store, x.a, "1", &token, NULL), -ENOENT);
    fixture_close(&x);
}

static int fill_apps(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(
        db, e,
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        "INSERT INTO apps (app_id, name, display_name, app_type, config, is_enabled, requires_user_auth, created_at, "
        "updated_at) SELECT 'x' || i, 'x' || i, '', '', '', 0, 0, '', '' FROM n",
        "i", (int64_t)(LIMIT_APPS - 1));
}

static void the_last_app_below_the_limit_is_taken(void **state)
{
    struct fixture x = fixture_open();
    struct app_row last = app_of("1", "one"), more = app_of("2", "two"), *list;
    size_t n;

    MUST(store_write(x.store, fill_apps, NULL, &x.e));
    MUST(store_apps_insert(x.store, &last, &x.e));
    MUST_FAIL(store_apps_insert(x.store, &more, &x.e), -E2BIG, "TOO_MANY_APPS");
    MUST(store_apps_list(x.store, x.a, &list, &n, &x.e));
    assert_int_equal(n, LIMIT_APPS);
    fixture_close(&x);
}

/* --- grants --- */

static struct fixture open_with_apps(void)
{
    struct fixture x = fixture_open();
    struct app_row one = app_of("1", "one"), two = app_of("2", "two");

    MUST(store_apps_insert(x.store, &one, &x.e));
    MUST(store_apps_insert(x.store, &two, &x.e));
    return x;
}

static int decide(struct fixture *x, const char *app_id, const char *permission, const char *decision,
                  const char *scope)
{
    return store_grants_set(
        x->store,
        &(struct grant_row){ .app_id = app_id, .permission = permission, .decision = decision, .scope = scope }, &x->e);
}

static void denials_are_counted_until_one_allows(void **state)
{
    static const struct {
        const char *decision;
        int64_t n_denials;
    } steps[] = {
        { "deny", 1 },
        { "deny", 2 },
        { "allow", 0 },
        { "deny", 1 },
    };
    struct fixture x = open_with_apps();
    struct grant_row got;

    MUST_FAIL(store_grants_get(x.store, x.a, "1", "p", &got, &x.e), -ENOENT, "GRANT_NOT_FOUND");
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        MUST(decide(&x, "1", "p", steps[i].decision, "always"));
        MUST(store_grants_get(x.store, x.a, "1", "p", &got, &x.e));
        assert_string_equal(got.decision, steps[i].decision);
        assert_int_equal(got.n_denials, steps[i].n_denials);
    }
    MUST_FAIL(decide(&x, "nobody", "p", "allow", "always"), -ENOENT, "APP_NOT_FOUND");
    assert_int_equal(decide(&x, "1", "p", "perhaps", "always"), -EEXIST); /* CHECK of the table */
    fixture_close(&x);
}

static void the_single_use_is_taken_once(void **state)
{
    struct fixture x = open_with_apps();
    struct grant_row got;

    MUST(decide(&x, "1", "p", "allow", "once"));
    MUST(store_grants_use_once(x.store, "1", "p", &x.e));
    assert_int_equal(store_grants_use_once(x.store, "1", "p", NULL), -ENOENT);
    MUST(store_grants_get(x.store, x.a, "1", "p", &got, &x.e));
    assert_true(got.is_used);
    assert_non_null(got.last_used_at);
    MUST(decide(&x, "1", "p", "allow", "once")); /* asked again, allowed again */
    MUST(store_grants_use_once(x.store, "1", "p", &x.e));
    MUST(decide(&x, "1", "q", "allow", "always"));
    assert_int_equal(store_grants_use_once(x.store, "1", "q", NULL), -ENOENT);
    MUST(decide(&x, "1", "r", "deny", "once"));
    assert_int_equal(store_grants_use_once(x.store, "1", "r", NULL), -ENOENT);
    MUST(store_grants_touch(x.store, "1", "q", &x.e));
    MUST(store_grants_get(x.store, x.a, "1", "q", &got, &x.e));
    assert_non_null(got.last_used_at);
    assert_int_equal(store_grants_touch(x.store, "2", "q", NULL), -ENOENT);
    fixture_close(&x);
}

static size_t n_grants(struct fixture *x, const char *app_id)
{
    struct grant_row *list;
    size_t n = 99;

    assert_int_equal(store_grants_list(x->store, x->a, app_id, &list, &n, &x->e), 0);
    return n;
}

static void grants_go_one_by_one_by_app_and_when_the_app_stops(void **state)
{
    struct fixture x = open_with_apps();
    int64_t n = 0;

    MUST(decide(&x, "1", "p", "allow", "until_stop"));
    MUST(decide(&x, "1", "q", "allow", "always"));
    MUST(decide(&x, "2", "p", "allow", "until_stop"));
    MUST(decide(&x, "2", "q", "deny", "until_stop"));
    assert_int_equal(n_grants(&x, NULL), 4);
    MUST(store_grants_clear_until_stop(x.store, "1", &x.e));
    assert_int_equal(n_grants(&x, "1"), 1);
    assert_int_equal(n_grants(&x, "2"), 2);
    MUST(store_grants_clear_until_stop(x.store, NULL, &x.e));
    assert_int_equal(n_grants(&x, NULL), 1);
    MUST(store_grants_revoke(x.store, "1", "q", &x.e));
    MUST_FAIL(store_grants_revoke(x.store, "1", "q", &x.e), -ENOENT, "GRANT_NOT_FOUND");
    MUST(decide(&x, "2", "p", "allow", "always"));
    MUST(decide(&x, "2", "q", "deny", "always"));
    MUST(store_grants_reset(x.store, "2", &n, &x.e));
    assert_int_equal(n, 2);
    assert_int_equal(n_grants(&x, NULL), 0);
    fixture_close(&x);
}

/* --- audit --- */

static void append(struct fixture *x, const char *action)
{
    struct audit_row entry = { .actor = "cli", .action = action, .subject = "s", .detail = NULL };

    assert_int_equal(store_audit_append(x->store, &entry, &x->e), 0);
}

static struct audit_verdict verify(struct fixture *x)
{
    struct audit_verdict v = { .n_entries = -1, .bad_seq = -1 };

    assert_int_equal(store_audit_verify(x->store, &v, &x->e), 0);
    return v;
}

static void the_log_is_a_chain_that_verifies(void **state)
{
    struct fixture x = fixture_open();
    struct audit_row *list;
    size_t n;

    assert_int_equal(verify(&x).n_entries, 0);
    assert_int_equal(verify(&x).bad_seq, 0);
    for (int i = 0; i < 5; i++)
        append(&x, "act");
    assert_int_equal(verify(&x).n_entries, 5);
    assert_int_equal(verify(&x).bad_seq, 0);
    MUST(store_audit_list(x.store, x.a, 0, 2, &list, &n, &x.e));
    assert_int_equal(n, 2);
    assert_int_equal(list[0].seq, 5);
    assert_string_equal(list[0].prev_hash, list[1].hash);
    assert_null(list[0].detail);
    MUST(store_audit_list(x.store, x.a, 4, 0, &list, &n, &x.e));
    assert_int_equal(n, 3);
    assert_int_equal(list[0].seq, 3);
    MUST(store_audit_list(x.store, x.a, 0, INT64_MAX, &list, &n, &x.e));
    assert_int_equal(n, 5);
    fixture_close(&x);
}

static void entries_cannot_be_changed_or_deleted(void **state)
{
    struct fixture x = fixture_open();

    append(&x, "act");
    assert_int_equal(store_exec(x.store, &x.e, NULL, "UPDATE audit SET actor = 'x'", ""), -EPERM);
    assert_int_equal(store_exec(x.store, &x.e, NULL, "DELETE FROM audit", ""), -EPERM);
    assert_non_null(strstr(x.e.text, "append-only"));
    fixture_close(&x);
}

#define NO_TRIGGERS "DROP TRIGGER audit_no_update; DROP TRIGGER audit_no_delete;"

static void tampering_shows_with_the_first_bad_entry(void **state)
{
    static const struct {
        const char *sql;
        int64_t bad_seq;
    } cases[] = {
        { NO_TRIGGERS "UPDATE audit SET actor = 'x' WHERE seq = 3", 3 },
        { NO_TRIGGERS "UPDATE audit SET at = '2001-01-01' WHERE seq = 1", 1 },
        { NO_TRIGGERS "UPDATE audit SET subject = NULL WHERE seq = 4", 4 },
        { NO_TRIGGERS "UPDATE audit SET detail = '' WHERE seq = 2", 2 },
        { NO_TRIGGERS "UPDATE audit SET hash = prev_hash WHERE seq = 2", 2 },
        { NO_TRIGGERS "UPDATE audit SET prev_hash = hash WHERE seq = 2", 2 },
        { NO_TRIGGERS "DELETE FROM audit WHERE seq = 2", 2 },
        { NO_TRIGGERS "DELETE FROM audit WHERE seq = 1", 1 },
        { NO_TRIGGERS "DELETE FROM audit WHERE seq > 3", 4 },
        { NO_TRIGGERS "DELETE FROM audit", 1 },
        { "INSERT INTO audit SELECT 6, at, actor, action, subject, detail, prev_hash, hash FROM audit WHERE seq = 5",
          6 },
        { "DELETE FROM meta WHERE key = '" META_AUDIT_HEAD "'", 6 },
        { "UPDATE meta SET value = '4:' || substr(value, 3) WHERE key = '" META_AUDIT_HEAD "'", 6 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture x = fixture_open();
        struct audit_verdict v;

        for (int j = 0; j < 5; j++)
            append(&x, "act");
        MUST(store_write(x.store, fixture_run_script, (char *)cases[i].sql, &x.e));
        v = verify(&x);
        if (v.bad_seq != cases[i].bad_seq)
            fail_msg("%s: bad_seq %d", cases[i].sql, (int)v.bad_seq);
        assert_non_null(v.reason);
        fixture_close(&x);
    }
}

static void a_cut_tail_still_shows_after_more_was_appended(void **state)
{
    struct fixture x = fixture_open();

    for (int i = 0; i < 5; i++)
        append(&x, "act");
    MUST(store_write(x.store, fixture_run_script, (char *)NO_TRIGGERS "DELETE FROM audit WHERE seq > 3", &x.e));
    append(&x, "later");
    assert_int_equal(verify(&x).bad_seq, 4);
    fixture_close(&x);
}

static void *append_many(void *arg)
{
    struct audit_row entry = { .actor = "cli", .action = "act" };

    for (int i = 0; i < 20; i++)
        if (store_audit_append(arg, &entry, NULL) < 0)
            return arg;
    return NULL;
}

static void threads_append_to_one_chain(void **state)
{
    struct fixture x = fixture_open();
    pthread_t threads[4];
    void *failed = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        pthread_create(&threads[i], NULL, append_many, x.store);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(verify(&x).n_entries, 80);
    assert_int_equal(verify(&x).bad_seq, 0);
    fixture_close(&x);
}

/* --- sessions and links --- */

static void a_session_lives_until_it_expires_or_is_revoked(void **state)
{
    struct fixture x = fixture_open();
    struct session_row row = { .id_hash = SLICE_LIT("h1"),
                               .proof_hash = SLICE_LIT("p1"),
                               .kind = "admin",
                               .expires_at = far_off },
                       got;

    MUST(store_sessions_insert(x.store, &row, &x.e));
    MUST(store_sessions_find(x.store, x.a, SLICE_LIT("h1"), &got, &x.e));
    assert_true(slice_eq_str(got.proof_hash, "p1"));
    assert_string_equal(got.kind, "admin");
    assert_string_equal(got.expires_at, far_off);
    MUST_FAIL(store_sessions_find(x.store, x.a, SLICE_LIT("h2"), &got, &x.e), -ENOENT, "SESSION_NOT_FOUND");
    MUST(store_sessions_revoke(x.store, SLICE_LIT("h1"), &x.e));
    assert_int_equal(store_sessions_find(x.store, x.a, SLICE_LIT("h1"), &got, NULL), -ENOENT);
    assert_int_equal(store_sessions_revoke(x.store, SLICE_LIT("h1"), NULL), -ENOENT);
    row.id_hash = SLICE_LIT("h3");
    row.expires_at = long_ago;
    MUST(store_sessions_insert(x.store, &row, &x.e));
    assert_int_equal(store_sessions_find(x.store, x.a, SLICE_LIT("h3"), &got, NULL), -ENOENT);
    row.id_hash = SLICE_LIT("h4");
    row.expires_at = far_off;
    MUST(store_sessions_insert(x.store, &row, &x.e));
    fixture_close(&x);
}

static int fill_sessions(struct sql_db *db, void *arg, struct err *e)
{
    return sql_exec(db, e,
                    "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
                    "INSERT INTO sessions (id_hash, kind, created_at, expires_at) SELECT i, '', '', ? FROM n",
                    "is", (int64_t)(LIMIT_SESSIONS - 1), far_off);
}

static void sessions_have_a_limit(void **state)
{
    struct fixture x = fixture_open();
    struct session_row row = {
        .id_hash = SLICE_LIT("h1"), .proof_hash = SLICE_LIT("p1"), .kind = "admin", .expires_at = far_off
    };

    MUST(store_write(x.store, fill_sessions, NULL, &x.e));
    MUST(store_sessions_insert(x.store, &row, &x.e));
    row.id_hash = SLICE_LIT("h2");
    MUST_FAIL(store_sessions_insert(x.store, &row, &x.e), -E2BIG, "TOO_MANY_SESSIONS");
    fixture_close(&x);
}

struct taker {
    struct store *s;
    int r;
    pthread_t thread;
};

static void *take(void *arg)
{
    struct taker *taker = arg;

    taker->r = store_login_links_take(taker->s, SLICE_LIT("t"), NULL);
    return NULL;
}

static void of_many_who_use_a_link_one_gets_in(void **state)
{
    struct fixture x = fixture_open();
    struct taker takers[6];
    int n_in = 0;

    MUST(store_login_links_insert(x.store, SLICE_LIT("t"), far_off, &x.e));
    for (size_t i = 0; i < ARRAY_SIZE(takers); i++) {
        takers[i] = (struct taker){ .s = x.store };
        pthread_create(&takers[i].thread, NULL, take, &takers[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(takers); i++) {
        pthread_join(takers[i].thread, NULL);
        n_in += takers[i].r == 0;
    }
    assert_int_equal(n_in, 1);
    MUST(store_login_links_insert(x.store, SLICE_LIT("old"), long_ago, &x.e));
    MUST_FAIL(store_login_links_take(x.store, SLICE_LIT("old"), &x.e), -ENOENT, "LINK_NOT_FOUND");
    fixture_close(&x);
}

/* --- settings, meta, backend tokens --- */

static void settings_are_kept_replaced_and_removed(void **state)
{
    struct fixture x = fixture_open();
    struct setting_row *list;
    size_t n;

    MUST(store_settings_set(x.store, "b", "1", &x.e));
    MUST(store_settings_set(x.store, "a", "2", &x.e));
    MUST(store_settings_set(x.store, "b", "3", &x.e));
    MUST(store_settings_list(x.store, x.a, &list, &n, &x.e));
    assert_int_equal(n, 2);
    assert_string_equal(list[0].key, "a");
    assert_string_equal(list[1].value, "3");
    MUST(store_settings_unset(x.store, "a", &x.e));
    MUST(store_settings_unset(x.store, "a", &x.e));
    MUST(store_settings_list(x.store, x.a, &list, &n, &x.e));
    assert_int_equal(n, 1);
    fixture_close(&x);
}

static void the_first_value_kept_wins(void **state)
{
    struct fixture x = fixture_open();
    char *value = NULL;

    MUST_FAIL(store_meta_get(x.store, x.a, META_MACHINE_ID, &value, &x.e), -ENOENT, "VALUE_NOT_FOUND");
    MUST(store_meta_keep(x.store, x.a, META_MACHINE_ID, "first", &value, &x.e));
    assert_string_equal(value, "first");
    MUST(store_meta_keep(x.store, x.a, META_MACHINE_ID, "second", &value, &x.e));
    assert_string_equal(value, "first");
    MUST(store_meta_set(x.store, META_MACHINE_ID, "third", &x.e));
    MUST(store_meta_get(x.store, x.a, META_MACHINE_ID, &value, &x.e));
    assert_string_equal(value, "third");
    fixture_close(&x);
}

static void a_backend_token_is_bytes_and_replaced(void **state)
{
    struct fixture x = fixture_open();
    struct slice sealed = { "a\0b", 3 };
    struct backend_token_row got;
    const char *synced_at = NULL;

    MUST(store_backend_tokens_set(x.store, x.a, "fingerprint", slice_of("first"), NULL, &x.e));
    MUST(store_backend_tokens_set(x.store, x.a, "fingerprint", sealed, &synced_at, &x.e));
    MUST(store_backend_tokens_get(x.store, x.a, "fingerprint", &got, &x.e));
    assert_true(slice_eq(got.token, sealed));
    assert_string_equal(got.synced_at, synced_at);
    MUST(store_backend_tokens_delete(x.store, "fingerprint", &x.e));
    MUST_FAIL(store_backend_tokens_delete(x.store, "fingerprint", &x.e), -ENOENT, "TOKEN_NOT_FOUND");
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_kept_and_stays_listed_when_it_is_revoked),
        cmocka_unit_test(the_last_key_below_the_limit_is_taken_and_revoking_makes_room),
        cmocka_unit_test(an_app_is_kept_changed_and_removed),
        cmocka_unit_test(an_app_takes_its_grants_and_token_along),
        cmocka_unit_test(the_last_app_below_the_limit_is_taken),
        cmocka_unit_test(denials_are_counted_until_one_allows),
        cmocka_unit_test(the_single_use_is_taken_once),
        cmocka_unit_test(grants_go_one_by_one_by_app_and_when_the_app_stops),
        cmocka_unit_test(the_log_is_a_chain_that_verifies),
        cmocka_unit_test(entries_cannot_be_changed_or_deleted),
        cmocka_unit_test(tampering_shows_with_the_first_bad_entry),
        cmocka_unit_test(a_cut_tail_still_shows_after_more_was_appended),
        cmocka_unit_test(threads_append_to_one_chain),
        cmocka_unit_test(a_session_lives_until_it_expires_or_is_revoked),
        cmocka_unit_test(sessions_have_a_limit),
        cmocka_unit_test(of_many_who_use_a_link_one_gets_in),
        cmocka_unit_test(settings_are_kept_replaced_and_removed),
        cmocka_unit_test(the_first_value_kept_wins),
        cmocka_unit_test(a_backend_token_is_bytes_and_replaced),
    };

    return cmocka_run_group_tests_name("store_identity", tests, NULL, NULL);
}
