#include "fixture.h"
#include "identity/backend_token.h"
#include "identity/claim.h"
#include "identity/seal.h"
#include "identity/sessions.h"
#include "store/tables/backend_tokens.h"

static bool is_admin(struct fixture *f, const char *cookie, const char *proof)
{
    struct caller caller = { .kind = CALLER_NOBODY };
    struct err e = { 0 };

    if (identity_admin(f->id, &(struct credentials){ .session_cookie = cookie, .session_proof = proof }, f->a, &caller,
                       &e) == 0)
        return caller.kind == CALLER_ADMIN && caller.session;
    assert_string_equal(e.code, "ADMIN_REQUIRED");
    return false;
}

static struct session_tokens open_one(struct fixture *f, char link[SESSION_TOKEN_SIZE])
{
    struct session_tokens ret;
    struct err e = { 0 };

    must(session_link_new(f->id, link, &e), &e);
    must(session_open(f->id, link, &ret, &e), &e);
    return ret;
}

static void a_link_opens_one_session(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char link[SESSION_TOKEN_SIZE];
    struct session_tokens session = open_one(&f, link);
    struct err e = { 0 };

    assert_true(is_admin(&f, session.cookie, session.proof));
    assert_false(is_admin(&f, link, link));
    assert_int_equal(session_open(f.id, link, &session, &e), -EACCES);
    assert_string_equal(e.code, "LINK_INVALID");
    assert_int_equal(count_audit(&f, "session.open"), 1);
}

static void cookie_and_proof_are_of_one_session_or_nothing(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char link[SESSION_TOKEN_SIZE];
    struct session_tokens one = open_one(&f, link), other = open_one(&f, link);

    assert_string_not_equal(one.cookie, one.proof);
    assert_true(is_admin(&f, other.cookie, other.proof));
    assert_false(is_admin(&f, one.cookie, NULL));
    assert_false(is_admin(&f, one.cookie, ""));
    assert_false(is_admin(&f, NULL, one.proof));
    assert_false(is_admin(&f, one.cookie, other.proof));
    assert_false(is_admin(&f, one.cookie, one.cookie));
    assert_false(is_admin(&f, one.proof, one.cookie));
}

static enum holder_kind kind_claimed(struct fixture *f, const struct session_tokens *session)
{
    struct claim claim = { .kind = HOLDER_NOBODY };
    struct err e = { 0 };

    must(identity_claim(f->id,
                        &(struct credentials){ .session_cookie = session->cookie, .session_proof = session->proof },
                        true, &claim, &e),
         &e);
    return claim.kind;
}

static void a_closed_session_is_none(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char link[SESSION_TOKEN_SIZE];
    struct session_tokens session = open_one(&f, link);
    struct caller caller;
    struct err e = { 0 };

    must(identity_admin(f.id, &(struct credentials){ .session_cookie = session.cookie, .session_proof = session.proof },
                        f.a, &caller, &e),
         &e);
    assert_int_equal(kind_claimed(&f, &session), HOLDER_ADMIN);
    must(session_close(f.id, &caller, &e), &e);
    assert_int_equal(kind_claimed(&f, &session),
                     HOLDER_NOBODY); /* such a session uses no budget of the administrator */
    assert_false(is_admin(&f, session.cookie, session.proof));
}

static void made_up_sessions_and_links_are_refused(void **state)
{
    static const char *const cookies[] = { NULL, "", "x", "0000000000000000000000000000000000000000000" };
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct session_tokens session;
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(cookies); i++)
        assert_false(is_admin(&f, cookies[i], cookies[i]));
    assert_int_equal(session_open(f.id, "x", &session, &e), -EACCES);
}

static void a_key_is_no_administrator(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    char key[KEY_TEXT_SIZE], id[UUID_SIZE];
    struct caller caller;
    struct err e = { 0 };

    must(key_new(f.id, "k", "admin", key, id, &e), &e);
    assert_int_equal(identity_admin(f.id, &(struct credentials){ .x_api_key = key }, f.a, &caller, &e), -EACCES);
}

static void a_backend_token_is_seen_by_its_own_scope_and_sealed_in_the_store(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct caller app = app_caller(&f), other = caller_of(&f, (struct credentials){ .x_app_id = OTHER_APP });
    const char *token = "a-token-nobody-else-may-read", *synced_at = NULL;
    struct backend_token got;
    struct backend_token_row row;
    struct err e = { 0 };

    must(backend_token_set(f.id, &app, token, f.a, &synced_at, &e), &e);
    must(backend_token_get(f.id, &app, f.a, &got, &e), &e);
    assert_string_equal(got.token, token);
    assert_string_equal(got.synced_at, synced_at);
    assert_int_equal(backend_token_get(f.id, &other, f.a, &got, &e), -ENOENT);
    must(store_backend_tokens_get(f.store, f.a, APP, &row, &e), &e);
    assert_null(memmem(row.token.p, row.token.n, token, strlen(token)));
    must(backend_token_set(f.id, &app, "", f.a, &synced_at, &e), &e);
    assert_int_equal(backend_token_get(f.id, &app, f.a, &got, &e), -ENOENT);
}

static void what_was_sealed_opens_under_its_own_key_only(void **state)
{
    unsigned char key[SEAL_KEY_BYTES] = { 1 }, other[SEAL_KEY_BYTES] = { 2 };
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice plain;
    struct buf sealed;

    buf_init(&sealed, 1000);
    seal_bytes(key, SLICE_LIT("secret"), &sealed);
    assert_int_equal(seal_open(key, buf_slice(&sealed), a, &plain, NULL), 0);
    assert_true(slice_eq_str(plain, "secret"));
    assert_int_equal(seal_open(other, buf_slice(&sealed), a, &plain, NULL), -EBADMSG);
    sealed.p[sealed.n - 1] ^= 1;
    assert_int_equal(seal_open(key, buf_slice(&sealed), a, &plain, NULL), -EBADMSG);
    assert_int_equal(seal_open(key, SLICE_LIT("short"), a, &plain, NULL), -EBADMSG);
    buf_clear(&sealed);
}

static void the_master_key_is_made_once_and_private(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    unsigned char first[SEAL_KEY_BYTES], second[SEAL_KEY_BYTES];
    const char *path = arena_printf(f.a, "%s/master.key", f.path);
    struct err e = { 0 };

    must(seal_load(f.path, first, &e), &e);
    must(seal_load(f.path, second, &e), &e);
    assert_memory_equal(first, second, sizeof(first));
    assert_int_equal(access(path, F_OK), 0);
    must(file_write(path, SLICE_LIT("short"), 0600, &e), &e);
    assert_int_equal(seal_load(f.path, first, &e), -EINVAL);
    assert_string_equal(e.code, "BAD_MASTER_KEY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_opens_one_session),
        cmocka_unit_test(cookie_and_proof_are_of_one_session_or_nothing),
        cmocka_unit_test(a_closed_session_is_none),
        cmocka_unit_test(made_up_sessions_and_links_are_refused),
        cmocka_unit_test(a_key_is_no_administrator),
        cmocka_unit_test(a_backend_token_is_seen_by_its_own_scope_and_sealed_in_the_store),
        cmocka_unit_test(what_was_sealed_opens_under_its_own_key_only),
        cmocka_unit_test(the_master_key_is_made_once_and_private),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
