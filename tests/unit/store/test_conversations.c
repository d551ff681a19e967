/* Sessions, turns and messages of agents. */
#include "fixture.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/tables/conversations.h"
#include "store/tables/workspaces.h"

static const char long_ago[] = "2000-01-01T00:00:00.000Z", far_ahead[] = "2999-01-01T00:00:00.000Z";

static int64_t new_thread(struct fixture *x, const char *slug, const char *owner)
{
    const struct thread_row row = { .workspace_id = 1, .slug = slug, .name = slug, .owner = owner };
    int64_t id = 0;

    if (store_threads_insert(x->store, &row, &id, &x->e) < 0)
        fail_msg("%s", x->e.text);
    return id;
}

static int begin(struct fixture *x, int64_t thread_id, const char *uuid, int64_t replaces, int64_t *ret_id)
{
    const struct turn_row turn = {
        .uuid = uuid, .thread_id = thread_id, .scope = "app", .who = "app:a", .agent_name = "@agent"
    };
    const struct message_row first = { .role = "user", .message = "{\"role\":\"user\",\"content\":\"hi\"}" };

    return store_turns_begin(x->store, &turn, &first, replaces, ret_id, &x->e);
}

static int64_t begun(struct fixture *x, int64_t thread_id, const char *uuid)
{
    int64_t id = 0;

    if (begin(x, thread_id, uuid, 0, &id) < 0)
        fail_msg("%s", x->e.text);
    return id;
}

static void a_turn_is_stored_step_by_step(void **state)
{
    struct fixture x = fixture_open();
    int64_t thread = new_thread(&x, "t", NULL), id = begun(&x, thread, "u1"), n_all = 0;
    struct message_row *messages = NULL;
    struct turn_row turn = { 0 };
    size_t n = 0;

    MUST(store_messages_add(x.store,
                            &(struct message_row){ .turn_id = id,
                                                   .role = "assistant",
                                                   .message = "{}",
                                                   .took_ms = 12,
                                                   .provider = "p",
                                                   .model = "m",
                                                   .prompt_tokens = 3,
                                                   .completion_tokens = 4 },
                            &x.e));
    MUST(store_messages_add(
        x.store,
        &(struct message_row){ .turn_id = id, .role = "tool", .message = "{}", .tool_name = "now", .is_error = true },
        &x.e));
    MUST(store_messages_of_turn(x.store, x.a, id, &messages, &n, &x.e));
    assert_int_equal(n, 3);
    assert_string_equal(messages[0].role, "user");
    assert_string_equal(messages[1].provider, "p");
    assert_int_equal(messages[1].completion_tokens, 4);
    assert_true(messages[2].is_error);
    assert_string_equal(messages[2].tool_name, "now");
    MUST(store_messages_count(x.store, thread, &n_all, &x.e));
    assert_int_equal(n_all, 3);
    MUST(store_turns_end(x.store,
                         &(struct turn_row){ .id = id,
                                             .uuid = "u1",
                                             .state = TURN_ENDED,
                                             .why = "answered",
                                             .n_steps = 2,
                                             .provider = "p",
                                             .model = "m",
                                             .prompt_tokens = 30,
                                             .completion_tokens = 40,
                                             .cut = "{}",
                                             .blocks = "[]" },
                         &x.e));
    MUST(store_turns_get(x.store, x.a, "u1", &turn, &x.e));
    assert_string_equal(turn.state, TURN_ENDED);
    assert_string_equal(turn.why, "answered");
    assert_int_equal(turn.completion_tokens, 40);
    assert_non_null(turn.ended_at);
    MUST_FAIL(store_turns_end(x.store, &(struct turn_row){ .id = id, .uuid = "u1", .state = TURN_ENDED }, &x.e),
              -ENOENT, "TURN_NOT_FOUND");
    MUST_FAIL(begin(&x, 99, "u2", 0, &id), -ENOENT, "THREAD_NOT_FOUND");
    fixture_close(&x);
}

static void a_thread_has_a_maximum_of_turns(void **state)
{
    struct fixture x = fixture_open();
    int64_t thread = new_thread(&x, "full", NULL), other = new_thread(&x, "other", NULL), id = 0, newest = 0;
    char *earlier =
        arena_printf(x.a,
                     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO turns "
                     "(uuid, thread_id, scope, who, agent_name, state, started_at) SELECT 'u' || i, %lld, 'app', "
                     "'app:a', '@agent', 'interrupted', '%s' FROM n",
                     LIMIT_THREAD_TURNS - 1, (long long)thread, long_ago);

    MUST(store_write(x.store, fixture_run_script, earlier, &x.e));
    newest = begun(&x, thread, "last");
    MUST_FAIL(begin(&x, thread, "more", 0, &id), -EDQUOT, "THREAD_FULL");
    begun(&x, other, "elsewhere");
    MUST(store_turns_end(x.store, &(struct turn_row){ .id = newest, .uuid = "last", .state = TURN_ENDED }, &x.e));
    MUST(begin(&x, thread, "instead", newest, &id)); /* a turn that takes the place of the last */
    MUST_FAIL(begin(&x, thread, "more", 0, &id), -EDQUOT, "THREAD_FULL");
    fixture_close(&x);
}

