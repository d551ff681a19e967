/* Requests to the clients of /mcp while their calls run: whose answer goes where, and what ends a wait, from several
 * threads. */
#include "api/compat/mcp_api_private.h"

#include "../wait.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/thread.h"
#include "http/carrier.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

enum { N_CALLS = 4, ASKERS_A_CALL = 2, ROUNDS = 50, FRAMES = 64, FRAME_BYTES = 300 };

/* A client with one call in one session: what was sent to it waits for its answer. */
struct client {
    struct http_stream stream; /* first */
    struct rig *rig;
    pthread_mutex_t lock; /* guards the two below */
    char frames[FRAMES][FRAME_BYTES];
    size_t n_frames;
    bool is_deaf; /* takes no bytes */
    char owner[16], session[UUID_SIZE], name[RUNNING_NAME_SIZE];
    struct json_rpc_id call_id;
    struct mcp_api_running running;
};

struct rig {
    struct api api;
    struct mcp_api *mcp;
    struct client clients[N_CALLS];
    atomic_bool has_ended;
};

static int client_push(struct http_stream *s, struct slice bytes)
{
    struct client *c = (struct client *)s;
    const char *data = memmem(bytes.p, bytes.n, "data: ", 6);
    size_t n = data ? bytes.n - (size_t)(data + 6 - bytes.p) : 0;

    if (c->is_deaf)
        return -EPIPE;
    assert_true(n > 0 && n < FRAME_BYTES);
    pthread_mutex_lock(&c->lock);
    assert_true(c->n_frames < FRAMES);
    memcpy(c->frames[c->n_frames], data + 6, n);
    c->frames[c->n_frames++][n] = '\0';
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static const struct http_stream_carrier carrier = { .push = client_push };

static void client_open(struct rig *rig, size_t i)
{
    struct client *c = &rig->clients[i];

    *c = (struct client){ .rig = rig, .call_id = { .kind = JSON_RPC_ID_INT, .number = 7 } };
    http_stream_init(&c->stream, &carrier);
    pthread_mutex_init(&c->lock, NULL);
    snprintf(c->owner, sizeof(c->owner), "owner %zu", i / 2);
    assert_int_equal(mcp_api_session_new(rig->mcp, c->owner, MCP_API_2025_11_25, c->session, NULL), 0);
    mcp_api_session_set_abilities(rig->mcp, c->session, 1U << MCP_API_SAMPLING | 1U << MCP_API_ELICITATION);
}

static struct rig *rig_open(void)
{
    struct rig *rig = xcalloc(1, sizeof(*rig));

    assert_int_equal(hash_init(NULL), 0);
    assert_int_equal(settings_load(&(struct settings_sources){ 0 }, &rig->api.settings, NULL), 0);
    assert_int_equal(loop_new(&rig->api.loop, NULL), 0);
    rig->mcp = mcp_api_open(&rig->api);
    for (size_t i = 0; i < N_CALLS; i++)
        client_open(rig, i);
    return rig;
}

static void rig_close(struct rig *rig)
{
    assert_null(rig->mcp->questions);
    assert_null(rig->mcp->running);
    for (size_t i = 0; i < N_CALLS; i++)
        pthread_mutex_destroy(&rig->clients[i].lock);
    loop_free(rig->api.loop);
    mcp_api_close(rig->mcp);
    settings_free(rig->api.settings);
    free(rig);
}

static void call_begin(struct client *c)
{
    c->running = (struct mcp_api_running){
        .owner = c->owner, .session_id = c->session, .id = &c->call_id, .stream = &c->stream
    };
    mcp_api_running_begin(c->rig->mcp, &c->running);
    mcp_api_running_name(&c->running, c->name);
}

static void call_end(struct client *c)
{
    mcp_api_running_end(c->rig->mcp, &c->running);
}

static void call_cancel(struct client *c)
{
    mcp_api_cancel(c->rig->mcp, c->owner, c->session, &c->call_id);
}

/* ---- one that asks ---- */

struct asker {
    struct client *client;
    int n; /* in the question, and to be in its answer */
    int r, answered;
    char code[40], text[200];
    pthread_t thread;
};

static void ask(struct asker *a)
{
    AUTO(arena_freep) struct arena *arena = arena_new();
    const char *text = arena_printf(arena, "{\"n\":%d}", a->n);
    struct json_value params = { 0 }, answer = { 0 };
    struct err e = { 0 };

    assert_int_equal(json_parse(arena, slice_of(text), &params, NULL), 0);
    a->r = mcp_api_request_caller(a->client->rig->mcp, a->client->name, a->n % N_MCP_API_ABILITIES, params, arena,
                                  &answer, &e);
    a->answered = (int)json_int(json_get(answer, "n"));
    snprintf(a->code, sizeof(a->code), "%s", e.code);
    snprintf(a->text, sizeof(a->text), "%s", e.text);
}

static void *ask_main(void *arg)
{
    ask(arg);
    return NULL;
}

static void ask_begin(struct asker *a, struct client *c, int n)
{
    *a = (struct asker){ .client = c, .n = n };
    assert_int_equal(thread_start(&a->thread, "ask", ask_main, a), 0);
}

/* ---- one that answers ---- */

static bool take_frame(struct client *c, char ret[FRAME_BYTES])
{
    bool has_one;

    pthread_mutex_lock(&c->lock);
    has_one = c->n_frames > 0;
    if (has_one)
        memcpy(ret, c->frames[--c->n_frames], FRAME_BYTES); /* the newest first */
    pthread_mutex_unlock(&c->lock);
    return has_one;
}

static bool was_asked(void *client)
{
    struct client *c = client;
    bool has_one;

    pthread_mutex_lock(&c->lock);
    has_one = c->n_frames > 0;
    pthread_mutex_unlock(&c->lock);
    return has_one;
}

/* Answers as this owner and session, by a result with the question's number or by an error. */
static void answer_as(struct rig *rig, const char *owner, const char *session, const char *question, const char *error)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_rpc_frame asked, answer;
    const char *text;

    assert_int_equal(json_rpc_read(a, slice_of(question), FRAME_BYTES, &asked, NULL), 0);
    text = error ? arena_printf(a, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":-1,\"message\":\"%s\"}}",
                                (long long)asked.id.number, error)
                 : arena_printf(a, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"n\":%lld}}",
                                (long long)asked.id.number, (long long)json_int(json_get(asked.params, "n")));
    assert_int_equal(json_rpc_read(a, slice_of(text), FRAME_BYTES, &answer, NULL), 0);
    mcp_api_answered(rig->mcp, owner, session, &answer);
}

