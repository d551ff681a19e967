#include "recorder.h"
#include "../skip.h"
#include "backend/functions.h"
#include "base/clock.h"
#include <semaphore.h>

/* The parsed answer of a function. */
static struct json_value call(struct rig *rig, const char *function, const char *arguments)
{
    struct function_call in = { .function = function };
    struct json_value out;
    char *text = NULL;
    struct err e = { 0 };

    must(json_parse(rig->arena, slice_of(arguments), &in.arguments, &e), &e);
    must(functions_call(rig->backend, &in, rig->arena, &text, &e), &e);
    must(json_parse(rig->arena, slice_of(text), &out, &e), &e);
    return out;
}

static int call_fails(struct rig *rig, const char *function, const char *arguments, struct err *e)
{
    struct function_call in = { .function = function };
    char *text = NULL;

    *e = (struct err){ 0 };
    must(json_parse(rig->arena, slice_of(arguments), &in.arguments, e), e);
    return functions_call(rig->backend, &in, rig->arena, &text, e);
}

static char *args(struct rig *rig, const char *id, const char *machine_id, const char *more)
{
    return arena_printf(rig->arena, "{\"task_id\":\"%s\",\"machine_id\":\"%s\"%s}", id, machine_id, more);
}

static void assert_member(struct json_value object, const char *name, const char *expected)
{
    const char *text = json_cstr(json_get(object, name));

    if (!text || strcmp(text, expected) != 0)
        fail_msg("%s is %s, not %s", name, text ? text : "absent", expected);
}

static void claim_task_answers_who_holds_the_row(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct json_value v = call(rig, "svc_fn_claim_task", args(rig, id, "lin-a", ""));

    assert_true(json_bool(json_get(v, "success")));
    assert_member(v, "task_id", id);
    assert_member(v, "locked_by", "lin-a");
    assert_member(v, "status", "claimed");
    assert_attempt(rig, json_int(json_get(v, "attempt")), 1);
    assert_non_null(json_cstr(json_get(v, "locked_at")));

    v = call(rig, "svc_fn_claim_task", args(rig, id, "lin-b", ",\"table_name\":\"public.svc_activities\""));
    assert_false(json_bool(json_get(v, "success")));
    assert_member(v, "reason", "already_locked");
    assert_member(v, "locked_by", "lin-a");
    v = call(rig, "svc_fn_claim_task", args(rig, "none", "lin-b", ""));
    assert_member(v, "reason", "not_found");
}

static void complete_task_stores_any_json_and_only_for_the_holder(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct json_value v;

    call(rig, "svc_fn_claim_task", args(rig, id, "lin-a", ""));
    v = call(rig, "svc_fn_complete_task", args(rig, id, "lin-b", ",\"result\":{}"));
    assert_member(v, "reason", "lease_lost");
    v = call(rig, "svc_fn_complete_task", args(rig, id, "lin-a", ",\"result\":{},\"attempt\":2"));
    assert_member(v, "reason", "lease_lost");
    v = call(rig, "svc_fn_complete_task", args(rig, id, "lin-a", ",\"result\":[1,{\"a\":null}]"));
    assert_true(json_bool(json_get(v, "success")));
    assert_string_equal(rig_get(rig, id).result, "[1,{\"a\":null}]");
    v = call(rig, "svc_fn_complete_task", args(rig, id, "lin-a", ",\"result\":2,\"attempt\":1"));
    assert_true(json_bool(json_get(v, "success")));
    assert_string_equal(rig_get(rig, id).result, "[1,{\"a\":null}]");
}

static void fail_task_counts_and_another_machine_may_go_on(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);
    struct json_value v;

    call(rig, "svc_fn_claim_task", args(rig, id, "lin-a", ""));
    v = call(rig, "svc_fn_fail_task", args(rig, id, "lin-a", ",\"error\":\"out of paper\",\"attempt\":1"));
    assert_true(json_bool(json_get(v, "success")));
    assert_member(v, "status", "failed");
    assert_string_equal(rig_get(rig, id).error_message, "out of paper");
    assert_int_equal(rig_get(rig, id).retry_count, 1);
    assert_member(call(rig, "svc_fn_claim_task", args(rig, id, "lin-a", "")), "reason", "already_attempted");
    assert_true(json_bool(json_get(call(rig, "svc_fn_claim_task", args(rig, id, "lin-b", "")), "success")));
}

static void wrong_names_and_arguments_are_errors_not_answers(void **state)
{
    struct rig *rig = *state;
    struct err e;

    assert_int_equal(call_fails(rig, "svc_fn_drop_task", "{}", &e), -ENOENT);
    assert_string_equal(e.code, "FUNCTION_NOT_FOUND");
    assert_int_equal(call_fails(rig, "claim_task", "{}", &e), -ENOENT);
    assert_int_equal(call_fails(rig, "other_fn_claim_task", "{}", &e), -ENOENT);
    assert_int_equal(call_fails(rig, "svc_fn_claim_task", "{}", &e), -EINVAL);
    assert_int_equal(e.n_fields, 2);
    assert_int_equal(call_fails(rig, "svc_fn_claim_task", args(rig, "x", "m", ",\"attempt\":0"), &e), -EINVAL);
    assert_int_equal(call_fails(rig, "svc_fn_claim_task", args(rig, "x", "m", ",\"table_name\":\"a b\""), &e), -EINVAL);
}

