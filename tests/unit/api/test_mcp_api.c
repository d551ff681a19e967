/* Sessions, running calls and changes of the MCP server, also from several threads. */
#include "api/compat/mcp_api_private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

struct rig {
    struct api api;
    struct mcp_api *mcp;
};

static struct rig *rig_open(void)
{
    struct rig *rig = xcalloc(1, sizeof(*rig));

    assert_int_equal(hash_init(NULL), 0);
    assert_int_equal(settings_load(&(struct settings_sources){ 0 }, &rig->api.settings, NULL), 0);
    assert_int_equal(loop_new(&rig->api.loop, NULL), 0);
    rig->mcp = mcp_api_open(&rig->api);
    return rig;
}

static void rig_close(struct rig *rig)
{
    loop_free(rig->api.loop);
    mcp_api_close(rig->mcp);
    settings_free(rig->api.settings);
    free(rig);
}

static bool is_there(struct rig *rig, const char *owner, const char *id)
{
    enum mcp_api_version version;

    return mcp_api_session_use(rig->mcp, owner, id, &version);
}

static void a_session_is_its_owners(void **state)
{
    struct rig *rig = rig_open();
    enum mcp_api_version version;
    char id[UUID_SIZE];

    assert_int_equal(mcp_api_session_new(rig->mcp, "1:a", MCP_API_2025_03_26, id, NULL), 0);
    assert_true(mcp_api_session_use(rig->mcp, "1:a", id, &version));
    assert_int_equal(version, MCP_API_2025_03_26);
    assert_false(is_there(rig, "2:a", id));
    assert_false(mcp_api_session_end(rig->mcp, "2:a", id));
    assert_true(mcp_api_session_end(rig->mcp, "1:a", id));
    assert_false(is_there(rig, "1:a", id));
    rig_close(rig);
}

static void one_with_a_stream_is_the_last_to_make_room(void **state)
{
    struct rig *rig = rig_open();
    char first[UUID_SIZE], second[UUID_SIZE], id[UUID_SIZE];

    assert_int_equal(mcp_api_session_new(rig->mcp, "a", MCP_API_2025_11_25, first, NULL), 0);
    assert_int_equal(mcp_api_session_new(rig->mcp, "a", MCP_API_2025_11_25, second, NULL), 0);
    assert_true(mcp_api_session_take_stream(rig->mcp, first));
    assert_false(mcp_api_session_take_stream(rig->mcp, first));
    for (int i = 2; i < LIMIT_MCP_CALLER_SESSIONS; i++)
        assert_int_equal(mcp_api_session_new(rig->mcp, "a", MCP_API_2025_11_25, id, NULL), 0);
    assert_true(is_there(rig, "a", first));
    assert_int_equal(mcp_api_session_new(rig->mcp, "a", MCP_API_2025_11_25, id, NULL), 0);
    assert_true(is_there(rig, "a", first));
    assert_true(is_there(rig, "a", id));
    rig_close(rig);
}

static void all_callers_together_have_a_maximum(void **state)
{
    struct rig *rig = rig_open();
    char id[UUID_SIZE], owner[16];
    struct err e = { 0 };

    for (int i = 0; i < LIMIT_MCP_SESSIONS; i++) {
        snprintf(owner, sizeof(owner), "%d", i / LIMIT_MCP_CALLER_SESSIONS);
        assert_int_equal(mcp_api_session_new(rig->mcp, owner, MCP_API_2025_11_25, id, &e), 0);
    }
    assert_int_equal(mcp_api_session_new(rig->mcp, "new", MCP_API_2025_11_25, id, &e), -EAGAIN);
    assert_string_equal(e.code, "OVERLOADED");
    assert_int_equal(mcp_api_session_new(rig->mcp, owner, MCP_API_2025_11_25, id, NULL), 0);
    rig_close(rig);
}

static void a_session_follows_a_bounded_number(void **state)
{
    struct rig *rig = rig_open();
    char id[UUID_SIZE], uri[16];

    assert_int_equal(mcp_api_session_new(rig->mcp, "a", MCP_API_2025_11_25, id, NULL), 0);
    for (int i = 0; i < LIMIT_MCP_SUBSCRIPTIONS; i++) {
        snprintf(uri, sizeof(uri), "x:%d", i);
        assert_int_equal(mcp_api_session_follow(rig->mcp, id, uri, true, NULL), 0);
    }
    assert_int_equal(mcp_api_session_follow(rig->mcp, id, uri, true, NULL), 0);
    assert_int_equal(mcp_api_session_follow(rig->mcp, id, "y", true, NULL), -E2BIG);
    assert_int_equal(mcp_api_session_follow(rig->mcp, id, uri, false, NULL), 0);
    assert_int_equal(mcp_api_session_follow(rig->mcp, id, "y", true, NULL), 0);
    rig_close(rig);
}

