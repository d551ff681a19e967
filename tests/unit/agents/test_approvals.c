/* Questions for a person: answered, denied, unanswered, kept, raced with cancel; exactly one outcome each. */
#include "../identity/fixture.h"
#include "../wait.h"

#include "agents/approvals.h"
#include "base/limits.h"
#include "settings/settings.h"
#include "store/tables/approval_rules.h"

#include <pthread.h>
#include <string.h>

struct rig {
    struct fixture f;
    struct settings *settings;
    struct approvals *p;
    atomic_int n_changes;
};

static void on_change(void *arg)
{
    atomic_fetch_add(&((struct rig *)arg)->n_changes, 1);
}

/* wait: "approvals.wait_s=..." */
static void open_with(struct rig *x, const char *wait)
{
    const char *const flags[] = { wait };
    const struct settings_sources from = { .flags = flags, .n_flags = 1 };
    struct err e = { 0 };

    x->f = fixture_open();
    must(settings_load(&from, &x->settings, &e), &e);
    must(approvals_open(
             &(struct approvals_config){
                 .store = x->f.store, .settings = x->settings, .identity = x->f.id, .on_change = on_change, .arg = x },
             &x->p, &e),
         &e);
}

static void open_rig(struct rig *x)
{
    open_with(x, "approvals.wait_s=600");
}

static void close_rig(struct rig *x)
{
    approvals_close(x->p);
    settings_free(x->settings);
    fixture_close(&x->f);
}

static struct json_value json(struct rig *x, const char *text)
{
    struct json_value v = { 0 };
    struct err e = { 0 };

    must(json_parse(x->f.a, slice_of(text), &v, &e), &e);
    return v;
}

static struct approval_question a_call(const char *session)
{
    return (struct approval_question){
        .kind = "tool", .agent = "triage", .server = "files", .tool = "write_file", .session_id = session
    };
}

/* ---- a call that waits on a thread of its own ---- */

struct waiting {
    struct rig *x;
    struct approval_question q;
    atomic_bool is_gone;
    pthread_t thread;
    struct arena *a;
    struct approval_answer answer;
    int r;
    struct err e;
};

static void *wait_main(void *arg)
{
    struct waiting *w = arg;
    const struct net_wait wait = net_wait_of(1, &w->is_gone, NULL); /* the deadline does not count */

    w->r = approvals_request(w->x->p, &w->q, &wait, w->a, &w->answer, &w->e);
    return NULL;
}

static bool is_listed(void *arg)
{
    return approvals_n_pending(((struct waiting *)arg)->x->p) > 0;
}

static void begin(struct waiting *w, struct rig *x, struct approval_question q)
{
    *w = (struct waiting){ .x = x, .q = q, .a = arena_new() };
    assert_int_equal(pthread_create(&w->thread, NULL, wait_main, w), 0);
}

static const char *listed_id(struct waiting *w)
{
    struct approval_views views = { .n = 0 };

    assert_true(wait_until(is_listed, w));
    approvals_list(w->x->p, w->x->f.a, &views);
    assert_true(views.n > 0);
    return views.items[0].id;
}

static void end(struct waiting *w)
{
    pthread_join(w->thread, NULL);
    arena_free(w->a);
}

static int decide_as(struct rig *x, const char *id, bool is_allowed, enum approval_scope scope, struct json_value reply,
                     struct err *e)
{
    return approvals_decide(x->p,
                            &(struct approval_decision){
                                .id = id, .is_allowed = is_allowed, .scope = scope, .reply = reply, .actor = "admin" },
                            e);
}

static void decide_now(struct rig *x, const char *id, bool is_allowed, enum approval_scope scope)
{
    struct err e = { 0 };

    must(decide_as(x, id, is_allowed, scope, (struct json_value){ 0 }, &e), &e);
}

static enum approval_outcome outcome_now(struct rig *x, struct approval_question q)
{
    const struct net_wait wait = net_wait_of(1000, NULL, NULL);
    struct approval_answer answer = { 0 };
    struct err e = { 0 };

    must(approvals_request(x->p, &q, &wait, x->f.a, &answer, &e), &e);
    assert_true(answer.was_kept);
    return answer.outcome;
}

/* ---- tests ---- */

