/* Accounts that point at an upstream in this process (../net/upstream.h), and plans for them.
 *
 *     AUTO(fixture_close) struct fixture d = { 0 };  fixture_open(&d, "/cut", NULL);
 *     plan = fixture_plan(&d, a, a, true);
 */
#pragma once

#include "../net/upstream.h"
#include "llm/plan.h"

#define CHUNK(text) "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text "\"},\"finish_reason\":null}]}"
#define LAST_CHUNK                                                                                                     \
    "{\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5}}"
#define WHOLE "{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":\"all at once\"},\"finish_reason\":\"stop\"}]}"

enum { N_LARGE = 20000, LARGE_BYTES = 1000, N_BULKY = 300000 };

struct fixture {
    struct rig rig;
    struct arena *a;
    struct settings *settings;
    struct llm_accounts *accounts;
    atomic_int n_requested, n_pushed;
    atomic_bool is_open; /* /gated continues after its fifth event */
    bool is_gated;
    const char *flag;          /* an additional setting */
    const char *model, *stop;  /* of accounts and requests; NULL: m, none */
    struct http_stream *large; /* the pushing thread's */
    pthread_t pusher;
};

static inline void push_text(struct http_stream *s, const char *text)
{
    (void)!sse_push(s, NULL, NULL, slice_of(text));
}

static inline void refuse(struct http_exchange *x, int status, const char *message)
{
    x->response.status = status;
    buf_printf(&x->response.body, "{\"error\":{\"message\":\"%s\"}}", message);
    http_exchange_send(x);
}

static inline bool is_open(void *arg)
{
    return atomic_load(&((struct fixture *)arg)->is_open);
}

/* More than any buffer holds, sent from a thread that waits for room. */
static inline void *push_large(void *arg)
{
    static const char filling[LARGE_BYTES] = { [0 ... LARGE_BYTES - 2] = '.' };
    char event[2 * LARGE_BYTES];
    struct fixture *d = arg;
    int r = 0;

    for (int i = 0; i < N_LARGE && r == 0; i++) {
        if (i == 5 && d->is_gated)
            assert_true(wait_until(is_open, d));
        snprintf(event, sizeof(event), "{\"choices\":[{\"delta\":{\"content\":\"%05d%s\"}}]}", i, filling);
        r = sse_push(d->large, NULL, NULL, slice_of(event));
        atomic_fetch_add(&d->n_pushed, 1);
    }
    push_text(d->large, LAST_CHUNK);
    push_text(d->large, "[DONE]");
    http_stream_end(d->large);
    return NULL;
}

static inline void say_large(struct fixture *d, struct http_exchange *x)
{
    d->large = sse_start(x);
    assert_int_equal(pthread_create(&d->pusher, NULL, push_large, d), 0);
}

static inline void say_stream(struct http_exchange *x, bool is_cut, bool is_error)
{
    struct http_stream *s = sse_start(x);

    push_text(s, CHUNK("Hel"));
    push_text(s, CHUNK("lo"));
    if (is_error)
        push_text(s, "{\"error\":{\"message\":\"overloaded\"}}");
    if (!is_cut && !is_error) {
        push_text(s, LAST_CHUNK);
        push_text(s, "[DONE]");
    }
    http_stream_end(s);
}

/* In one piece, even when a stream was requested. */
static inline void say_bulky(struct http_exchange *x)
{
    struct buf *body = &x->response.body;

    buf_add_str(body, "{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":\"bulky.");
    for (int i = 0; i < N_BULKY; i++)
        buf_add_char(body, 'x');
    buf_add_str(body, "\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5}}");
    http_exchange_send(x);
}