static void what_a_killed_service_left_is_interrupted(void **state)
{
    struct fixture x = fixture_open();
    int64_t thread = new_thread(&x, "t", NULL), id = begun(&x, thread, "u1"), n = 0;
    struct turn_row turn = { 0 };

    MUST(store_messages_add(x.store, &(struct message_row){ .turn_id = id, .role = "assistant", .message = "{}" },
                            &x.e));
    MUST(store_turns_recover(x.store, &n, &x.e));
    assert_int_equal(n, 1);
    MUST(store_turns_newest(x.store, x.a, thread, &turn, &x.e));
    assert_string_equal(turn.state, TURN_INTERRUPTED);
    assert_string_equal(turn.why, "interrupted");
    assert_int_equal(turn.n_steps, 1);
    MUST(store_turns_recover(x.store, &n, &x.e));
    assert_int_equal(n, 0);
    fixture_close(&x);
}

static void expect_turns(struct fixture *x, int64_t thread, const char *uuids)
{
    struct turn_row *turns = NULL;
    char found[100] = "";
    size_t n = 0;

    if (store_turns_list(x->store, x->a, &(struct turns_list_request){ .thread_id = thread }, &turns, &n, &x->e) < 0)
        fail_msg("%s", x->e.text);
    for (size_t i = 0; i < n; i++)
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s ", turns[i].uuid);
    assert_string_equal(found, uuids);
}

static void the_turns_of_one_task_are_listed_alone(void **state)
{
    struct fixture x = fixture_open();
    int64_t thread = new_thread(&x, "t", NULL), id = 0;
    const struct message_row first = { .role = "user", .message = "{}" };
    const struct turns_list_request of_one = { .thread_id = thread, .task_uuid = "t1", .newest_first = true };
    struct turn_row *turns = NULL;
    size_t n = 0;

    for (int i = 0; i < 4; i++) {
        struct turn_row turn = { .uuid = arena_printf(x.a, "u%d", i),
                                 .thread_id = thread,
                                 .task_uuid = i == 3  ? NULL
                                              : i % 2 ? "t2"
                                                      : "t1",
                                 .scope = "app",
                                 .who = "app:a",
                                 .agent_name = "@agent" };

        MUST(store_turns_begin(x.store, &turn, &first, 0, &id, &x.e));
    }
    MUST(store_turns_list(x.store, x.a, &of_one, &turns, &n, &x.e));
    assert_int_equal(n, 2);
    assert_string_equal(turns[0].uuid, "u2");
    assert_string_equal(turns[1].uuid, "u0");
    expect_turns(&x, thread, "u0 u1 u2 u3 ");
    fixture_close(&x);
}

static void later_turns_go_with_an_edited_one(void **state)
{
    struct fixture x = fixture_open();
    int64_t thread = new_thread(&x, "t", NULL), first = begun(&x, thread, "u1"), second = begun(&x, thread, "u2"),
            n = 0, id = 0;
    struct summary_row summary = { .through_turn = second, .n_turns = 2, .text = "of both" };

    MUST(store_summaries_put(x.store, thread, &summary, &x.e));
    MUST(begin(&x, thread, "u3", second, &id)); /* the second still runs */
    expect_turns(&x, thread, "u1 u2 u3 ");
    MUST(store_turns_recover(x.store, &n, &x.e));
    MUST(begin(&x, thread, "u4", second, &id));
    expect_turns(&x, thread, "u1 u4 ");
    MUST(store_summaries_get(x.store, x.a, thread, &summary, &x.e));
    assert_null(summary.text);
    summary = (struct summary_row){ .through_turn = first, .n_turns = 1, .text = "of one" };
    MUST(store_summaries_put(x.store, thread, &summary, &x.e));
    MUST(store_turns_recover(x.store, &n, &x.e));
    MUST(begin(&x, thread, "u5", id, &id));
    expect_turns(&x, thread, "u1 u5 ");
    MUST(store_summaries_get(x.store, x.a, thread, &summary, &x.e));
    assert_string_equal(summary.text, "of one");
    fixture_close(&x);
}

