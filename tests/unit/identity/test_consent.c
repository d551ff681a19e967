#include "fixture.h"
#include "../wait.h"
#include "base/limits.h"
#include "identity/state.h"
#include <pthread.h>

/* ---- a call that waits on a thread of its own ---- */

struct requester {
    struct fixture *f;
    const char *const *permissions;
    size_t n;
    int64_t wait_ms;
    atomic_bool is_gone;
    struct consent_answer answers[4];
    int r;
    pthread_t thread;
};

static void *request(void *arg)
{
    struct requester *requester = arg;
    const struct consent_request wanted = { .app_id = APP,
                                            .permissions = requester->permissions,
                                            .n = requester->n,
                                            .wait_ms = requester->wait_ms,
                                            .is_gone = &requester->is_gone };

    requester->r = consent_request(requester->f->id, &wanted, requester->answers, NULL);
    store_thread_end(requester->f->store);
    return NULL;
}

static void start(struct requester *requester)
{
    if (!requester->wait_ms)
        requester->wait_ms = WAIT_MS;
    assert_int_equal(pthread_create(&requester->thread, NULL, request, requester), 0);
}

static void join(struct requester *requester)
{
    pthread_join(requester->thread, NULL);
    assert_int_equal(requester->r, 0);
}

struct expected {
    struct fixture *f;
    size_t n;
};

static bool are_pending(void *arg)
{
    struct expected *expected = arg;

    return count_pending(expected->f) == expected->n;
}

static void wait_for_pending(struct fixture *f, size_t n)
{
    assert_true(wait_until(are_pending, &(struct expected){ f, n }));
}

static struct consent_answer request_now(struct fixture *f, const char *permission)
{
    struct consent_answer answer;
    struct err e = { 0 };

    must(consent_request(f->id, &(struct consent_request){ .app_id = APP, .permissions = &permission, .n = 1 }, &answer,
                         &e),
         &e);
    return answer;
}

static const char *const chat[] = { PERM_LLM_CHAT };
static const char *const three[] = { PERM_LLM_CHAT, PERM_LLM_EMBED, "made.up" };

/* ---- tests ---- */

static void a_waiting_call_gets_the_persons_answer(void **state)
{
    for (int is_allowed = 0; is_allowed <= 1; is_allowed++) {
        AUTO(fixture_close) struct fixture f = fixture_open();
        struct requester requester = { .f = &f, .permissions = chat, .n = 1 };
        struct caller caller = app_caller(&f);

        start(&requester);
        wait_for_pending(&f, 1);
        decide(&f, APP, PERM_LLM_CHAT, is_allowed, CONSENT_ALWAYS);
        join(&requester);
        assert_int_equal(requester.answers[0].is_granted, is_allowed);
        assert_int_equal(requester.answers[0].is_denied, !is_allowed);
        assert_string_equal(require_code(&f, &caller, PERM_LLM_CHAT), is_allowed ? "" : "PERMISSION_DENIED");
        assert_int_equal(count_pending(&f), 0);
    }
}

static void a_question_stays_when_nobody_waits_for_it_any_more(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct consent_answer answer = request_now(&f, PERM_LLM_CHAT);

    assert_false(answer.is_granted || answer.is_denied);
    assert_int_equal(count_pending(&f), 1);
    request_now(&f, PERM_LLM_CHAT);
    assert_int_equal(count_pending(&f), 1); /* the same question */
    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    assert_true(request_now(&f, PERM_LLM_CHAT).is_granted);
}

static void a_client_that_leaves_ends_the_wait(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct requester requester = { .f = &f, .permissions = chat, .n = 1, .wait_ms = 10 * WAIT_MS };
    int64_t began_ms = clock_mono_ms();

    start(&requester);
    wait_for_pending(&f, 1);
    atomic_store(&requester.is_gone, true);
    consent_poke(f.id);
    join(&requester);
    assert_true(clock_mono_ms() - began_ms < 10 * WAIT_MS);
    assert_false(requester.answers[0].is_granted || requester.answers[0].is_denied);
}

