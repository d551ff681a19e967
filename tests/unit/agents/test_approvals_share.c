/* How many questions of apps wait for a person: a share for each app, and places that no app takes. */
#include "../identity/fixture.h"

#include "agents/approvals.h"
#include "base/limits.h"
#include "settings/settings.h"

#include <string.h>

struct rig {
    struct fixture f;
    struct settings *settings;
    struct approvals *p;
    struct approval *all[LIMIT_PENDING_APPROVALS + 1];
    size_t n;
};

static void open_rig(struct rig *x)
{
    struct approvals_config c = { 0 };
    struct err e = { 0 };

    x->f = fixture_open();
    must(settings_load(&(struct settings_sources){ .n_flags = 0 }, &x->settings, &e), &e);
    c.store = x->f.store;
    c.settings = x->settings;
    must(approvals_open(&c, &x->p, &e), &e);
}

static void close_rig(struct rig *x)
{
    const struct net_wait wait = net_wait_of(1000, NULL, NULL);
    struct approval_answer answer;

    approvals_end_waits(x->p);
    for (size_t i = 0; i < x->n; i++)
        assert_int_equal(approvals_wait(x->p, x->all[i], &wait, x->f.a, &answer, NULL), -ECANCELED);
    approvals_close(x->p);
    settings_free(x->settings);
    fixture_close(&x->f);
}

/* Puts questions of this app until one is refused; how many were taken, and the refusal's sentence. */
static size_t fill_as(struct rig *x, const char *app_id, struct err *e)
{
    const struct approval_question q = {
        .kind = "tool", .agent = "triage", .server = "files", .tool = "write_file", .app_id = app_id
    };
    size_t before = x->n;

    *e = (struct err){ 0 };
    while (approvals_put(x->p, &q, &x->all[x->n], e) == 0)
        x->n++;
    assert_string_equal(e->code, "TOO_MANY_QUESTIONS");
    return x->n - before;
}

static void one_app_takes_its_share_only(void **state)
{
    struct rig x = { .n = 0 };
    struct err e;

    open_rig(&x);
    assert_int_equal(fill_as(&x, "flooder", &e), LIMIT_APP_APPROVALS);
    assert_non_null(strstr(e.text, "64 questions of this app"));
    assert_int_equal(fill_as(&x, "another", &e), LIMIT_APP_APPROVALS);
    close_rig(&x);
}

static void many_apps_leave_places_for_questions_of_no_app(void **state)
{
    struct rig x = { .n = 0 };
    struct err e = { 0 };

    open_rig(&x);
    for (int i = 0; !strstr(e.text, "questions of apps"); i++)
        fill_as(&x, arena_printf(x.f.a, "app %d", i), &e);
    assert_int_equal(x.n, LIMIT_PENDING_APPROVALS - LIMIT_APP_APPROVALS);
    assert_int_equal(fill_as(&x, "", &e), LIMIT_APP_APPROVALS);
    close_rig(&x);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_app_takes_its_share_only),
        cmocka_unit_test(many_apps_leave_places_for_questions_of_no_app),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