static void a_person_allows_a_call(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    struct approval_views views = { .n = 0 };
    struct approval_question q;
    struct waiting w;

    open_rig(&x);
    q = a_call("s1");
    q.arguments = json(&x, "{\"path\":\"a.txt\"}");
    begin(&w, &x, q);
    listed_id(&w);
    approvals_list(x.p, x.f.a, &views);
    assert_string_equal(views.items[0].arguments, "{\"path\":\"a.txt\"}");
    assert_string_equal(views.items[0].tool, "write_file");
    decide_now(&x, views.items[0].id, true, APPROVAL_ONCE);
    end(&w);
    assert_int_equal(w.r, 0);
    assert_int_equal(w.answer.outcome, APPROVAL_ALLOWED);
    assert_int_equal(approvals_n_pending(x.p), 0);
    assert_int_equal(count_audit(&x.f, "approval.allow"), 1);
    assert_in_range(atomic_load(&x.n_changes), 2, 3);
}

static void a_denial_is_a_denial(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    struct waiting w;

    open_rig(&x);
    begin(&w, &x, a_call(NULL));
    decide_now(&x, listed_id(&w), false, APPROVAL_ONCE);
    end(&w);
    assert_int_equal(w.answer.outcome, APPROVAL_DENIED);
}

static void nobody_answers_in_time(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    struct waiting w;

    open_with(&x, "approvals.wait_s=1");
    begin(&w, &x, a_call(NULL));
    end(&w);
    assert_int_equal(w.r, 0);
    assert_int_equal(w.answer.outcome, APPROVAL_UNANSWERED);
    assert_int_equal(approvals_n_pending(x.p), 0);
}

static void a_cancelled_call_waits_no_longer(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    struct err e = { 0 };
    struct waiting w;
    const char *id;

    open_rig(&x);
    begin(&w, &x, a_call(NULL));
    id = listed_id(&w);
    atomic_store(&w.is_gone, true);
    approvals_poke(x.p);
    end(&w);
    assert_int_equal(w.r, -ECANCELED);
    assert_int_equal(decide_as(&x, id, true, APPROVAL_ONCE, (struct json_value){ 0 }, &e), -ENOENT);
    assert_string_equal(e.code, "APPROVAL_NOT_FOUND");
}

static void the_end_of_the_service_ends_all_waits(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    const struct net_wait wait = net_wait_of(1000, NULL, NULL);
    struct approval_answer answer;
    struct approval_question q = a_call(NULL);
    struct err e = { 0 };
    struct waiting w;

    open_rig(&x);
    begin(&w, &x, q);
    listed_id(&w);
    approvals_end_waits(x.p);
    end(&w);
    assert_int_equal(w.r, -ECANCELED);
    assert_int_equal(approvals_request(x.p, &q, &wait, x.f.a, &answer, &e), -ECANCELED);
}

static void always_is_kept_for_this_agent_and_tool(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    const struct approval_rule rule = { "another", "files", "write_file", true };
    struct approval_question other = a_call("s2");
    bool is_allowed = false;
    struct err e = { 0 };
    struct waiting w;

    open_rig(&x);
    begin(&w, &x, a_call("s1"));
    decide_now(&x, listed_id(&w), true, APPROVAL_ALWAYS);
    end(&w);
    assert_int_equal(w.answer.outcome, APPROVAL_ALLOWED);
    assert_int_equal(outcome_now(&x, other), APPROVAL_ALLOWED);
    assert_int_equal(store_approval_rules_get(x.f.store, "triage", "files", "write_file", &is_allowed, &e), 1);
    other.agent = "another";
    begin(&w, &x, other);
    decide_now(&x, listed_id(&w), false, APPROVAL_ALWAYS);
    end(&w);
    assert_int_equal(outcome_now(&x, other), APPROVAL_DENIED); /* never */
    must(approvals_forget_rule(x.p, &rule, "admin", &e), &e);
    assert_int_equal(approvals_forget_rule(x.p, &rule, "admin", &e), -ENOENT);
    begin(&w, &x, other);
    listed_id(&w);
    must(approvals_set_rule(x.p, &rule, "admin", &e), &e); /* answers what waits */
    end(&w);
    assert_int_equal(w.answer.outcome, APPROVAL_ALLOWED);
}