static void a_bulk_prompt_ends_when_every_part_is_answered(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct requester requester = { .f = &f, .permissions = three, .n = 3 };
    struct consent_questions pending;
    struct err e = { 0 };

    start(&requester);
    wait_for_pending(&f, 3);
    must(consent_pending(f.id, f.a, &pending, &e), &e);
    assert_string_equal(pending.items[0].id, pending.items[2].id);
    assert_string_equal(pending.items[0].app_name, "triage");
    assert_true(pending.items[0].is_known);
    assert_false(pending.items[2].is_known);
    decide(&f, APP, PERM_LLM_EMBED, false, CONSENT_ALWAYS);
    decide(&f, APP, "made.up", true, CONSENT_ALWAYS);
    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ONCE);
    join(&requester);
    assert_true(requester.answers[0].is_granted);
    assert_true(requester.answers[1].is_denied);
    assert_true(requester.answers[2].is_granted);
}

static void every_call_that_waits_for_a_permission_is_answered(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct requester first = { .f = &f, .permissions = chat, .n = 1 },
                     second = { .f = &f, .permissions = three, .n = 3 };

    start(&first);
    start(&second);
    wait_for_pending(&f, 3);
    decide(&f, APP, PERM_LLM_EMBED, true, CONSENT_ALWAYS);
    decide(&f, APP, "made.up", true, CONSENT_ALWAYS);
    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    join(&first);
    join(&second);
    assert_true(first.answers[0].is_granted && second.answers[0].is_granted);
}

static void a_second_denial_stops_asking_until_it_is_reset(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct err e = { 0 };

    decide(&f, APP, PERM_LLM_CHAT, false, CONSENT_ALWAYS);
    assert_false(request_now(&f, PERM_LLM_CHAT).is_denied); /* asked once more */
    assert_int_equal(count_pending(&f), 1);
    decide(&f, APP, PERM_LLM_CHAT, false, CONSENT_ALWAYS);
    assert_true(request_now(&f, PERM_LLM_CHAT).is_denied);
    assert_int_equal(count_pending(&f), 0);
    must(consent_reset(f.id, APP, "admin", &e), &e);
    assert_false(request_now(&f, PERM_LLM_CHAT).is_denied);
    assert_int_equal(count_pending(&f), 1);
}

static int64_t count_denials(struct fixture *f)
{
    struct grant_row row;
    struct err e = { 0 };

    must(store_grants_get(f->store, f->a, APP, PERM_LLM_CHAT, &row, &e), &e);
    return row.n_denials;
}

static void one_question_denied_twice_is_one_denial(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();

    for (int64_t n_questions = 1; n_questions <= 2; n_questions++) {
        assert_false(request_now(&f, PERM_LLM_CHAT).is_denied);
        decide(&f, APP, PERM_LLM_CHAT, false, CONSENT_ALWAYS);
        decide(&f, APP, PERM_LLM_CHAT, false, CONSENT_ALWAYS);
        assert_int_equal(count_denials(&f), n_questions);
    }
    assert_true(request_now(&f, PERM_LLM_CHAT).is_denied);
    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    decide(&f, APP, PERM_LLM_CHAT, false, CONSENT_ALWAYS); /* a later decision counts, even without a question */
    assert_int_equal(count_denials(&f), 1);
}

struct denier {
    struct fixture *f;
    pthread_barrier_t *start;
};

static void *deny_at_once(void *arg)
{
    struct denier *denier = arg;

    pthread_barrier_wait(denier->start);
    decide(denier->f, APP, PERM_LLM_CHAT, false, CONSENT_ALWAYS);
    store_thread_end(denier->f->store);
    return NULL;
}

static void one_question_denied_by_many_at_once_is_one_denial(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    pthread_barrier_t start;
    struct denier denier = { .f = &f, .start = &start };
    pthread_t threads[4];

    request_now(&f, PERM_LLM_CHAT);
    pthread_barrier_init(&start, NULL, ARRAY_SIZE(threads));
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, deny_at_once, &denier), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    assert_int_equal(count_denials(&f), 1);
}

static void a_grant_until_a_date_ends_there(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct caller caller = app_caller(&f);
    struct grant_row past = { .app_id = APP,
                              .permission = PERM_LLM_CHAT,
                              .decision = "allow",
                              .scope = "until_date",
                              .expires_at = "2020-01-01T00:00:00.000Z" };
    struct consent_decision future = { .app_id = APP,
                                       .permission = PERM_LLM_EMBED,
                                       .is_allowed = true,
                                       .scope = CONSENT_UNTIL_DATE,
                                       .until = "2999-12-31",
                                       .actor = "admin" };
    struct err e = { 0 };

    must(store_grants_set(f.store, &past, &e), &e);
    must(consent_decide(f.id, &future, &e), &e);
    assert_string_equal(require_code(&f, &caller, PERM_LLM_CHAT), "PERMISSION_REQUIRED");
    assert_string_equal(require_code(&f, &caller, PERM_LLM_EMBED), "");
}

