#include "fixture.h"
#include "../wait.h"
#include "base/limits.h"
#include <pthread.h>

static const char *make_key(struct fixture *f, char ret_id[UUID_SIZE])
{
    char key[KEY_TEXT_SIZE];
    struct err e = { 0 };

    must(key_new(f->id, "test", "admin", key, ret_id, &e), &e);
    return arena_strdup(f->a, key);
}

static const char *refusal(struct fixture *f, struct credentials given, char text[700])
{
    struct caller caller;
    struct err e = { 0 };

    assert_int_equal(identity_caller(f->id, &given, f->a, &caller, &e), -EACCES);
    snprintf(text, 700, "%s", e.text);
    return arena_strdup(f->a, e.code);
}

static void a_key_in_either_header_is_a_developer(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char id[UUID_SIZE];
    const char *key = make_key(&f, id);
    const char *bearer = arena_printf(f.a, "Bearer %s", key), *lower = arena_printf(f.a, "bearer  %s", key);
    struct credentials given[] = { { .authorization = bearer }, { .authorization = lower }, { .x_api_key = key } };

    assert_true(strlen(key) >= strlen("hearth_") + 43);
    for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
        struct caller caller = caller_of(&f, given[i]);

        assert_int_equal(caller.kind, CALLER_KEY);
        assert_string_equal(caller.key_id, id);
        assert_int_equal(strlen(caller.key_fingerprint), 16);
        assert_string_equal(caller.scope, caller.key_fingerprint);
        assert_null(caller.app_id);
    }
}

static void a_registered_app_id_is_that_app(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct caller caller = app_caller(&f);

    assert_int_equal(caller.kind, CALLER_APP);
    assert_string_equal(caller.app_id, APP);
    assert_string_equal(caller.app_name, "triage");
    assert_string_equal(caller.scope, APP);
    assert_string_equal(caller.actor, "app:" APP);
}

static void key_and_app_id_together_are_the_key_with_the_apps_scope(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char id[UUID_SIZE];
    const char *key = make_key(&f, id);
    struct caller known = caller_of(&f, (struct credentials){ .x_api_key = key, .x_app_id = APP });
    struct caller unknown = caller_of(&f, (struct credentials){ .x_api_key = key, .x_app_id = NO_APP });

    assert_int_equal(known.kind, CALLER_KEY);
    assert_string_equal(known.app_name, "triage");
    assert_string_equal(known.scope, APP);
    assert_int_equal(unknown.kind, CALLER_KEY);
    assert_null(unknown.app_id);
    assert_string_equal(unknown.scope, unknown.key_fingerprint);
}

static void a_bearer_value_that_is_no_key_spoils_nothing(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char id[UUID_SIZE];
    const char *key = make_key(&f, id);

    assert_int_equal(caller_of(&f, (struct credentials){ .authorization = "Bearer nonsense", .x_app_id = APP }).kind,
                     CALLER_APP);
    assert_int_equal(caller_of(&f, (struct credentials){ .authorization = "Basic abc", .x_api_key = key }).kind,
                     CALLER_KEY);
}

static void nobody_and_unknown_ids_are_refused_in_the_words_of_the_specification(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char text[700];

    assert_string_equal(refusal(&f, (struct credentials){ 0 }, text), "MISSING_APP_ID");
    assert_string_equal(text, "Missing required header: x-app-id");
    assert_string_equal(refusal(&f, (struct credentials){ .authorization = "Bearer nonsense" }, text),
                        "INVALID_API_KEY");
    assert_string_equal(refusal(&f, (struct credentials){ .authorization = "Basic bm9ib2R5" }, text),
                        "INVALID_API_KEY");
    assert_string_equal(refusal(&f, (struct credentials){ .x_api_key = "nonsense" }, text), "INVALID_API_KEY");
    assert_string_equal(refusal(&f, (struct credentials){ .authorization = "Bearer" }, text), "MISSING_APP_ID");
    assert_string_equal(refusal(&f, (struct credentials){ .authorization = "Bearer nonsense", .x_app_id = NO_APP },
                                text),
                        "INVALID_API_KEY");
    assert_string_equal(refusal(&f, (struct credentials){ .x_app_id = "" }, text), "MISSING_APP_ID");
    assert_string_equal(refusal(&f, (struct credentials){ .x_app_id = NO_APP }, text), "INVALID_APP_ID");
    assert_string_equal(text, "Invalid app ID: " NO_APP);
    assert_string_equal(refusal(&f, (struct credentials){ .x_app_id = NO_APP, .is_local_admin = true }, text),
                        "INVALID_APP_ID");
}