static void for_this_session_ends_with_it(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    struct waiting w;

    open_rig(&x);
    begin(&w, &x, a_call("s1"));
    decide_now(&x, listed_id(&w), true, APPROVAL_SESSION);
    end(&w);
    assert_int_equal(outcome_now(&x, a_call("s1")), APPROVAL_ALLOWED);
    begin(&w, &x, a_call("s2"));
    decide_now(&x, listed_id(&w), false, APPROVAL_ONCE);
    end(&w);
    approvals_forget_session(x.p, "s1");
    begin(&w, &x, a_call("s1"));
    decide_now(&x, listed_id(&w), false, APPROVAL_ONCE);
    end(&w);
    assert_int_equal(w.answer.outcome, APPROVAL_DENIED);
}

static bool are_two_listed(void *arg)
{
    return approvals_n_pending(arg) == 2;
}

static void a_kept_decision_answers_what_waits_already(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    struct waiting one, other;

    open_rig(&x);
    begin(&one, &x, a_call("s1"));
    begin(&other, &x, a_call("s2"));
    assert_true(wait_until(are_two_listed, x.p));
    decide_now(&x, listed_id(&one), true, APPROVAL_ALWAYS);
    end(&one);
    end(&other);
    assert_int_equal(one.answer.outcome, APPROVAL_ALLOWED);
    assert_int_equal(other.answer.outcome, APPROVAL_ALLOWED);
}

static void a_question_takes_one_of_its_choices(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    struct approval_question q = { .kind = "question", .agent = "triage", .text = "Which?" };
    struct err e = { 0 };
    struct waiting w;
    const char *id;

    open_rig(&x);
    q.choices = json(&x, "[\"red\",\"blue\"]");
    begin(&w, &x, q);
    id = listed_id(&w);
    assert_int_equal(decide_as(&x, id, true, APPROVAL_ONCE, json(&x, "\"green\""), &e), -EINVAL);
    assert_string_equal(e.fields[0].field, "reply");
    e = (struct err){ 0 };
    assert_int_equal(decide_as(&x, id, true, APPROVAL_ALWAYS, json(&x, "\"red\""), &e), -EINVAL);
    assert_string_equal(e.fields[0].field, "scope");
    e = (struct err){ 0 };
    must(decide_as(&x, id, true, APPROVAL_ONCE, json(&x, "\"blue\""), &e), &e);
    pthread_join(w.thread, NULL);
    assert_string_equal(json_cstr(w.answer.reply), "blue");
    arena_free(w.a);
}

static void a_form_must_fit_its_schema(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    struct approval_question q = { .kind = "elicitation", .server = "files" };
    struct err e = { 0 };
    struct waiting w;
    const char *id;

    open_rig(&x);
    q.schema = json(&x, "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}");
    begin(&w, &x, q);
    id = listed_id(&w);
    assert_int_equal(decide_as(&x, id, true, APPROVAL_ONCE, json(&x, "{\"n\":\"one\"}"), &e), -EINVAL);
    e = (struct err){ 0 };
    must(decide_as(&x, id, true, APPROVAL_ONCE, json(&x, "{\"n\":1}"), &e), &e);
    pthread_join(w.thread, NULL);
    assert_int_equal(json_int(json_get(w.answer.reply, "n")), 1);
    arena_free(w.a);
}

static void the_person_s_time_is_counted_once(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    int64_t began_ms = clock_mono_ms(), waited_ms;
    struct waiting one, other;

    open_rig(&x);
    begin(&one, &x, a_call("s1"));
    begin(&other, &x, a_call("s1"));
    assert_true(wait_until(are_two_listed, x.p));
    decide_now(&x, listed_id(&one), true, APPROVAL_SESSION);
    end(&one);
    end(&other);
    waited_ms = approvals_waited_ms(x.p, "s1");
    assert_in_range(waited_ms, 0, clock_mono_ms() - began_ms);
    assert_int_equal(approvals_waited_ms(x.p, "s1"), waited_ms); /* nothing waits any more */
    assert_int_equal(approvals_waited_ms(x.p, "s2"), 0);
}

/* ---- limits ---- */