static void a_decision_with_a_bad_end_is_refused(void **state)
{
    static const char *const ends[] = { NULL, "", "soon", "2020-01-01" };
    AUTO(fixture_close) struct fixture f = fixture_open();

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        struct consent_decision d = { .app_id = APP,
                                      .permission = PERM_LLM_CHAT,
                                      .is_allowed = true,
                                      .scope = CONSENT_UNTIL_DATE,
                                      .until = ends[i],
                                      .actor = "admin" };
        struct err e = { 0 };

        assert_int_equal(consent_decide(f.id, &d, &e), -EINVAL);
        assert_string_equal(e.fields[0].field, "until");
    }
    assert_int_equal(count_audit(&f, "permission.allow"), 0);
}

static void grants_until_the_app_stops_end_with_it_and_with_the_service(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct caller caller = app_caller(&f);
    struct err e = { 0 };

    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_UNTIL_STOP);
    assert_string_equal(require_code(&f, &caller, PERM_LLM_CHAT), "");
    must(consent_app_stopped(f.id, APP, &e), &e);
    assert_string_equal(require_code(&f, &caller, PERM_LLM_CHAT), "PERMISSION_REQUIRED");
    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_UNTIL_STOP);
    f.id = identity_close(f.id);
    fixture_open_identity(&f);
    assert_string_equal(require_code(&f, &caller, PERM_LLM_CHAT), "PERMISSION_REQUIRED");
}

static void revoking_takes_effect_at_once_and_leaves_waiting_questions(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct requester requester = { .f = &f, .permissions = three, .n = 3 };
    struct caller caller = app_caller(&f);
    struct err e = { 0 };

    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    start(&requester);
    wait_for_pending(&f, 2);
    must(consent_revoke(f.id, APP, PERM_LLM_CHAT, "admin", &e), &e);
    assert_string_equal(require_code(&f, &caller, PERM_LLM_CHAT), "PERMISSION_REQUIRED");
    decide(&f, APP, PERM_LLM_EMBED, true, CONSENT_ALWAYS);
    decide(&f, APP, "made.up", true, CONSENT_ALWAYS);
    join(&requester);
    assert_int_equal(consent_revoke(f.id, APP, PERM_LLM_CHAT, "admin", &e), -ENOENT);
    assert_string_equal(e.code, "GRANT_NOT_FOUND");
}

static void a_waiting_call_is_not_reported_a_grant_that_was_revoked_meanwhile(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct requester requester = { .f = &f, .permissions = three, .n = 3, .wait_ms = 10 * WAIT_MS };
    int64_t began_ms = clock_mono_ms();
    struct err e = { 0 };

    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    start(&requester);
    wait_for_pending(&f, 2);
    must(consent_revoke(f.id, APP, PERM_LLM_CHAT, "admin", &e), &e);
    assert_int_equal(count_pending(&f), 2);
    decide(&f, APP, PERM_LLM_EMBED, true, CONSENT_ALWAYS);
    decide(&f, APP, "made.up", true, CONSENT_ALWAYS);
    join(&requester);
    assert_true(clock_mono_ms() - began_ms < 10 * WAIT_MS);
    assert_false(requester.answers[0].is_granted || requester.answers[0].is_denied);
    assert_true(requester.answers[1].is_granted && requester.answers[2].is_granted);
}

static void count_call(void *arg)
{
    ++*(int *)arg;
}

static void a_reset_takes_the_apps_questions_along_and_ends_its_waits(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct requester requester = { .f = &f, .permissions = three, .n = 3, .wait_ms = 10 * WAIT_MS };
    int64_t began_ms = clock_mono_ms();
    int n_calls = 0;
    struct err e = { 0 };

    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    must(consent_app_misses(f.id, OTHER_APP, PERM_LLM_CHAT, &e), &e);
    start(&requester);
    wait_for_pending(&f, 3);
    consent_on_change(f.id, count_call, &n_calls);
    must(consent_reset(f.id, APP, "admin", &e), &e);
    join(&requester);
    assert_true(clock_mono_ms() - began_ms < 10 * WAIT_MS);
    for (size_t i = 0; i < ARRAY_SIZE(three); i++)
        assert_false(requester.answers[i].is_granted || requester.answers[i].is_denied);
    assert_int_equal(count_pending(&f), 1); /* of the other app */
    assert_int_equal(n_calls, 1);
}