static void a_session_is_its_owners_until_it_is_idle(void **state)
{
    struct fixture x = fixture_open();
    int64_t thread = new_thread(&x, "t", "app"), n = 0;
    struct agent_session_row row = { .id = "s1", .scope = "app", .thread_id = thread, .agent_name = "@agent" },
                             got = { 0 };
    struct thread_row of = { 0 };

    MUST(store_agent_sessions_insert(x.store, &row, &x.e));
    MUST(store_agent_sessions_get(x.store, x.a, "s1", "app", long_ago, &got, &x.e));
    assert_int_equal(got.thread_id, thread);
    MUST_FAIL(store_agent_sessions_get(x.store, x.a, "s1", "other", long_ago, &got, &x.e), -ENOENT,
              "SESSION_NOT_FOUND");
    MUST_FAIL(store_agent_sessions_get(x.store, x.a, "s1", "app", far_ahead, &got, &x.e), -ENOENT, "SESSION_NOT_FOUND");
    MUST_FAIL(store_agent_sessions_remove(x.store, "s1", "other", &x.e), -ENOENT, "SESSION_NOT_FOUND");
    MUST(store_agent_sessions_expire(x.store, long_ago, &n, &x.e));
    assert_int_equal(n, 0);
    MUST(store_threads_get_id(x.store, x.a, thread, &of, &x.e));
    assert_string_equal(of.owner, "app");
    MUST(store_agent_sessions_expire(x.store, far_ahead, &n, &x.e));
    assert_int_equal(n, 1);
    MUST_FAIL(store_threads_get_id(x.store, x.a, thread, &of, &x.e), -ENOENT, "THREAD_NOT_FOUND");
    fixture_close(&x);
}

static void a_thread_with_turns_outlives_its_session(void **state)
{
    struct fixture x = fixture_open();
    int64_t thread = new_thread(&x, "t", "app"), n = 0;
    struct agent_session_row row = { .id = "s1", .scope = "app", .thread_id = thread, .agent_name = "@agent" };
    struct thread_row of = { 0 };

    MUST(store_agent_sessions_insert(x.store, &row, &x.e));
    begun(&x, thread, "u1");
    MUST(store_agent_sessions_expire(x.store, far_ahead, &n, &x.e));
    assert_int_equal(n, 1);
    MUST(store_threads_get_id(x.store, x.a, thread, &of, &x.e));
    fixture_close(&x);
}

static void one_caller_has_so_many_sessions(void **state)
{
    struct fixture x = fixture_open();
    int64_t thread = new_thread(&x, "t", NULL);
    char id[16];

    for (int i = 0; i < LIMIT_AGENT_SESSIONS; i++) {
        snprintf(id, sizeof(id), "s%d", i);
        MUST(store_agent_sessions_insert(
            x.store, &(struct agent_session_row){ .id = id, .scope = "app", .thread_id = thread, .agent_name = "a" },
            &x.e));
    }
    MUST_FAIL(store_agent_sessions_insert(
                  x.store,
                  &(struct agent_session_row){ .id = "more", .scope = "app", .thread_id = thread, .agent_name = "a" },
                  &x.e),
              -EDQUOT, "TOO_MANY_SESSIONS");
    MUST(store_agent_sessions_insert(
        x.store, &(struct agent_session_row){ .id = "more", .scope = "other", .thread_id = thread, .agent_name = "a" },
        &x.e));
    fixture_close(&x);
}

static void conversations_are_those_in_which_the_scope_spoke(void **state)
{
    struct fixture x = fixture_open();
    int64_t mine = new_thread(&x, "mine", NULL), newer = new_thread(&x, "newer", NULL);
    struct conversation_row *rows = NULL, one = { 0 };
    size_t n = 0;

    new_thread(&x, "empty", NULL);
    begun(&x, mine, "u1");
    begun(&x, newer, "u2");
    MUST(store_conversations_list(x.store, x.a, "app", 0, 0, &rows, &n, &x.e));
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].thread_slug, "newer");
    assert_string_equal(rows[1].workspace_slug, "default");
    MUST(store_conversations_list(x.store, x.a, NULL, 1, 1, &rows, &n, &x.e));
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].thread_id, mine);
    MUST(store_conversations_list(x.store, x.a, "other", 0, 0, &rows, &n, &x.e));
    assert_int_equal(n, 0);
    MUST(store_conversations_get(x.store, x.a, "app", "default", "mine", &one, &x.e));
    assert_int_equal(one.thread_id, mine);
    MUST(store_conversations_get(x.store, x.a, NULL, "default", "mine", &one, &x.e));
    MUST_FAIL(store_conversations_get(x.store, x.a, "other", "default", "mine", &one, &x.e), -ENOENT,
              "THREAD_NOT_FOUND");
    MUST_FAIL(store_conversations_get(x.store, x.a, NULL, "default", "empty", &one, &x.e), -ENOENT, "THREAD_NOT_FOUND");
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_is_stored_step_by_step),
        cmocka_unit_test(a_thread_has_a_maximum_of_turns),
        cmocka_unit_test(what_a_killed_service_left_is_interrupted),
        cmocka_unit_test(the_turns_of_one_task_are_listed_alone),
        cmocka_unit_test(later_turns_go_with_an_edited_one),
        cmocka_unit_test(a_session_is_its_owners_until_it_is_idle),
        cmocka_unit_test(a_thread_with_turns_outlives_its_session),
        cmocka_unit_test(one_caller_has_so_many_sessions),
        cmocka_unit_test(conversations_are_those_in_which_the_scope_spoke),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