static void the_socket_is_the_administrator_unless_it_names_an_app(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct caller admin = caller_of(&f, (struct credentials){ .is_local_admin = true });
    struct caller app = caller_of(&f, (struct credentials){ .is_local_admin = true, .x_app_id = APP });

    assert_int_equal(admin.kind, CALLER_ADMIN);
    assert_string_equal(admin.scope, "admin");
    assert_int_equal(app.kind, CALLER_APP);
    assert_string_equal(require_code(&f, &admin, PERM_MCP_TOOLS), "");
}

static void a_revoked_key_is_refused_at_once(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char id[UUID_SIZE], text[700];
    const char *key = make_key(&f, id);
    struct err e = { 0 };

    assert_int_equal(caller_of(&f, (struct credentials){ .x_api_key = key }).kind, CALLER_KEY);
    must(key_revoke(f.id, id, "admin", &e), &e);
    assert_string_equal(refusal(&f, (struct credentials){ .x_api_key = key }, text), "INVALID_API_KEY");
    assert_int_equal(key_revoke(f.id, NO_APP, "admin", &e), -ENOENT);
    assert_string_equal(e.code, "KEY_NOT_FOUND");
    assert_int_equal(count_audit(&f, "key.revoke"), 1);
}

static void keys_outlive_a_restart_and_are_not_in_the_database(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char id[UUID_SIZE];
    const char *key = make_key(&f, id);
    struct key_row *rows;
    struct err e = { 0 };
    size_t n;

    f.id = identity_close(f.id);
    fixture_open_identity(&f);
    assert_int_equal(caller_of(&f, (struct credentials){ .x_api_key = key }).kind, CALLER_KEY);
    must(store_keys_list(f.store, f.a, &rows, &n, &e), &e);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].hash.n, HASH_BYTES);
    assert_string_equal(rows[0].last4, key + strlen(key) - 4);
}

static bool key_was_used(void *arg)
{
    struct fixture *f = arg;
    struct key_row *rows;
    size_t n;

    return store_keys_list(f->store, f->a, &rows, &n, NULL) == 0 && rows[0].last_used_at != NULL;
}

static void the_last_use_of_a_key_is_noted_beside_the_request(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char id[UUID_SIZE];
    const char *key = make_key(&f, id);

    assert_false(key_was_used(&f));
    caller_of(&f, (struct credentials){ .x_api_key = key });
    assert_true(wait_until(key_was_used, &f));
}

static void a_removed_app_is_refused_at_once_and_a_new_one_known(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct err e = { 0 };
    char text[700];

    must(store_apps_delete(f.store, APP, &e), &e);
    consent_app_removed(f.id, APP);
    assert_string_equal(refusal(&f, (struct credentials){ .x_app_id = APP }, text), "INVALID_APP_ID");
    fixture_add_app(&f, NO_APP, "new");
    must(identity_reload_apps(f.id, &e), &e);
    assert_string_equal(caller_of(&f, (struct credentials){ .x_app_id = NO_APP }).app_name, "new");
}

static void permissions_follow_what_was_decided(void **state)
{
    static const struct {
        bool is_decided, is_allowed;
        enum consent_scope scope;
        const char *first, *second;
    } cases[] = {
        { .first = "PERMISSION_REQUIRED", .second = "PERMISSION_REQUIRED" },
        { true, true, CONSENT_ALWAYS, "", "" },
        { true, true, CONSENT_UNTIL_STOP, "", "" },
        { true, true, CONSENT_ONCE, "", "PERMISSION_REQUIRED" },
        { true, false, CONSENT_ALWAYS, "PERMISSION_DENIED", "PERMISSION_DENIED" },
        { true, false, CONSENT_ONCE, "PERMISSION_DENIED", "PERMISSION_DENIED" },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(fixture_close) struct fixture f = fixture_open();
        struct caller caller = app_caller(&f);

        if (cases[i].is_decided)
            decide(&f, APP, PERM_LLM_CHAT, cases[i].is_allowed, cases[i].scope);
        assert_string_equal(require_code(&f, &caller, PERM_LLM_CHAT), cases[i].first);
        assert_string_equal(require_code(&f, &caller, PERM_LLM_CHAT), cases[i].second);
    }
}