static void a_session_watches_a_bounded_number_of_tasks(void **state)
{
    struct rig *rig = rig_open();
    struct mcp_api_session *s;
    struct mcp_api_watched found;
    char id[UUID_SIZE], uuid[UUID_SIZE];

    assert_int_equal(mcp_api_session_new(rig->mcp, "a", MCP_API_2025_11_25, id, NULL), 0);
    for (int i = 0; i <= LIMIT_MCP_SUBSCRIPTIONS; i++) {
        snprintf(uuid, sizeof(uuid), "task %d", i);
        mcp_api_session_watch_task(rig->mcp, id, uuid, "2026-11-23T07:00:00.000Z");
    }
    s = mcp_api_find_session(rig->mcp, id);
    assert_int_equal(s->n_watched, LIMIT_MCP_SUBSCRIPTIONS);
    assert_false(mcp_api_is_watched(s, "task 0", false, &found));
    assert_true(mcp_api_is_watched(s, "task 1", false, &found));
    assert_string_equal(found.created_at, "2026-11-23T07:00:00.000Z");
    assert_true(mcp_api_is_watched(s, "task 1", true, &found));
    assert_false(mcp_api_is_watched(s, "task 1", true, &found));
    assert_true(mcp_api_is_watched(s, uuid, true, &found));
    assert_int_equal(s->n_watched, LIMIT_MCP_SUBSCRIPTIONS - 2);
    rig_close(rig);
}

/* ---- several threads ---- */

enum { ROUNDS = 200 };

static const struct json_rpc_id call_id = { .kind = JSON_RPC_ID_INT, .number = 7 };

struct noise {
    struct rig *rig;
    atomic_bool ends;
};

/* Cancels calls of others and changes other tasks. */
static void *make_noise(void *arg)
{
    struct noise *noise = arg;

    while (!atomic_load(&noise->ends)) {
        mcp_api_cancel(noise->rig->mcp, "other", "s", &call_id);
        mcp_api_task_changed(noise->rig->mcp, "other", "completed");
    }
    return NULL;
}

static void *cancel_call(void *arg)
{
    mcp_api_cancel(((struct noise *)arg)->rig->mcp, "a", "s", &call_id);
    return NULL;
}

static void *change_task(void *arg)
{
    mcp_api_task_changed(((struct noise *)arg)->rig->mcp, "mine", "completed");
    return NULL;
}

/* A call that waits until `act`, on another thread, wakes it. */
static void wait_for(struct noise *noise, void *(*act)(void *arg), bool is_cancelled)
{
    struct mcp_api_running running = { .owner = "a", .session_id = "s", .id = &call_id };
    struct mcp_api *mcp = noise->rig->mcp;
    atomic_bool inside = false;
    pthread_t thread;

    mcp_api_running_begin(mcp, &running);
    mcp_api_running_attach(mcp, &running, &inside);
    mcp_api_running_expect(mcp, &running, "mine");
    assert_int_equal(pthread_create(&thread, NULL, act, noise), 0);
    mcp_api_running_wait(mcp, &running, INT64_MAX / 2);
    pthread_join(thread, NULL);
    mcp_api_running_attach(mcp, &running, NULL);
    mcp_api_running_end(mcp, &running);
    assert_int_equal(atomic_load(&running.is_cancelled), is_cancelled);
    assert_int_equal(atomic_load(&inside), is_cancelled);
}

static void a_waiting_call_is_woken_by_its_task_and_its_cancellation_only(void **state)
{
    struct noise noise = { .rig = rig_open() };
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, make_noise, &noise), 0);
    for (int i = 0; i < ROUNDS; i++) {
        wait_for(&noise, cancel_call, true);
        wait_for(&noise, change_task, false);
    }
    atomic_store(&noise.ends, true);
    pthread_join(thread, NULL);
    rig_close(noise.rig);
}

static void a_wait_ends_with_its_time_or_at_once_after_a_change(void **state)
{
    struct rig *rig = rig_open();
    struct mcp_api_running running = { .owner = "a", .session_id = "s", .id = &call_id };

    mcp_api_running_begin(rig->mcp, &running);
    mcp_api_running_expect(rig->mcp, &running, "u");
    mcp_api_running_wait(rig->mcp, &running, clock_mono_us() + 1000);
    mcp_api_task_changed(rig->mcp, "u", "failed");
    mcp_api_running_wait(rig->mcp, &running, INT64_MAX / 2);
    assert_false(atomic_load(&running.is_cancelled));
    mcp_api_cancel_running(rig->mcp, &running);
    mcp_api_running_wait(rig->mcp, &running, INT64_MAX / 2);
    assert_true(atomic_load(&running.is_cancelled));
    mcp_api_running_end(rig->mcp, &running);
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_its_owners),
        cmocka_unit_test(one_with_a_stream_is_the_last_to_make_room),
        cmocka_unit_test(all_callers_together_have_a_maximum),
        cmocka_unit_test(a_session_follows_a_bounded_number),
        cmocka_unit_test(a_session_watches_a_bounded_number_of_tasks),
        cmocka_unit_test(a_waiting_call_is_woken_by_its_task_and_its_cancellation_only),
        cmocka_unit_test(a_wait_ends_with_its_time_or_at_once_after_a_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