static void now_is_the_time_of_the_backend(void **state)
{
    struct rig *rig = *state;
    struct json_value v = call(rig, "svc_fn_now", "{}");
    int64_t ms = 0;

    assert_int_equal(clock_parse(json_string(v), &ms), 0);
    assert_true(llabs(ms - clock_wall_ms()) < 60000);
}

static void publications_list_every_table_with_its_schema(void **state)
{
    struct rig *rig = *state;
    struct json_value v, tables, table = { 0 };
    struct slice key;
    struct err e = { 0 };
    int i = 0;

    if (rig->fixture->has_fixed_tables)
        SKIP_TEST("the project sees no tables that are made later");
    must(OPS(rig)->ensure_table(rig->backend, "sales.orders", &e), &e);
    v = call(rig, "get_publications_full", "{}");
    assert_int_equal(json_type(v), JSON_ARRAY);
    assert_int_equal(json_length(v), 1);
    for (struct json_iter it = json_iter(v); json_next(&it, &key, &v);)
        break;
    assert_member(v, "pubname", "svc");
    assert_true(json_bool(json_get(v, "pubinsert")));
    assert_true(json_bool(json_get(v, "pubupdate")));
    assert_true(json_bool(json_get(v, "pubdelete")));
    assert_false(json_bool(json_get(v, "pubtruncate")));
    assert_int_equal(json_type(json_get(v, "system_id")), JSON_INT);
    tables = json_get(v, "tables");
    assert_int_equal(json_length(tables), 2);
    for (struct json_iter it = json_iter(tables); json_next(&it, &key, &table); i++) {
        assert_member(table, "schema", i ? "public" : "sales");
        assert_member(table, "table", i ? "svc_activities" : "orders");
    }
}

/* --- presence --- */

static struct backend_presences online(struct rig *rig, int64_t fresh_ms)
{
    struct backend_presences list = { 0 };
    struct err e = { 0 };

    must(OPS(rig)->presence_list(rig->backend, fresh_ms, rig->arena, &list, &e), &e);
    return list;
}

/* The last sign of life of every machine is some milliseconds old. */
static bool is_nobody_online(void *rig)
{
    return online(rig, 1).n == 0;
}

static void presence_lists_the_machines_seen_lately(void **state)
{
    struct rig *rig = *state;
    struct backend_presence a = {
        .machine_id = "lin-a", .user_email = "a@example.org", .hostname = "alpha", .app_name = "triage"
    };
    struct backend_presence b = { .machine_id = "lin-b", .hostname = "beta", .online_at = "2099-01-01T00:00:00.000Z" };
    struct backend_presences list;
    struct err e = { 0 };
    const char *since;

    if (rig->fixture->is_one_machine)
        SKIP_TEST("a service of this provider speaks for its own machine only");
    must(OPS(rig)->presence_put(rig->backend, &a, 60000, &e), &e);
    must(OPS(rig)->presence_put(rig->backend, &b, 60000, &e), &e);
    list = online(rig, 60000);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0].machine_id, "lin-a");
    assert_string_equal(list.items[0].user_email, "a@example.org");
    assert_string_equal(list.items[0].app_name, "triage");
    assert_string_equal(list.items[1].online_at, "2099-01-01T00:00:00.000Z");
    since = list.items[0].online_at;

    assert_true(wait_until(is_nobody_online, rig));
    must(OPS(rig)->presence_put(rig->backend, &a, 60000, &e), &e);
    list = online(rig, 60000);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0].online_at, since); /* the machine was present all the time */
    must(OPS(rig)->presence_remove(rig->backend, "lin-a", NULL, &e), &e);
    assert_int_equal(online(rig, 60000).n, 1);
}

static void a_machine_id_is_one_instance_s_while_it_says_so(void **state)
{
    struct rig *rig = *state;
    const struct backend_presence one = { .machine_id = "lin-a", .hostname = "alpha", .instance = "folder one" };
    const struct backend_presence two = { .machine_id = "lin-a", .hostname = "beta", .instance = "folder two" };
    struct err e = { 0 };

    if (rig->fixture->is_one_machine)
        SKIP_TEST("a service of this provider speaks for its own machine only");
    must(OPS(rig)->presence_put(rig->backend, &one, 60000, &e), &e);
    must(OPS(rig)->presence_put(rig->backend, &one, 60000, &e), &e);
    assert_int_equal(OPS(rig)->presence_put(rig->backend, &two, 60000, &e), -EADDRINUSE);
    assert_string_equal(e.code, "MACHINE_ID_TAKEN");
    assert_non_null(strstr(e.text, "alpha"));
    must(OPS(rig)->presence_remove(rig->backend, "lin-a", "folder two", &e), &e);
    assert_int_equal(online(rig, 60000).n, 1); /* only the machine itself */
    assert_true(wait_until(is_nobody_online, rig));
    must(OPS(rig)->presence_put(rig->backend, &two, 1, &e), &e);
    assert_string_equal(online(rig, 60000).items[0].hostname, "beta");
    assert_int_equal(OPS(rig)->presence_put(rig->backend, &one, 60000, &e), -EADDRINUSE);
}