static void a_missing_grant_is_reported_as_clients_expect(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct caller caller = app_caller(&f);
    struct err e = { 0 };

    assert_int_equal(identity_require(f.id, &caller, PERM_LLM_CHAT, &e), -EPERM);
    assert_string_equal(e.text, "PERMISSION_REQUIRED");
    assert_string_equal(e.extras[0].key, "permission");
    assert_string_equal(e.extras[0].value, PERM_LLM_CHAT);
    assert_string_equal(e.extras[1].key, "message");
    assert_non_null(strstr(e.extras[1].value, "triage"));
    assert_int_equal(count_pending(&f), 1); /* the person sees the missing permission */
}

static void a_grant_holds_for_its_own_app_and_permission_only(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct caller app = app_caller(&f), other = caller_of(&f, (struct credentials){ .x_app_id = OTHER_APP });

    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    assert_string_equal(require_code(&f, &app, PERM_LLM_CHAT), "");
    assert_string_equal(require_code(&f, &app, PERM_LLM_EMBED), "PERMISSION_REQUIRED");
    assert_string_equal(require_code(&f, &other, PERM_LLM_CHAT), "PERMISSION_REQUIRED");
}

static void every_use_of_a_dangerous_permission_is_in_the_audit_log(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct audit_verdict verdict = { 0 };
    struct caller app = app_caller(&f);
    struct err e = { 0 };
    char id[UUID_SIZE];
    struct caller developer = caller_of(&f, (struct credentials){ .x_api_key = make_key(&f, id) });

    decide(&f, APP, PERM_MCP_TOOLS, true, CONSENT_ALWAYS);
    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    require_code(&f, &app, PERM_MCP_TOOLS);
    require_code(&f, &app, PERM_MCP_TOOLS);
    require_code(&f, &app, PERM_LLM_CHAT);
    require_code(&f, &app, PERM_WEBHOOK_TRIGGER); /* a refused request is no use */
    require_code(&f, &developer, PERM_WEBHOOK_TRIGGER);
    assert_int_equal(count_audit(&f, "permission.use"), 3);
    must(audit_verify(f.id, &verdict, &e), &e);
    assert_int_equal(verdict.bad_seq, 0);
    assert_int_equal(verdict.n_entries, 6); /* one key, two decisions, three uses */
}

static int begin_use(struct fixture *f, const struct caller *c, struct audit_use **ret)
{
    struct err e;

    err_init(&e);
    return identity_begin_use(f->id, c, PERM_MCP_TOOLS, f->a, ret, &e);
}

static void refuse_entries(struct fixture *f, bool is_refused)
{
    struct err e = { 0 };

    must(store_exec(f->store, &e, NULL,
                    is_refused ? "CREATE TRIGGER no_room BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END"
                               : "DROP TRIGGER no_room",
                    ""),
         &e);
}

static void a_use_whose_entry_cannot_be_stored_is_refused(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct caller app = app_caller(&f);
    struct audit_use *use = NULL, *other = NULL;
    struct err e = { 0 };

    decide(&f, APP, PERM_MCP_TOOLS, true, CONSENT_ALWAYS);
    assert_int_equal(begin_use(&f, &app, &use), 0);
    assert_non_null(use);
    assert_int_equal(audit_end_use(use, NULL), 0);
    assert_int_equal(count_audit(&f, "permission.use"), 1);

    refuse_entries(&f, true);
    assert_int_equal(begin_use(&f, &app, &use), 0); /* is not known to fail before it was tried */
    assert_true(audit_end_use(use, &e) < 0);
    assert_string_not_equal(e.text, "");
    assert_true(begin_use(&f, &app, &use) < 0); /* before the work, from now on */
    assert_null(use);
    refuse_entries(&f, false);
    assert_int_equal(begin_use(&f, &app, &use), 0);
    assert_null(use); /* waited for already */
    assert_int_equal(count_audit(&f, "permission.use"), 2);
    assert_int_equal(begin_use(&f, &app, &use), 0);
    assert_int_equal(begin_use(&f, &app, &other), 0);
    assert_non_null(use);
    assert_int_equal(audit_end_use(other, NULL), 0);
    assert_int_equal(audit_end_use(use, NULL), 0);
    assert_int_equal(count_audit(&f, "permission.use"), 4);
}

static bool is_use_stored(void *fixture)
{
    return count_audit(fixture, "permission.use") == 2;
}

