/* The view of a user on a hosted project: what its requests carry, and what their refusals say. */
#include "hosted_script.h"
#include "base/base64.h"
#include "base/limits.h"

#define TABLE "svc_activities"
#define TOKEN "aaa.bbb.ccc"

/* The view of this token, which must be there. */
static struct backend *view_of(struct project *p, const char *token)
{
    struct backend *view = NULL;
    struct err e = { 0 };

    if (p->backend->ops->as_user(p->backend, token, p->arena, &view, &e) < 0)
        fail_msg("%s %s", e.code, e.text);
    return view;
}

static void requests_carry_the_token_and_the_publishable_key(void **state)
{
    static const char *const bodies[] = { TABLE_THERE };
    static const int statuses[] = { 200 };
    const struct backend_query q = { .table = TABLE };
    struct backend_rows rows;
    struct project p;
    struct err e = { 0 };

    open_patient_project(&p, bodies, statuses, 1);
    assert_int_equal(backend_list(view_of(&p, TOKEN), &q, p.arena, &rows, &e), 0);
    assert_true(heard(&p.script, "apikey=sb_publishable_1 authorization=Bearer " TOKEN " "));
    assert_int_equal(backend_list(view_of(&p, NULL), &q, p.arena, &rows, &e), 0);
    assert_true(heard(&p.script, "apikey=sb_publishable_1 authorization=Bearer sb_publishable_1 "));
    assert_int_equal(backend_list(p.backend, &q, p.arena, &rows, &e), 0);
    assert_true(heard(&p.script, "apikey=sb_secret_1 authorization=Bearer sb_secret_1 "));
    close_project(&p);
}

static void assert_claims_user(struct project *p, const char *claims, const char *user)
{
    const struct backend_new_row in = { .table = TABLE, .id = ID, .raw_data = "{}" };
    struct backend_row row;
    struct buf token;
    struct err e = { 0 };

    buf_init(&token, KIB(4));
    buf_add_str(&token, "h.");
    base64url_encode(&token, slice_of(claims));
    buf_add_str(&token, ".s");
    assert_int_equal(backend_insert(view_of(p, buf_str(&token)), &in, p->arena, &row, &e), 0);
    assert_int_equal(heard(&p->script, "user_id\":"), user != NULL);
    if (user)
        assert_true(heard(&p->script, user));
    buf_clear(&token);
}

static void a_new_row_is_the_user_s(void **state)
{
    static const char *const bodies[] = { TABLE_THERE, "[" ROW(ID) "]" };
    static const int statuses[] = { 200, 201 };
    struct project p;

    open_patient_project(&p, bodies, statuses, 2);
    assert_claims_user(&p, "{\"sub\":\"" OTHER "\"}", "\"user_id\":\"" OTHER "\"");
    assert_claims_user(&p, "{\"sub\":\"x\"}", NULL);
    assert_claims_user(&p, "{}", NULL);
    assert_claims_user(&p, "[", NULL);
    close_project(&p);
}

static void assert_token(struct project *p, const char *token, const char *code)
{
    struct backend *view = NULL;
    struct err e = { 0 };
    int r = p->backend->ops->as_user(p->backend, token, p->arena, &view, &e);

    assert_int_equal(r, code ? -EINVAL : 0);
    assert_string_equal(e.code, code ? code : "");
    assert_int_equal(view == NULL, code != NULL);
}

static void a_token_is_printable_and_of_bounded_length(void **state)
{
    static const char *const bodies[] = { TABLE_THERE };
    static const int statuses[] = { 200 };
    char *longest = xcalloc(1, LIMIT_JWT_BYTES + 2);
    struct backend_rows rows;
    struct project p;
    struct err e = { 0 };

    open_patient_project(&p, bodies, statuses, 1);
    memset(longest, 'x', LIMIT_JWT_BYTES);
    assert_token(&p, longest, NULL);
    assert_int_equal(backend_list(view_of(&p, longest), &(struct backend_query){ .table = TABLE }, p.arena, &rows, &e),
                     0);
    longest[LIMIT_JWT_BYTES] = 'x';
    assert_token(&p, longest, "MALFORMED_JWT");
    assert_token(&p, "", "MALFORMED_JWT");
    assert_token(&p, "a b", "MALFORMED_JWT");
    assert_token(&p, "a\r\napikey: b", "MALFORMED_JWT");
    assert_token(&p, "a\x7f", "MALFORMED_JWT");
    assert_token(&p, "\xc3\xbc", "MALFORMED_JWT");
    free(longest);
    close_project(&p);
}

static void a_key_of_the_service_role_is_no_key_of_users(void **state)
{
    static const char *const bodies[] = { TABLE_THERE };
    static const int statuses[] = { 200 };
    /* {"role":"service_role"} and {"role":"anon"} */
    static const char *const keys[] = { "sb_secret_1", "e30.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.c", NULL };
    struct backend_hosted_config config = { .key = "sb_secret_1", .abbr = "svc", .has_no_realtime = true };
    struct project p;

    open_patient_project(&p, bodies, statuses, 1);
    config.url = rig_url(&p.rig, "");
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        struct project other = { .arena = p.arena };
        struct err e = { 0 };

        config.user_key = keys[i];
        assert_int_equal(backend_hosted_open(&config, &other.backend, &e), 0);
        assert_token(&other, TOKEN, "BAD_SETTING");
        assert_token(&other, NULL, "BAD_SETTING");
        backend_close(other.backend);
    }
    config.user_key = "e30.eyJyb2xlIjoiYW5vbiJ9.c";
    backend_close(p.backend);
    assert_int_equal(backend_hosted_open(&config, &p.backend, NULL), 0);
    assert_token(&p, TOKEN, NULL);
    close_project(&p);
}