static void *answer_main(void *arg)
{
    struct rig *rig = arg;
    char frame[FRAME_BYTES];

    while (!atomic_load(&rig->has_ended))
        for (size_t i = 0; i < N_CALLS; i++) {
            struct client *c = &rig->clients[i], *other = &rig->clients[(i + 1) % N_CALLS];

            if (!take_frame(c, frame))
                continue;
            answer_as(rig, other->owner, other->session, frame, NULL); /* not its question */
            answer_as(rig, c->owner, c->session, frame, NULL);
            answer_as(rig, c->owner, c->session, frame, "too late");
        }
    return NULL;
}

/* ---- tests ---- */

static void the_client_of_the_call_is_asked_and_its_answer_is_the_result(void **state)
{
    struct rig *rig = rig_open();
    struct client *c = &rig->clients[0];
    char frame[FRAME_BYTES];
    struct asker a;

    call_begin(c);
    ask_begin(&a, c, 4);
    assert_true(wait_until(was_asked, c));
    assert_true(take_frame(c, frame));
    assert_non_null(strstr(frame, "\"method\":\"sampling/createMessage\",\"params\":{\"n\":4}"));
    answer_as(rig, c->owner, c->session, frame, NULL);
    pthread_join(a.thread, NULL);
    assert_int_equal(a.r, 0);
    assert_int_equal(a.answered, 4);
    call_end(c);
    rig_close(rig);
}

static void an_answer_of_someone_else_is_dropped(void **state)
{
    struct rig *rig = rig_open();
    struct client *c = &rig->clients[0];
    char frame[FRAME_BYTES];
    struct asker a;

    call_begin(c);
    ask_begin(&a, c, 1);
    assert_true(wait_until(was_asked, c));
    assert_true(take_frame(c, frame));
    answer_as(rig, "another owner", c->session, frame, "not mine");
    answer_as(rig, c->owner, rig->clients[1].session, frame, "not mine"); /* another session of the same owner */
    answer_as(rig, c->owner, c->session, "{\"jsonrpc\":\"2.0\",\"id\":999,\"method\":\"x\"}", "never asked");
    answer_as(rig, c->owner, c->session, frame, "I will not.");
    answer_as(rig, c->owner, c->session, frame, NULL); /* a second answer */
    pthread_join(a.thread, NULL);
    assert_int_equal(a.r, -EIO);
    assert_string_equal(a.code, "CLIENT_ERROR");
    assert_string_equal(a.text, "The client refused elicitation/create: I will not.");
    call_end(c);
    rig_close(rig);
}