static void the_entry_of_a_use_is_stored_while_the_use_waits(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct caller app = app_caller(&f);
    struct audit_use *use = NULL;
    struct err e = { 0 };

    decide(&f, APP, PERM_MCP_TOOLS, true, CONSENT_ALWAYS);
    assert_int_equal(begin_use(&f, &app, &use), 0);
    audit_meanwhile(use, true); /* on this thread */
    assert_int_equal(count_audit(&f, "permission.use"), 1);
    audit_meanwhile(use, true);
    audit_meanwhile(use, false);
    assert_int_equal(audit_end_use(use, &e), 0);
    assert_int_equal(count_audit(&f, "permission.use"), 1);

    assert_int_equal(begin_use(&f, &app, &use), 0);
    audit_meanwhile(use, false); /* on another one */
    assert_true(wait_until(is_use_stored, &f));
    assert_int_equal(audit_end_use(use, &e), 0);
    audit_meanwhile(NULL, true);

    refuse_entries(&f, true);
    assert_int_equal(begin_use(&f, &app, &use), 0);
    audit_meanwhile(use, true);
    assert_true(audit_end_use(use, &e) < 0); /* the failure is told at the end */
    assert_string_not_equal(e.text, "");
}

static void a_permission_is_found_by_its_own_name_only(void **state)
{
    for (const struct permission *p = permissions; p->name; p++)
        assert_ptr_equal(permission_find(p->name), p); /* names are unique */
    assert_null(permission_find("made.up"));
    assert_null(permission_find(""));
}

/* ---- one use under concurrency ---- */

struct racer {
    struct fixture *f;
    pthread_barrier_t *start;
    int n_allowed;
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    struct caller caller = { .kind = CALLER_APP, .app_id = APP, .app_name = "triage", .scope = APP, .actor = "app" };

    pthread_barrier_wait(racer->start);
    racer->n_allowed = identity_require(racer->f->id, &caller, PERM_LLM_CHAT, NULL) == 0;
    store_thread_end(racer->f->store);
    return NULL;
}

static void a_grant_of_one_use_serves_one_of_many_at_once(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct racer racers[8];
    pthread_t threads[ARRAY_SIZE(racers)];
    pthread_barrier_t start;
    int n_allowed = 0;

    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ONCE);
    pthread_barrier_init(&start, NULL, ARRAY_SIZE(racers));
    for (size_t i = 0; i < ARRAY_SIZE(racers); i++) {
        racers[i] = (struct racer){ .f = &f, .start = &start };
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(racers); i++) {
        pthread_join(threads[i], NULL);
        n_allowed += racers[i].n_allowed;
    }
    pthread_barrier_destroy(&start);
    assert_int_equal(n_allowed, 1);
}

static bool grant_was_used(void *arg)
{
    struct fixture *f = arg;
    struct grant_row row;

    return store_grants_get(f->store, f->a, APP, PERM_LLM_CHAT, &row, NULL) == 0 && row.last_used_at != NULL;
}

static void each_grant_shows_when_it_was_last_used(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct caller caller = app_caller(&f);

    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    assert_false(grant_was_used(&f));
    require_code(&f, &caller, PERM_LLM_CHAT);
    assert_true(wait_until(grant_was_used, &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_in_either_header_is_a_developer),
        cmocka_unit_test(a_registered_app_id_is_that_app),
        cmocka_unit_test(key_and_app_id_together_are_the_key_with_the_apps_scope),
        cmocka_unit_test(a_bearer_value_that_is_no_key_spoils_nothing),
        cmocka_unit_test(nobody_and_unknown_ids_are_refused_in_the_words_of_the_specification),
        cmocka_unit_test(the_socket_is_the_administrator_unless_it_names_an_app),
        cmocka_unit_test(a_revoked_key_is_refused_at_once),
        cmocka_unit_test(keys_outlive_a_restart_and_are_not_in_the_database),
        cmocka_unit_test(the_last_use_of_a_key_is_noted_beside_the_request),
        cmocka_unit_test(a_removed_app_is_refused_at_once_and_a_new_one_known),
        cmocka_unit_test(permissions_follow_what_was_decided),
        cmocka_unit_test(a_missing_grant_is_reported_as_clients_expect),
        cmocka_unit_test(a_grant_holds_for_its_own_app_and_permission_only),
        cmocka_unit_test(every_use_of_a_dangerous_permission_is_in_the_audit_log),
        cmocka_unit_test(the_entry_of_a_use_is_stored_while_the_use_waits),
        cmocka_unit_test(a_use_whose_entry_cannot_be_stored_is_refused),
        cmocka_unit_test(a_permission_is_found_by_its_own_name_only),
        cmocka_unit_test(a_grant_of_one_use_serves_one_of_many_at_once),
        cmocka_unit_test(each_grant_shows_when_it_was_last_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