static void the_list_is_full_at_its_limit(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    static struct approval *all[LIMIT_PENDING_APPROVALS];
    const struct net_wait wait = net_wait_of(1000, NULL, NULL);
    struct approval_question q = a_call(NULL);
    struct approval *more = NULL;
    struct approval_answer answer;
    struct err e = { 0 };

    open_rig(&x);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        must(approvals_put(x.p, &q, &all[i], &e), &e);
    assert_int_equal(approvals_put(x.p, &q, &more, &e), -EAGAIN);
    assert_string_equal(e.code, "TOO_MANY_QUESTIONS");
    approvals_end_waits(x.p);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        assert_int_equal(approvals_wait(x.p, all[i], &wait, x.f.a, &answer, &e), -ECANCELED);
}

/* Without an identity nothing is audited, so thousands of decisions are fast. */
static void open_unaudited(struct rig *x)
{
    const struct approvals_config c = { .store = x->f.store, .settings = x->settings };
    struct err e = { 0 };

    approvals_close(x->p);
    must(approvals_open(&c, &x->p, &e), &e);
}

static void keep_for_session(struct rig *x, const char *session)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct net_wait wait = net_wait_of(1000, NULL, NULL);
    const struct approval_question q = a_call(session);
    struct approval_views views = { .n = 0 };
    struct approval *question = NULL;
    struct approval_answer answer;
    struct err e = { 0 };

    must(approvals_put(x->p, &q, &question, &e), &e);
    approvals_list(x->p, a, &views);
    decide_now(x, views.items[views.n - 1].id, true, APPROVAL_SESSION);
    must(approvals_wait(x->p, question, &wait, a, &answer, &e), &e);
    assert_int_equal(answer.outcome, APPROVAL_ALLOWED);
}

static bool is_kept(struct rig *x, const char *session)
{
    const struct net_wait wait = net_wait_of(1000, &(atomic_bool){ true }, NULL);
    const struct approval_question q = a_call(session);
    struct approval *question = NULL;
    struct approval_answer answer;
    struct err e = { 0 };
    bool is_open;

    must(approvals_put(x->p, &q, &question, &e), &e);
    is_open = approval_is_open(question);
    (void)!approvals_wait(x->p, question, &wait, x->f.a, &answer, &e);
    return !is_open;
}

static bool has_waited(void *arg)
{
    return approvals_waited_ms(arg, "waits") > 0;
}

static void of_sessions_the_newest_are_kept_and_those_that_wait(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    struct waiting w;

    open_rig(&x);
    open_unaudited(&x);
    begin(&w, &x, a_call("waits"));
    listed_id(&w);
    for (int i = 0; i < LIMIT_SESSION_APPROVALS; i++)
        keep_for_session(&x, arena_printf(x.f.a, "s%d", i));
    assert_true(is_kept(&x, "s0"));
    keep_for_session(&x, "more");
    assert_true(is_kept(&x, "more"));
    assert_true(is_kept(&x, "s1"));
    assert_false(is_kept(&x, "s0")); /* a person is asked again */
    assert_true(wait_until(has_waited, x.p));
    approvals_end_waits(x.p);
    end(&w);
}

static void arguments_are_shown_in_full_or_not_at_all(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    const struct net_wait wait = net_wait_of(1000, NULL, NULL);
    struct approval_question q = a_call(NULL);
    struct approval *question = NULL;
    struct approval_answer answer;
    struct err e = { 0 };
    char *text;

    open_rig(&x);
    text = arena_alloc(x.f.a, LIMIT_APPROVAL_BYTES + 2);
    memset(text, 'x', LIMIT_APPROVAL_BYTES + 1);
    text[0] = text[LIMIT_APPROVAL_BYTES - 1] = '"';
    text[LIMIT_APPROVAL_BYTES] = '\0';
    q.arguments = json(&x, text);
    must(approvals_put(x.p, &q, &question, &e), &e);
    approvals_end_waits(x.p);
    assert_int_equal(approvals_wait(x.p, question, &wait, x.f.a, &answer, &e), -ECANCELED);
    text[LIMIT_APPROVAL_BYTES - 1] = 'x';
    text[LIMIT_APPROVAL_BYTES] = '"';
    text[LIMIT_APPROVAL_BYTES + 1] = '\0';
    q.arguments = json(&x, text);
    assert_int_equal(approvals_put(x.p, &q, &question, &e), -E2BIG);
}