static void whoever_cannot_answer_is_not_asked(void **state)
{
    struct rig *rig = rig_open();
    struct asker a = { .client = &rig->clients[0], .n = 1 };

    call_begin(a.client);
    mcp_api_session_set_abilities(rig->mcp, a.client->session, 1U << MCP_API_SAMPLING);
    ask(&a);
    assert_int_equal(a.r, -ENOTSUP);
    assert_string_equal(a.code, "CLIENT_CANNOT");
    a.n = 2;
    a.client->running.stream = NULL;
    ask(&a);
    assert_int_equal(a.r, -ENOTSUP);
    a.client->running.stream = &a.client->stream;
    a.client->is_deaf = true;
    ask(&a);
    assert_int_equal(a.r, -EIO);
    assert_string_equal(a.code, "CLIENT_ERROR");
    assert_null(rig->mcp->questions);
    call_end(a.client);
    ask(&a); /* the call has ended */
    assert_int_equal(a.r, -ENOTSUP);
    assert_int_equal(a.client->n_frames, 0);
    rig_close(rig);
}

static void *end_call(void *client)
{
    call_end(client);
    return NULL;
}

/* What asks uses the call's memory, so the end of the call waits until nobody asks any more. */
static void the_end_of_a_call_ends_what_was_asked_for_it(void **state)
{
    struct rig *rig = rig_open();
    struct client *c = &rig->clients[0];
    struct asker askers[ASKERS_A_CALL];
    pthread_t ending;

    call_begin(c);
    for (size_t i = 0; i < ASKERS_A_CALL; i++) {
        ask_begin(&askers[i], c, 2 * (int)i);
        assert_true(wait_until(was_asked, c));
    }
    assert_int_equal(thread_start(&ending, "end", end_call, c), 0);
    for (size_t i = 0; i < ASKERS_A_CALL; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_true(askers[i].r == -ECANCELED || askers[i].r == -ENOTSUP); /* not begun before the end */
    }
    pthread_join(ending, NULL);
    memset(&c->running, 0, sizeof(c->running));
    rig_close(rig);
}

static void *cancel_some(void *arg)
{
    struct rig *rig = arg;

    for (size_t i = 0; i < N_CALLS; i += 2)
        call_cancel(&rig->clients[i]);
    return NULL;
}

/* Half of the calls are cancelled meanwhile. */
static void ask_all(struct rig *rig, int round)
{
    struct asker askers[N_CALLS * ASKERS_A_CALL];
    pthread_t canceling;

    for (size_t i = 0; i < N_CALLS; i++)
        call_begin(&rig->clients[i]);
    for (size_t i = 0; i < ARRAY_SIZE(askers); i++)
        ask_begin(&askers[i], &rig->clients[i % N_CALLS], 100 * round + (int)i);
    assert_int_equal(thread_start(&canceling, "cancel", cancel_some, rig), 0);
    for (size_t i = 0; i < ARRAY_SIZE(askers); i++) {
        struct asker *a = &askers[i];

        pthread_join(a->thread, NULL);
        if (i % N_CALLS % 2 == 1)
            assert_int_equal(a->r, 0);
        if (a->r == 0)
            assert_int_equal(a->answered, a->n);
        else
            assert_string_equal(a->code, "SHUTTING_DOWN");
    }
    pthread_join(canceling, NULL);
    for (size_t i = 0; i < N_CALLS; i++)
        call_end(&rig->clients[i]);
}

static void of_many_questions_each_gets_its_own_answer(void **state)
{
    struct rig *rig = rig_open();
    pthread_t answering[2];

    for (size_t i = 0; i < ARRAY_SIZE(answering); i++)
        assert_int_equal(thread_start(&answering[i], "answer", answer_main, rig), 0);
    for (int round = 0; round < ROUNDS; round++)
        ask_all(rig, round);
    atomic_store(&rig->has_ended, true);
    for (size_t i = 0; i < ARRAY_SIZE(answering); i++)
        pthread_join(answering[i], NULL);
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_client_of_the_call_is_asked_and_its_answer_is_the_result),
        cmocka_unit_test(an_answer_of_someone_else_is_dropped),
        cmocka_unit_test(whoever_cannot_answer_is_not_asked),
        cmocka_unit_test(the_end_of_a_call_ends_what_was_asked_for_it),
        cmocka_unit_test(of_many_questions_each_gets_its_own_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