/* The first part of the path chooses the behaviour. */
static inline void upstream(void *arg, struct http_exchange *x)
{
    struct fixture *d = arg;
    const char *path = x->request.path;
    int n = atomic_fetch_add(&d->n_requested, 1);
    bool is_streamed = x->request.body.n > 0 && memmem(x->request.body.p, x->request.body.n, "\"stream\":true", 13);

    d->is_gated = strncmp(path, "/gated", 6) == 0;
    if (strncmp(path, "/unwilling", 10) == 0 || (strncmp(path, "/second", 7) == 0 && n == 0))
        refuse(x, 503, "not now");
    else if (strncmp(path, "/limited", 8) == 0) {
        http_response_header(x, "retry-after", "20");
        refuse(x, 429, "slow down");
    } else if (strncmp(path, "/locked", 7) == 0)
        refuse(x, 401, "bad key");
    else if (strncmp(path, "/bulky", 6) == 0)
        say_bulky(x);
    else if (!is_streamed) {
        buf_add_str(&x->response.body, strncmp(path, "/garbage", 8) == 0 ? "{malformed" : WHOLE);
        http_exchange_send(x);
    } else if (strncmp(path, "/large", 6) == 0 || d->is_gated)
        say_large(d, x);
    else if (strncmp(path, "/refusing", 9) == 0) {
        struct http_stream *s = sse_start(x);

        push_text(s, "{\"error\":{\"message\":\"overloaded\"}}");
        http_stream_end(s);
    } else
        say_stream(x, strncmp(path, "/cut", 4) == 0, strncmp(path, "/midway", 7) == 0);
}

/* first and fallback: "/path" of the upstream above, or a whole address; fallback may be NULL. */
static inline void fixture_add(struct fixture *d, const char *name, const char *where)
{
    const struct llm_account account = { .name = name,
                                         .preset = llm_preset_find("generic-openai"),
                                         .model = d->model ? d->model : "m",
                                         .base_url = where[0] == '/'
                                                         ? rig_url(&d->rig, arena_printf(d->a, "%s/v1", where))
                                                         : where };
    struct err e = { 0 };

    if (llm_accounts_put(d->accounts, &account, &e) < 0)
        fail_msg("%s", e.text);
}

static inline void fixture_open(struct fixture *d, const char *first, const char *fallback)
{
    const char *const flags[] = { "llm.fallbacks=other", "llm.retries=1", "llm.retry_after_max_s=1", d->flag };
    const struct settings_sources from = { .flags = flags, .n_flags = ARRAY_SIZE(flags) - !d->flag };

    d->a = arena_new();
    rig_open(&d->rig, upstream, d);
    assert_int_equal(settings_load(&from, &d->settings, NULL), 0);
    assert_int_equal(llm_accounts_new(d->settings, NULL, &d->accounts, NULL), 0);
    fixture_add(d, "one", first);
    if (fallback)
        fixture_add(d, "other", fallback);
}

static inline void fixture_close(struct fixture *d)
{
    if (!d->a)
        return;
    loop_call(d->rig.loop, rig_stop_server, &d->rig);
    if (d->large)
        pthread_join(d->pusher, NULL);
    rig_close(&d->rig);
    arena_free(d->a);
    llm_accounts_free(d->accounts);
    settings_free(d->settings);
}

/* The plan lives in a, the request in request_arena. */
static inline struct llm_plan *fixture_plan(struct fixture *d, struct arena *a, struct arena *request_arena,
                                            bool is_streamed)
{
    static const struct llm_block block = { LLM_BLOCK_TEXT, .text = "hi" };
    static const struct llm_message message = { .role = LLM_USER, .blocks = &block, .n_blocks = 1 };
    struct llm_request *request = ARENA_NEW(request_arena, struct llm_request);
    const char **stop = arena_array(request_arena, 1, sizeof(*stop));
    struct llm_plan *plan = ARENA_NEW(a, struct llm_plan);
    struct err e = { 0 };

    *stop = arena_strdup(request_arena, d->stop);
    *request = (struct llm_request){ .stop = { stop, *stop != NULL },
                                     .messages = &message,
                                     .n_messages = 1,
                                     .max_tokens = 10,
                                     .is_streamed = is_streamed };
    if (llm_plan_make(d->accounts, NULL, request, a, NULL, plan, &e) < 0)
        fail_msg("%s", e.text);
    return plan;
}
