#include "../os/place.h"

#include "agents/process.h"
#include "base/limits.h"

#include <signal.h>
#include <sys/stat.h>

#define TASK "6f1d2a0e-1111-4222-8333-444455556666"

struct fixture {
    struct place *place;
    struct store *store;
    struct agents *agents;
};

/* The reported outcome of one run. */
struct reported {
    struct agent_run *run;
    struct agent_outcome outcome;
    struct loop *loop; /* NULL: the loop is not watched */
    bool was_on_loop;
    atomic_int n_ends;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    place_set_up((void **)&f->place);
    assert_int_equal(store_open(f->place->dir, &f->store, NULL), 0);
    assert_int_equal(agents_open(f->store, f->place->supervisor, f->place->dir, &f->agents, NULL), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    place_close_supervisor(f->place);
    agents_close(f->agents);
    store_close(f->store);
    place_tear_down((void **)&f->place);
    free(f);
    return 0;
}

static void put_shell(struct fixture *f, const char *script, const char *more)
{
    struct arena *a = f->place->arena;
    struct agent_definition d = { 0 };
    struct json_value object;
    struct buf quoted;
    char *json;

    buf_init(&quoted, LIMIT_RESULT_BYTES);
    json_quote(&quoted, slice_of(script));
    json = arena_printf(a, "{\"name\":\"shell\",\"command\":\"/bin/sh\",\"args\":[\"-c\",%s,\"sh\"]%s}",
                        buf_str(&quoted), more);
    buf_clear(&quoted);
    assert_int_equal(json_parse(a, slice_of(json), &object, NULL), 0);
    assert_int_equal(fields_read(agent_definition_fields, object, &d, a, "", NULL), 0);
    assert_int_equal(agent_put(f->agents, &d, slice_of(json), NULL), 0);
}

static void note_end(void *arg, struct agent_run *run, const struct agent_outcome *o)
{
    struct reported *t = arg;

    t->outcome = *o;
    t->was_on_loop = t->loop && loop_is_current(t->loop);
    atomic_fetch_add(&t->n_ends, 1);
}

static bool has_ended(void *arg)
{
    struct reported *t = arg;

    return atomic_load(&t->n_ends) > 0;
}

static void start(struct fixture *f, struct reported *t, struct agent_run_input in)
{
    struct err e = { 0 };

    in.agent_name = "shell";
    in.task_uuid = TASK;
    in.machine_id = "lin-test";
    in.server_url = "http://127.0.0.1:3001";
    in.attempt = 2;
    in.activity_json = in.activity_json ? in.activity_json : "{\"raw_data\":{}}";
    if (agent_run_start(f->agents, &in, note_end, t, &t->run, &e) < 0)
        fail_msg("%s", e.text);
}

static void run_shell(struct fixture *f, struct reported *t, const char *script, const char *activity)
{
    put_shell(f, script, "");
    start(f, t,
          (struct agent_run_input){ .activity_json = activity, .prompt = "be quick", .table_name = "svc_activities" });
    assert_true(wait_until(has_ended, t));
}

static void end(struct reported *t)
{
    assert_int_equal(t->n_ends, 1);
    t->run = agent_run_unref(t->run);
}

static void the_inputs_come_as_variables_and_the_task_as_argument(void **state)
{
    struct fixture *f = *state;
    struct reported t = { 0 };

    run_shell(f, &t, "printf '[%d,\"%s\",%s,\"%s\"]' $# \"$1\" \"$ACTIVITY_DATA\" \"${HEARTH_TASK_TOKEN-none}\"",
              "{\"raw_data\":{\"k\":\"a b\"}}");
    assert_string_equal(t.outcome.result_json, "[1,\"" TASK "\",{\"raw_data\":{\"k\":\"a b\"}},\"none\"]");
    end(&t);
}

static void the_token_comes_as_a_variable(void **state)
{
    struct fixture *f = *state;
    struct reported t = { 0 };

    put_shell(f, "echo $HEARTH_TASK_TOKEN", "");
    start(f, &t, (struct agent_run_input){ .token = "secret of this run" });
    assert_true(wait_until(has_ended, &t));
    assert_string_equal(t.outcome.result_json, "{\"output\":\"secret of this run\"}");
    end(&t);
}

static void the_activity_is_an_argument_as_well_when_the_definition_says_so(void **state)
{
    struct fixture *f = *state;
    struct reported t = { 0 };

    put_shell(
        f,
        "printf '{\"v\":[\"%s\",\"%s\",\"%s\",\"%s\",\"%s\",\"%s\"],\"n\":%d,\"a\":\"%s\",\"d\":%s,\"e\":%s,\"f\":\"%s\"}' "
        "\"$TASK_UUID\" \"$MACHINE_ID\" \"$SERVER_URL\" \"$TASK_ATTEMPT\" \"$AGENT_PROMPT\" \"$TABLE_NAME\" "
        "$# \"$1\" \"$2\" \"$ACTIVITY_DATA\" \"$ACTIVITY_FILE\"",
        ",\"pass_arguments\":true");
    start(f, &t,
          (struct agent_run_input){ .activity_json = "{\"raw_data\":{\"k\":\"a b\"}}",
                                    .prompt = "be quick",
                                    .table_name = "svc_activities" });
    assert_true(wait_until(has_ended, &t));
    assert_true(t.outcome.is_success);
    assert_string_equal(
        t.outcome.result_json,
        "{\"v\":[\"" TASK
        "\",\"lin-test\",\"http://127.0.0.1:3001\",\"2\",\"be quick\",\"svc_activities\"],\"n\":2,\"a\":\"" TASK
        "\",\"d\":{\"raw_data\":{\"k\":\"a b\"}},\"e\":{\"raw_data\":{\"k\":\"a b\"}},\"f\":\"\"}");
    end(&t);
}

static void its_own_variables_are_added_and_hide_none_of_ours(void **state)
{
    struct fixture *f = *state;
    struct reported t = { 0 };

    put_shell(f, "echo $MODE $TASK_UUID $LEAKED",
              ",\"env\":{\"MODE\":\"fast\",\"TASK_UUID\":\"mine\"},\"working_dir\":\"/tmp\"");
    setenv("LEAKED", "secret", 1);
    start(f, &t, (struct agent_run_input){ 0 });
    assert_true(wait_until(has_ended, &t));
    assert_string_equal(t.outcome.result_json, "{\"output\":\"fast " TASK "\"}");
    end(&t);
}

/* An activity of exactly n bytes. */
static char *activity_of(struct arena *a, size_t n)
{
    static const char head[] = "{\"raw_data\":\"", tail[] = "\"}";
    char *text = arena_alloc(a, n + 1);

    memset(text, 'x', n);
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + n - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
    return text;
}

#define REPORT_SIZES                                                                                                   \
    "printf '[%s,%s,\"%s\",\"%s\"]' ${#2} ${#ACTIVITY_DATA} \"$ACTIVITY_FILE\" \"$(stat -c '%s %a' \"$ACTIVITY_FILE\" 2>/dev/null)\""

static void a_payload_up_to_the_limit_goes_through_the_environment(void **state)
{
    struct fixture *f = *state;
    struct reported t = { 0 };

    put_shell(f, REPORT_SIZES, ",\"pass_arguments\":true");
    start(f, &t, (struct agent_run_input){ .activity_json = activity_of(f->place->arena, LIMIT_ENV_PAYLOAD) });
    assert_true(wait_until(has_ended, &t));
    assert_string_equal(t.outcome.result_json, "[98304,98304,\"\",\"\"]");
    end(&t);
}

static void a_larger_payload_goes_through_a_private_file_that_leaves_with_it(void **state)
{
    struct fixture *f = *state;
    struct reported t = { 0 };
    struct json_value said, stub;
    const char *path;

    put_shell(
        f,
        "printf '[%s,\"%s\",\"%s\",\"%s\"]' \"$2\" \"$([ \"$2\" = \"$ACTIVITY_DATA\" ] && echo same)\" \"$ACTIVITY_FILE\" "
        "\"$(stat -c '%s %a' \"$ACTIVITY_FILE\")\"",
        ",\"pass_arguments\":true");
    start(f, &t, (struct agent_run_input){ .activity_json = activity_of(f->place->arena, LIMIT_ENV_PAYLOAD + 1) });
    assert_true(wait_until(has_ended, &t));
    assert_true(t.outcome.is_success);
    assert_int_equal(json_parse(f->place->arena, slice_of(t.outcome.result_json), &said, NULL), 0);
    struct json_iter it = json_iter(said);
    assert_true(json_next(&it, NULL, &stub));
    path = json_cstr(json_get(stub, "activity_file"));
    assert_non_null(path);
    assert_true(json_bool(json_get(stub, "truncated")));
    assert_true(json_next(&it, NULL, &stub));
    assert_string_equal(json_cstr(stub), "same");
    assert_true(json_next(&it, NULL, &stub));
    assert_string_equal(json_cstr(stub), path);
    assert_true(json_next(&it, NULL, &stub));
    assert_string_equal(json_cstr(stub), "98305 600");
    assert_int_equal(access(path, F_OK), -1);
    end(&t);
}

static void files_of_an_earlier_life_are_removed_at_open(void **state)
{
    struct fixture *f = *state;
    char *left = arena_printf(f->place->arena, "%s/run/activities/left.json", f->place->dir);
    struct agents *again;

    assert_int_equal(file_write(left, SLICE_LIT("{}"), 0600, NULL), 0);
    assert_int_equal(agents_open(f->store, f->place->supervisor, f->place->dir, &again, NULL), 0);
    assert_int_equal(access(left, F_OK), -1);
    agents_close(again);
}

static void standard_output_is_the_result(void **state)
{
    static const struct {
        const char *script, *result;
    } cases[] = {
        { "echo '{\"a\": 1}'", "{\"a\": 1}" },
        { "echo; echo ' [1,2] '", "[1,2]" },
        { "echo 42", "42" },
        { "echo '{\"a\":'", "{\"output\":\"{\\\"a\\\":\"}" },
        { "echo two words; echo and more", "{\"output\":\"two words\\nand more\"}" },
        { "echo warned >&2", "{}" },
        { "printf '\\377'", "{\"output\":\"\xef\xbf\xbd\"}" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reported t = { 0 };

        run_shell(f, &t, cases[i].script, NULL);
        assert_true(t.outcome.is_success);
        assert_null(t.outcome.error);
        assert_string_equal(t.outcome.result_json, cases[i].result);
        end(&t);
    }
}

/* The surrounding {"output":"..."} counts too. */
static void an_output_above_the_limit_is_cut_and_says_so(void **state)
{
    static const struct {
        const char *script;
        size_t n_kept;
        bool is_cut;
    } cases[] = {
        { "head -c 4194291 /dev/zero | tr '\\0' x", LIMIT_RESULT_BYTES - 13, false },
        { "head -c 4194292 /dev/zero | tr '\\0' x", 0, true },
        { "head -c 4194305 /dev/zero | tr '\\0' x", 0, true },
        { "head -c 4194304 /dev/zero | tr '\\0' '\\001'", 0, true },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reported t = { 0 };
        struct json_value result;

        run_shell(f, &t, cases[i].script, NULL);
        assert_in_range(strlen(t.outcome.result_json), LIMIT_RESULT_BYTES - 1000, LIMIT_RESULT_BYTES);
        assert_int_equal(json_parse(f->place->arena, slice_of(t.outcome.result_json), &result, NULL), 0);
        if (cases[i].n_kept)
            assert_int_equal(json_string(json_get(result, "output")).n, cases[i].n_kept);
        assert_int_equal(json_bool(json_get(result, "truncated")), cases[i].is_cut);
        end(&t);
    }
}

static void a_failure_says_why(void **state)
{
    static const struct {
        const char *script, *error;
    } cases[] = {
        { "echo out; echo first >&2; echo second >&2; exit 3", "first\nsecond" },
        { "exit 3", "ended with exit code 3" },
        { "kill -9 $$", "ended by signal 9 (Killed)" },
        { "echo oops >&2; kill -9 $$", "ended by signal 9 (Killed)\noops" },
        { "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do echo $i >&2; done; exit 1",
          "2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reported t = { 0 };

        run_shell(f, &t, cases[i].script, NULL);
        assert_false(t.outcome.is_success);
        assert_false(t.outcome.was_stopped);
        assert_null(t.outcome.result_json);
        assert_string_equal(t.outcome.error, cases[i].error);
        end(&t);
    }
}

static void past_its_time_it_fails_and_says_so(void **state)
{
    struct fixture *f = *state;
    struct reported t = { 0 };

    put_shell(f, "trap 'exit 0' TERM; sleep 1000 & wait", ",\"timeout_s\":0.05");
    start(f, &t, (struct agent_run_input){ 0 });
    assert_true(wait_until(has_ended, &t));
    assert_false(t.outcome.is_success);
    assert_string_equal(t.outcome.error, "timed out after 0.05 s");
    end(&t);
}

static bool has_log(void *arg)
{
    struct reported *t = arg;
    AUTO(arena_freep) struct arena *a = arena_new();

    return strstr(child_log_text(agent_run_log(t->run), a), " stdout ready\n") != NULL;
}

static void one_that_is_stopped_says_so_and_its_log_stays(void **state)
{
    struct fixture *f = *state;
    struct reported t = { 0 };

    put_shell(f, "echo note >&2; echo ready; sleep 1000 & wait", "");
    start(f, &t, (struct agent_run_input){ 0 });
    assert_true(agent_run_pid(t.run) > 1);
    assert_true(wait_until(has_log, &t));
    agent_run_stop(t.run);
    assert_true(wait_until(has_ended, &t));
    assert_true(t.outcome.was_stopped);
    assert_false(t.outcome.is_success);
    assert_non_null(strstr(t.outcome.log, " stderr note\n"));
    end(&t);
}

static void what_cannot_be_started_says_why(void **state)
{
    struct fixture *f = *state;
    struct agent_run_input in = {
        .agent_name = "nobody", .task_uuid = TASK, .activity_json = "{}", .machine_id = "m", .server_url = "u"
    };
    struct agents *offline;
    struct reported t = { 0 };
    struct err e = { 0 };

    assert_int_equal(agent_run_start(f->agents, &in, note_end, &t, &t.run, &e), -ENOENT);
    assert_string_equal(e.code, "AGENT_NOT_FOUND");
    put_shell(f, "true", ",\"working_dir\":\"/nowhere/at/all\"");
    in.agent_name = "shell";
    e = (struct err){ 0 };
    assert_true(agent_run_start(f->agents, &in, note_end, &t, &t.run, &e) < 0);
    assert_int_equal(agents_open(f->store, NULL, f->place->dir, &offline, NULL), 0);
    e = (struct err){ 0 };
    assert_int_equal(agent_run_start(offline, &in, note_end, &t, &t.run, &e), -EAGAIN);
    assert_string_equal(e.code, "NOT_READY");
    agents_close(offline);
    assert_null(t.run);
    assert_int_equal(t.n_ends, 0);
}

/* The end of a run parses megabytes and removes a file. */
static void the_end_of_a_run_does_not_hold_the_loop(void **state)
{
    struct fixture *f = *state;
    struct reported t = { .loop = f->place->loop };

    run_shell(f, &t, "exit 0", NULL);
    assert_false(t.was_on_loop);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_inputs_come_as_variables_and_the_task_as_argument, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_token_comes_as_a_variable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_activity_is_an_argument_as_well_when_the_definition_says_so, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(its_own_variables_are_added_and_hide_none_of_ours, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_payload_up_to_the_limit_goes_through_the_environment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_larger_payload_goes_through_a_private_file_that_leaves_with_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(files_of_an_earlier_life_are_removed_at_open, set_up, tear_down),
        cmocka_unit_test_setup_teardown(standard_output_is_the_result, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_output_above_the_limit_is_cut_and_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failure_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(past_its_time_it_fails_and_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_stopped_says_so_and_its_log_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_started_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_of_a_run_does_not_hold_the_loop, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