/* ---- refusals ---- */

static int get_as(const char *token, const char *body, int status, struct err *e)
{
    const char *const bodies[] = { TABLE_THERE, body };
    const int statuses[] = { 200, status };
    struct backend_row row;
    struct project p;
    int r;

    *e = (struct err){ 0 };
    open_patient_project(&p, bodies, statuses, 2);
    r = backend_get(view_of(&p, token), TABLE, ID, NULL, p.arena, &row, e);
    close_project(&p);
    return r;
}

static void the_project_s_refusals_are_the_user_s(void **state)
{
    static const struct {
        const char *token, *body;
        int status, r;
        const char *code;
    } rows[] = {
        { TOKEN, "[]", 200, -ENOENT, "NOT_FOUND" },
        { TOKEN, "{\"code\":\"42501\",\"message\":\"no\"}", 403, -EPERM, "ROW_REFUSED" },
        { TOKEN, "{\"code\":\"PGRST303\",\"message\":\"JWT expired\"}", 401, -EACCES, "JWT_EXPIRED" },
        { TOKEN, "{\"code\":\"PGRST301\",\"message\":\"JWT expired\"}", 401, -EACCES, "JWT_EXPIRED" },
        { TOKEN, "{\"code\":\"PGRST303\",\"message\":\"JWT not yet valid\"}", 401, -EACCES, "JWT_NOT_YET" },
        { TOKEN, "{\"code\":\"PGRST303\",\"message\":\"JWT issued at future\"}", 401, -EACCES, "JWT_NOT_YET" },
        { TOKEN, "{\"code\":\"PGRST301\",\"message\":\"No suitable key\"}", 401, -EACCES, "JWT_SIGNATURE" },
        { TOKEN, "{\"code\":401,\"message\":\"Invalid JWT\"}", 401, -EACCES, "JWT_SIGNATURE" },
        { TOKEN, "{\"message\":\"Invalid API key\"}", 401, -EACCES, "STORE_DENIED" },
        { TOKEN, "{\"code\":\"42P01\",\"message\":\"JWT expired\"}", 404, -ENOENT, "UNKNOWN_TABLE" },
        { NULL, "{\"code\":\"42501\",\"message\":\"permission denied\"}", 401, -EPERM, "ROW_REFUSED" },
        { NULL, "{\"code\":\"PGRST302\",\"message\":\"Anonymous access is disabled\"}", 401, -EPERM, "ROW_REFUSED" },
        { NULL, "{\"message\":\"Invalid API key\"}", 401, -EACCES, "STORE_DENIED" },
    };
    struct err e;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int r = get_as(rows[i].token, rows[i].body, rows[i].status, &e);

        if (r != rows[i].r || strcmp(e.code, rows[i].code) != 0)
            fail_msg("%s: %d %s %s", rows[i].body, r, e.code, e.text);
    }
}

static int update_from(const char *const *bodies, int n, struct err *e)
{
    static const int statuses[] = { 200, 200, 200, 200, 200, 200 };
    const struct backend_patch patch = { .status = "seen" };
    const struct backend_update_request request = { .table = TABLE, .id = ID, .patch = &patch };
    struct backend_row row;
    struct project p;
    int r;

    open_patient_project(&p, bodies, statuses, n);
    r = backend_update(view_of(&p, TOKEN), &request, p.arena, &row, e);
    close_project(&p);
    return r;
}

/* A policy may let users see rows that they may not change: the change then concerns no row. */
static void a_row_that_may_only_be_seen_is_refused(void **state)
{
    static const char *const same[] = { TABLE_THERE, "[" ROW(ID) "]", "[]", "[" ROW(ID) "]" };
    static const char *const moved[] = {
        TABLE_THERE, "[" ROW(ID) "]", "[]", HELD("1"), "[" ROW(ID) "]",
    };
    static const char *const gone[] = { TABLE_THERE, "[" ROW(ID) "]", "[]", "[]" };
    struct err e = { 0 };

    assert_int_equal(update_from(same, 4, &e), -EPERM);
    assert_string_equal(e.code, "ROW_REFUSED");
    assert_int_equal(update_from(moved, 5, &e), 0);
    assert_int_equal(update_from(gone, 4, &e), -ENOENT);
}

static int remove_from(const char *after, struct err *e)
{
    const char *const bodies[] = { TABLE_THERE, "[]", after };
    static const int statuses[] = { 200, 200, 200 };
    struct project p;
    int r;

    open_patient_project(&p, bodies, statuses, 3);
    r = p.backend->ops->remove(view_of(&p, TOKEN), TABLE, ID, NULL, e);
    close_project(&p);
    return r;
}

static void a_row_that_may_only_be_seen_is_not_deleted(void **state)
{
    struct err e = { 0 };

    assert_int_equal(remove_from("[" ROW(ID) "]", &e), -EPERM);
    assert_string_equal(e.code, "ROW_REFUSED");
    assert_int_equal(remove_from("[]", &e), -ENOENT);
    assert_string_equal(e.code, "NOT_FOUND");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_carry_the_token_and_the_publishable_key),
        cmocka_unit_test(a_new_row_is_the_user_s),
        cmocka_unit_test(a_token_is_printable_and_of_bounded_length),
        cmocka_unit_test(a_key_of_the_service_role_is_no_key_of_users),
        cmocka_unit_test(the_project_s_refusals_are_the_user_s),
        cmocka_unit_test(a_row_that_may_only_be_seen_is_refused),
        cmocka_unit_test(a_row_that_may_only_be_seen_is_not_deleted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