static void what_an_app_declares_anew_is_asked_and_what_is_decided_is_not(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    static const char *const more[] = { PERM_LLM_CHAT, PERM_LLM_EMBED, PERM_MCP_TOOLS };
    struct err e = { 0 };

    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    decide(&f, APP, PERM_LLM_EMBED, false, CONSENT_ALWAYS);
    must(consent_app_declares(f.id, APP, more, 2, &e), &e);
    assert_int_equal(count_pending(&f), 0);
    must(consent_app_declares(f.id, APP, more, 3, &e), &e);
    assert_int_equal(count_pending(&f), 1);
}

static void a_removed_app_takes_its_questions_along(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct requester requester = { .f = &f, .permissions = chat, .n = 1 };
    struct err e = { 0 };

    start(&requester);
    wait_for_pending(&f, 1);
    must(store_apps_delete(f.store, APP, &e), &e);
    consent_app_removed(f.id, APP);
    join(&requester);
    assert_false(requester.answers[0].is_granted);
    assert_int_equal(count_pending(&f), 0);
}

static void unknown_apps_and_bad_names_are_refused(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    static const struct {
        const char *app_id, *permission, *code;
    } cases[] = {
        { NO_APP, PERM_LLM_CHAT, "APP_NOT_FOUND" },
        { APP, "", "VALIDATION_ERROR" },
    };
    char name[LIMIT_NAME_CHARS + 2] = "";
    struct consent_request wanted;
    struct consent_answer answer;
    const char *longest = name;
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        e = (struct err){ 0 };
        wanted = (struct consent_request){ .app_id = cases[i].app_id, .permissions = &cases[i].permission, .n = 1 };
        assert_true(consent_request(f.id, &wanted, &answer, &e) < 0);
        assert_string_equal(e.code, cases[i].code);
    }
    memset(name, 'x', LIMIT_NAME_CHARS);
    wanted = (struct consent_request){ .app_id = APP, .permissions = &longest, .n = 1 };
    must(consent_request(f.id, &wanted, &answer, &e), &e);
    name[LIMIT_NAME_CHARS] = 'x';
    assert_int_equal(consent_request(f.id, &wanted, &answer, &e), -EINVAL);
}

static int miss(struct fixture *f, const char *app_id, const char *permission, struct err *e)
{
    *e = (struct err){ 0 };
    return consent_app_misses(f->id, app_id, permission, e);
}

static void one_app_fills_its_own_part_of_the_list_only(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct err e;

    for (int i = 0; i < LIMIT_PERMISSIONS_PER_APP; i++)
        request_now(&f, arena_printf(f.a, "made.up.%d", i));
    request_now(&f, "made.up.7"); /* an old question may be asked again */
    assert_int_equal(miss(&f, APP, "one.more", &e), -EAGAIN);
    assert_string_equal(e.code, "TOO_MANY_QUESTIONS");
    assert_int_equal(miss(&f, OTHER_APP, "one.more", &e), 0);
    decide(&f, APP, "made.up.0", true, CONSENT_ALWAYS);
    assert_int_equal(miss(&f, APP, "one.more", &e), 0);
}

static void the_list_of_questions_is_bounded(void **state)
{
    enum { N_APPS = LIMIT_PENDING_CONSENTS / LIMIT_PERMISSIONS_PER_APP };
    AUTO(fixture_close) struct fixture f = fixture_open();
    char app_id[UUID_SIZE];
    struct err e = { 0 };

    for (int i = 0; i < N_APPS; i++) {
        uuid_of_text(slice_of(arena_printf(f.a, "app %d", i)), app_id);
        fixture_add_app(&f, app_id, app_id);
        must(identity_reload_apps(f.id, &e), &e);
        for (int j = 0; j < LIMIT_PERMISSIONS_PER_APP; j++)
            must(miss(&f, app_id, arena_printf(f.a, "made.up.%d", j), &e), &e);
    }
    assert_int_equal(count_pending(&f), LIMIT_PENDING_CONSENTS);
    assert_int_equal(miss(&f, APP, "one.more", &e), -EAGAIN);
    consent_app_removed(f.id, app_id);
    assert_int_equal(miss(&f, APP, "one.more", &e), 0);
}