/* ---- races ---- */

struct race {
    struct waiting w;
    const char *id;
    pthread_barrier_t start;
    int decided; /* what approvals_decide() returned */
};

static void *decide_main(void *arg)
{
    struct race *race = arg;
    struct err e = { 0 };

    pthread_barrier_wait(&race->start);
    race->decided = decide_as(race->w.x, race->id, true, APPROVAL_ONCE, (struct json_value){ 0 }, &e);
    return NULL;
}

/* The call was allowed exactly when the decision was accepted. */
static void race_once(struct rig *x)
{
    struct race race;
    pthread_t thread;

    begin(&race.w, x, a_call("s1"));
    race.id = listed_id(&race.w);
    pthread_barrier_init(&race.start, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, decide_main, &race), 0);
    pthread_barrier_wait(&race.start);
    atomic_store(&race.w.is_gone, true);
    approvals_poke(x->p);
    pthread_join(thread, NULL);
    end(&race.w);
    pthread_barrier_destroy(&race.start);
    if (race.decided == 0) {
        assert_int_equal(race.w.r, 0);
        assert_int_equal(race.w.answer.outcome, APPROVAL_ALLOWED);
    } else {
        assert_int_equal(race.decided, -ENOENT);
        assert_int_equal(race.w.r, -ECANCELED);
        assert_int_equal(race.w.answer.outcome, APPROVAL_UNANSWERED);
    }
}

static void a_race_with_cancel_has_one_outcome(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };

    open_rig(&x);
    for (int i = 0; i < 60; i++)
        race_once(&x);
    assert_int_equal(approvals_n_pending(x.p), 0);
}

static void *deny_main(void *arg)
{
    struct race *race = arg;
    struct err e = { 0 };

    pthread_barrier_wait(&race->start);
    race->decided = decide_as(race->w.x, race->id, false, APPROVAL_ONCE, (struct json_value){ 0 }, &e);
    return NULL;
}

static void two_persons_decide_once(void **state)
{
    AUTO(close_rig) struct rig x = { 0 };
    struct err e = { 0 };

    open_rig(&x);
    for (int i = 0; i < 30; i++) {
        struct race race;
        pthread_t thread;
        int mine;

        begin(&race.w, &x, a_call("s1"));
        race.id = listed_id(&race.w);
        pthread_barrier_init(&race.start, NULL, 2);
        assert_int_equal(pthread_create(&thread, NULL, deny_main, &race), 0);
        pthread_barrier_wait(&race.start);
        mine = decide_as(&x, race.id, true, APPROVAL_ONCE, (struct json_value){ 0 }, &e);
        pthread_join(thread, NULL);
        end(&race.w);
        pthread_barrier_destroy(&race.start);
        assert_true((mine == 0) != (race.decided == 0));
        assert_int_equal(race.w.answer.outcome, mine == 0 ? APPROVAL_ALLOWED : APPROVAL_DENIED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_person_allows_a_call),
        cmocka_unit_test(a_denial_is_a_denial),
        cmocka_unit_test(nobody_answers_in_time),
        cmocka_unit_test(a_cancelled_call_waits_no_longer),
        cmocka_unit_test(the_end_of_the_service_ends_all_waits),
        cmocka_unit_test(always_is_kept_for_this_agent_and_tool),
        cmocka_unit_test(for_this_session_ends_with_it),
        cmocka_unit_test(a_kept_decision_answers_what_waits_already),
        cmocka_unit_test(a_question_takes_one_of_its_choices),
        cmocka_unit_test(a_form_must_fit_its_schema),
        cmocka_unit_test(the_person_s_time_is_counted_once),
        cmocka_unit_test(the_list_is_full_at_its_limit),
        cmocka_unit_test(of_sessions_the_newest_are_kept_and_those_that_wait),
        cmocka_unit_test(arguments_are_shown_in_full_or_not_at_all),
        cmocka_unit_test(a_race_with_cancel_has_one_outcome),
        cmocka_unit_test(two_persons_decide_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
