/* The modules behind models/ without a service: an app of ../identity/fixture.h, and a provider in this process
 * (../net/upstream.h) that chats and embeds.
 *
 *     AUTO(models_close) struct models_rig x = { 0 };  models_open(&x);   allow(&x, PERM_LLM_CHAT);
 *     struct models_call call = call_of(&x);
 */
#pragma once

#include "../identity/fixture.h"
#include "../net/upstream.h"

#include "base/pool.h"
#include "llm/turn.h"
#include "models/vector_space.h"

#define CHUNK(text) "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" text "\"},\"finish_reason\":null}]}"
#define LAST_CHUNK                                                                                                     \
    "{\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5}}"
#define WHOLE                                                                                                          \
    "{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":\"all at once\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5}}"

enum { N_BULKY = 300000 };

struct models_rig {
    struct fixture f;
    struct rig provider;
    struct settings *settings;
    struct meter *meter;
    struct llm_accounts *accounts;
    struct pool *workers;
    struct llm_turns *turns;
    struct vector_stores *stores;
    struct models models;
    struct caller caller;
    atomic_int n_requested;
    atomic_bool is_refusing;
    bool (*answer)(struct models_rig *x, struct http_exchange *exchange); /* before all else; false: not by this */
    void *arg;
};

static inline void push_text(struct http_stream *s, const char *text)
{
    (void)!sse_push(s, NULL, NULL, slice_of(text));
}

static inline void say_stream(struct http_exchange *x, bool is_cut)
{
    struct http_stream *s = sse_start(x);

    push_text(s, CHUNK("Hel"));
    push_text(s, CHUNK("lo"));
    if (!is_cut) {
        push_text(s, LAST_CHUNK);
        push_text(s, "[DONE]");
    }
    http_stream_end(s);
}

/* In one piece, even when a stream was requested. */
static inline void say_bulky(struct buf *body)
{
    buf_add_str(body, "{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":\"");
    for (int i = 0; i < N_BULKY; i++)
        buf_add_char(body, 'x');
    buf_add_str(body, "\"},\"finish_reason\":\"stop\"}]}");
}

static inline void answer_as_provider(void *arg, struct http_exchange *x)
{
    struct models_rig *m = arg;
    const struct slice body = x->request.body;

    atomic_fetch_add(&m->n_requested, 1);
    if (m->answer && m->answer(m, x))
        return;
    if (atomic_load(&m->is_refusing)) {
        x->response.status = 400;
        buf_add_str(&x->response.body, "{\"error\":{\"message\":\"not like this\"}}");
    } else if (strstr(x->request.path, "/embeddings")) {
        buf_add_str(
            &x->response.body,
            "{\"model\":\"e-1\",\"data\":[{\"index\":0,\"embedding\":[0.6,0.8]}],\"usage\":{\"prompt_tokens\":7}}");
    } else if (strncmp(x->request.path, "/bulky", 6) == 0) {
        say_bulky(&x->response.body);
    } else if (memmem(body.p, body.n, "\"stream\":true", 13)) {
        say_stream(x, strncmp(x->request.path, "/cut", 4) == 0);
        return;
    } else {
        buf_add_str(&x->response.body, WHOLE);
    }
    http_exchange_send(x);
}

static inline void add_account(struct models_rig *x, const char *name, const char *base_url)
{
    const struct llm_account account = { .name = name,
                                         .preset = llm_preset_find("generic-openai"),
                                         .model = "m",
                                         .embed_model = "e",
                                         .base_url = base_url };
    struct err e = { 0 };

    must(llm_accounts_put(x->accounts, &account, &e), &e);
}

static inline void open_turns(void *arg)
{
    struct models_rig *x = arg;
    struct err e = { 0 };

    must(llm_turns_new(x->provider.loop, x->settings, x->workers, &x->turns, &e), &e);
}

static inline void free_turns(void *arg)
{
    struct models_rig *x = arg;

    x->turns = llm_turns_free(x->turns);
}

static inline void open_stores(struct models_rig *x)
{
    const struct vector_stores_config c = {
        .store = x->f.store,
        .identity = x->f.id,
        .embedded = { .path = arena_printf(x->f.a, "%s/vectors.db", x->f.path),
                      .list_above_rows = 1000,
                      .target_recall = 0.9,
                      .memory_bytes = 1 << 20 },
    };
    struct err e = { 0 };

    must(vector_stores_open(&c, &x->stores, &e), &e);
}

/* Initialized in place, because the parts point at each other. */
static inline void models_open(struct models_rig *x)
{
    const char *const flags[] = { "llm.retries=0", "llm.fallbacks=two" };
    const struct pool_config readers = { .name = "readers", .n_min = 1, .n_max = 1, .max_waiting = 100 };
    const struct settings_sources from = { .flags = flags, .n_flags = ARRAY_SIZE(flags) };
    struct err e = { 0 };

    x->f = fixture_open();
    x->caller = app_caller(&x->f);
    must(settings_load(&from, &x->settings, &e), &e);
    must(meter_open(&(struct meter_config){ .store = x->f.store, .settings = x->settings }, &x->meter, &e), &e);
    must(llm_accounts_new(x->settings, NULL, &x->accounts, &e), &e);
    rig_open(&x->provider, answer_as_provider, x);
    must(pool_start(&readers, &x->workers, &e), &e);
    loop_call(x->provider.loop, open_turns, x);
    add_account(x, "one", rig_url(&x->provider, "/v1"));
    open_stores(x);
    x->models = (struct models){ .loop = x->provider.loop,
                                 .settings = x->settings,
                                 .store = x->f.store,
                                 .identity = x->f.id,
                                 .meter = x->meter,
                                 .llm_accounts = x->accounts,
                                 .llm_turns = x->turns,
                                 .vector_stores = x->stores };
}

static inline void models_close(struct models_rig *x)
{
    struct err e = { 0 };

    pool_stop(x->workers);
    loop_call(x->provider.loop, free_turns, x);
    rig_close(&x->provider);
    vector_stores_close(x->stores);
    llm_accounts_free(x->accounts);
    must(meter_flush(x->meter, &e), &e);
    meter_close(x->meter);
    settings_free(x->settings);
    fixture_close(&x->f);
}

static inline void allow(struct models_rig *x, const char *permission)
{
    decide(&x->f, APP, permission, true, CONSENT_ALWAYS);
}

static inline struct models_call call_of(struct models_rig *x)
{
    return (struct models_call){ .models = &x->models, .caller = &x->caller, .arena = x->f.a };
}

/* All usage so far, in one sum. */
static inline struct usage_counts counted(struct models_rig *x)
{
    const struct usage_request request = {
        .from = "2000-01-01", .to = "2999-12-31", .limit = 10, .by = USAGE_BY(USAGE_APP)
    };
    struct usage_page page = { 0 };
    struct err e = { 0 };

    must(meter_flush(x->meter, &e), &e);
    must(store_usage_list(x->f.store, x->f.a, &request, &page, &e), &e);
    assert_true(page.n <= 1);
    return page.n ? page.rows[0].counts : (struct usage_counts){ 0 };
}

/* ---- a provider that falls silent ---- */

static inline bool has_heard(void *arg)
{
    return atomic_load(&((struct raw_peer *)arg)->has_heard);
}

static inline bool has_left(void *arg)
{
    return atomic_load(&((struct raw_peer *)arg)->has_left);
}

static inline void add_silent(struct models_rig *x, struct raw_peer *silent, const char *says)
{
    raw_open(silent, says, RAW_HANG);
    add_account(x, "silent", arena_printf(x->f.a, "http://127.0.0.1:%u/v1", silent->port));
}