/* --- broadcast --- */

struct heard {
    pthread_mutex_t lock;
    int n;
    char channel[40], event[40], payload[80];
};

static void hear(void *arg, const char *channel, const char *event, const char *payload_json)
{
    struct heard *h = arg;

    pthread_mutex_lock(&h->lock);
    h->n++;
    copy_text(h->channel, sizeof(h->channel), channel);
    copy_text(h->event, sizeof(h->event), event);
    copy_text(h->payload, sizeof(h->payload), payload_json);
    pthread_mutex_unlock(&h->lock);
}

static int n_heard(struct heard *h)
{
    int n;

    pthread_mutex_lock(&h->lock);
    n = h->n;
    pthread_mutex_unlock(&h->lock);
    return n;
}

static bool has_heard(void *arg)
{
    return n_heard(arg) > 0;
}

static void a_broadcast_reaches_those_who_listen_on_its_channel(void **state)
{
    struct rig *rig = *state;
    struct heard yes = { .lock = PTHREAD_MUTEX_INITIALIZER }, other = yes, left = yes;
    struct err e = { 0 };

    if (!rig_has_events(rig))
        SKIP_TEST("the provider has no events here");
    must(OPS(rig)->listen(rig->backend, "task-retry-triage", hear, &left, &e), &e);
    must(OPS(rig)->listen(rig->backend, "task-retry-other", hear, &other, &e), &e);
    must(OPS(rig)->listen(rig->backend, "task-retry-triage", hear, &yes, &e), &e);
    hosted_settle(rig->backend);
    OPS(rig)->unlisten(rig->backend, &left);
    must(OPS(rig)->broadcast(rig->backend, "task-retry-triage", "task-available", "{\"task_id\":\"1\"}", &e), &e);
    assert_true(wait_until(has_heard, &yes));
    assert_string_equal(yes.channel, "task-retry-triage");
    assert_string_equal(yes.event, "task-available");
    assert_string_equal(yes.payload, "{\"task_id\":\"1\"}");
    assert_int_equal(n_heard(&yes), 1);
    assert_int_equal(n_heard(&other), 0);
    assert_int_equal(n_heard(&left), 0);
    OPS(rig)->unlisten(rig->backend, &yes);
    OPS(rig)->unlisten(rig->backend, &other);
}

struct door {
    sem_t is_held, may_go;
};

static void hold_the_thread(void *arg, const char *channel, const char *event, const char *payload_json)
{
    struct door *door = arg;

    sem_post(&door->is_held);
    sem_wait(&door->may_go);
}

static void only_so_many_broadcasts_may_wait(void **state)
{
    struct rig *rig = *state;
    struct door door;
    struct err e = { 0 };

    if (!rig_has_events(rig))
        SKIP_TEST("the provider has no events here");
    if (strcmp(rig->fixture->provider, "embedded") != 0)
        SKIP_TEST("broadcasts wait in the server");
    sem_init(&door.is_held, 0, 0);
    sem_init(&door.may_go, 0, 0);
    must(OPS(rig)->listen(rig->backend, "held", hold_the_thread, &door, &e), &e);
    must(OPS(rig)->broadcast(rig->backend, "held", "x", "{}", &e), &e);
    sem_wait(&door.is_held);
    for (int i = 0; i < LIMIT_BROADCASTS_WAITING; i++)
        must(OPS(rig)->broadcast(rig->backend, "other", "x", "{}", &e), &e);
    assert_int_equal(OPS(rig)->broadcast(rig->backend, "other", "x", "{}", &e), -EAGAIN);
    assert_string_equal(e.code, "OVERLOADED");
    sem_post(&door.may_go);
    OPS(rig)->unlisten(rig->backend, &door);
}

static void an_open_backend_is_ready(void **state)
{
    struct rig *rig = *state;
    struct err e = { 0 };

    must(OPS(rig)->is_ready(rig->backend, &e), &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_machine_id_is_one_instance_s_while_it_says_so),
        TEST(claim_task_answers_who_holds_the_row),
        TEST(complete_task_stores_any_json_and_only_for_the_holder),
        TEST(fail_task_counts_and_another_machine_may_go_on),
        TEST(wrong_names_and_arguments_are_errors_not_answers),
        TEST(now_is_the_time_of_the_backend),
        TEST(publications_list_every_table_with_its_schema),
        TEST(presence_lists_the_machines_seen_lately),
        TEST(a_broadcast_reaches_those_who_listen_on_its_channel),
        TEST(only_so_many_broadcasts_may_wait),
        TEST(an_open_backend_is_ready),
    };

    return contract_run(tests, ARRAY_SIZE(tests));
}