static bool are_all_asking(void *arg)
{
    struct requester *last = arg;
    struct queue *queue = &last->f->id->queue;
    size_t n = 0;

    pthread_mutex_lock(&queue->lock);
    for (struct consent_waiter *w = queue->waiters; w; w = w->next)
        n++;
    pthread_mutex_unlock(&queue->lock);
    return n == LIMIT_CONSENT_WAITS_PER_APP;
}

static void so_many_requests_of_one_app_may_wait_and_no_more(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct requester requesters[LIMIT_CONSENT_WAITS_PER_APP];
    const struct consent_request wanted = { .app_id = APP, .permissions = chat, .n = 1, .wait_ms = WAIT_MS };
    struct consent_answer answer;
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(requesters); i++) {
        requesters[i] = (struct requester){ .f = &f, .permissions = chat, .n = 1 };
        start(&requesters[i]);
    }
    assert_true(wait_until(are_all_asking, &requesters[0]));
    assert_int_equal(consent_request(f.id, &wanted, &answer, &e), -EAGAIN);
    assert_string_equal(e.code, "TOO_MANY_QUESTIONS");
    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    for (size_t i = 0; i < ARRAY_SIZE(requesters); i++) {
        join(&requesters[i]);
        assert_true(requesters[i].answers[0].is_granted);
    }
}

static void an_app_may_ask_for_so_many_permissions_at_once(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    struct consent_answer answers[LIMIT_PERMISSIONS_PER_APP + 1];
    const char *names[LIMIT_PERMISSIONS_PER_APP + 1];
    struct consent_request wanted = { .app_id = APP, .permissions = names, .n = ARRAY_SIZE(names) };
    struct err e = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        names[i] = arena_printf(f.a, "made.up.%zu", i);
    assert_int_equal(consent_request(f.id, &wanted, answers, &e), -EINVAL);
    wanted.n--;
    must(consent_request(f.id, &wanted, answers, &e), &e);
    assert_int_equal(count_pending(&f), LIMIT_PERMISSIONS_PER_APP);
}

static void a_listener_hears_of_questions_and_answers(void **state)
{
    AUTO(fixture_close) struct fixture f = fixture_open();
    int n_calls = 0;

    consent_on_change(f.id, count_call, &n_calls);
    request_now(&f, PERM_LLM_CHAT);
    assert_int_equal(n_calls, 1);
    request_now(&f, PERM_LLM_CHAT);
    assert_int_equal(n_calls, 1);
    decide(&f, APP, PERM_LLM_CHAT, true, CONSENT_ALWAYS);
    assert_int_equal(n_calls, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiting_call_gets_the_persons_answer),
        cmocka_unit_test(a_question_stays_when_nobody_waits_for_it_any_more),
        cmocka_unit_test(a_client_that_leaves_ends_the_wait),
        cmocka_unit_test(a_bulk_prompt_ends_when_every_part_is_answered),
        cmocka_unit_test(every_call_that_waits_for_a_permission_is_answered),
        cmocka_unit_test(a_second_denial_stops_asking_until_it_is_reset),
        cmocka_unit_test(one_question_denied_twice_is_one_denial),
        cmocka_unit_test(one_question_denied_by_many_at_once_is_one_denial),
        cmocka_unit_test(a_grant_until_a_date_ends_there),
        cmocka_unit_test(a_decision_with_a_bad_end_is_refused),
        cmocka_unit_test(grants_until_the_app_stops_end_with_it_and_with_the_service),
        cmocka_unit_test(revoking_takes_effect_at_once_and_leaves_waiting_questions),
        cmocka_unit_test(a_waiting_call_is_not_reported_a_grant_that_was_revoked_meanwhile),
        cmocka_unit_test(a_reset_takes_the_apps_questions_along_and_ends_its_waits),
        cmocka_unit_test(what_an_app_declares_anew_is_asked_and_what_is_decided_is_not),
        cmocka_unit_test(a_removed_app_takes_its_questions_along),
        cmocka_unit_test(unknown_apps_and_bad_names_are_refused),
        cmocka_unit_test(one_app_fills_its_own_part_of_the_list_only),
        cmocka_unit_test(the_list_of_questions_is_bounded),
        cmocka_unit_test(so_many_requests_of_one_app_may_wait_and_no_more),
        cmocka_unit_test(an_app_may_ask_for_so_many_permissions_at_once),
        cmocka_unit_test(a_listener_hears_of_questions_and_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
