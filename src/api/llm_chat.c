#include "api/llm_chat.h"

#include "api/api.h"
#include "api/metered.h"
#include "api/provider_choice.h"
#include "base/clock.h"

enum { USUAL_TOKENS = 1000 /* expected of an answer without a limit */ };

/* ---- before an upstream is asked ---- */

/* Whom this caller asks with this chat, and with which model: every chat passes here before an upstream is asked. */
static int make_plan(struct request *req, struct llm_chat *chat, struct arena *a, struct llm_plan *ret, struct err *e)
{
    struct provider_choice choice = { 0 };
    int r = provider_choose(req, PROVIDER_CHAT, chat->provider, chat->ask->model, &choice, e);

    if (r < 0)
        return r;
    chat->ask->model = choice.model;
    return llm_plan_make(req->api->llm_accounts, choice.provider, chat->ask, a, &req->exchange->is_gone, ret, e);
}

/* The longest answer is expected: what was not used is given back when the chat is counted. */
static int admit(struct request *req, const struct llm_chat *chat, struct meter_ticket *ret, struct err *e)
{
    int64_t most = chat->ask->max_tokens > 0 ? chat->ask->max_tokens : USUAL_TOKENS;

    return metered_admit(req, llm_prompt_tokens(chat->ask) + most, ret, e);
}

/* ---- after it ---- */

/* Of every admitted chat, once; on a worker or on the loop. provider NULL: nobody was asked. */
static void count_use(struct meter *m, struct meter_ticket *ticket, const char *provider, const char *model, const struct llm_usage *used,
                      bool is_whole)
{
    if (!provider) {
        meter_give_back(m, ticket);
        return;
    }
    meter_count(m, ticket, &(struct meter_use){ .work = METER_CHAT, .provider = provider, .model = model, .prompt_tokens = used->prompt_tokens,
                                                .completion_tokens = used->completion_tokens, .is_estimated = used->is_estimated,
                                                .is_failed = !is_whole });
}

/* ---- whole ---- */

static int call(struct request *req, struct llm_chat *chat, struct llm_outcome *ret, struct err *e)
{
    struct llm_plan *plan = ARENA_NEW(req->arena, struct llm_plan);
    int r = make_plan(req, chat, req->arena, plan, e);

    if (r < 0)
        return r;
    http_exchange_forget_body(req->exchange);           /* as a relay does: the plan has what is sent */
    return llm_call(plan, req->api->settings, req->arena, &req->exchange->is_gone, ret, e);
}

/* Of all attempts. Tokens of those that failed are counted with the provider that came last. */
static struct llm_usage usage_of(const struct llm_outcome *out)
{
    struct llm_usage sum = out->lost;

    if (out->answer)
        llm_usage_add(&sum, &out->answer->usage);
    return sum;
}

int llm_chat_whole(struct request *req, struct llm_chat *chat, struct llm_outcome *ret, struct err *e)
{
    int64_t handled_us = clock_mono_us();
    struct meter_ticket ticket = { 0 };
    struct llm_usage used;
    int r = admit(req, chat, &ticket, e);

    if (r < 0)
        return r;
    *ret = (struct llm_outcome){ 0 };
    r = call(req, chat, ret, e);
    used = usage_of(ret);
    count_use(req->api->meter, &ticket, ret->provider, ret->model, &used, r == 0);
    if (r < 0)
        metered_retry_after(req->exchange, e, ret->retry_after_ms);
    else
        metered_headers(req->exchange, ret->provider, handled_us, clock_mono_us() - handled_us - ret->upstream_us);
    return r;
}

/* ---- streamed ---- */

struct streaming {                      /* in the relay's arena */
    struct http_exchange *exchange;
    struct deferred *deferred;
    const char *scope;
    struct meter *meter;
    struct meter_ticket ticket;
    int64_t handled_us;
};

static struct http_stream *start_stream(void *arg, const struct llm_told *t)
{
    struct streaming *s = arg;

    metered_headers(s->exchange, t->provider, s->handled_us, t->began_us - s->handled_us - t->lost_us);
    return deferred_events(s->deferred);
}

static void fail_stream(void *arg, int r, const struct err *e, int64_t retry_after_ms)
{
    struct streaming *s = arg;

    metered_retry_after(s->exchange, e, retry_after_ms);
    deferred_fail(s->deferred, r, e);
}

static void end_stream(void *arg, const struct llm_told *t, bool is_whole)
{
    struct streaming *s = arg;

    count_use(s->meter, &s->ticket, t->provider, t->model, &t->answer->usage, is_whole);
}

static const struct llm_relay_host host = { start_stream, fail_stream, end_stream };

static struct streaming *make_streaming(struct request *req, struct arena *a)
{
    struct streaming *s = ARENA_NEW(a, struct streaming);

    *s = (struct streaming){ .exchange = req->exchange, .scope = arena_strdup(a, req->caller->scope), .meter = req->api->meter,
                             .handled_us = clock_mono_us() };
    return s;
}

static int need_relays(const struct request *req, struct err *e)
{
    if (req->api->llm_relays)
        return 0;
    return err_set(e, -ENOTSUP, "NOT_SERVING", "Chats are streamed only while the service runs; start it with `hearth serve`");
}

int llm_chat_stream(struct request *req, struct response *res, struct llm_chat *chat, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_plan *plan = ARENA_NEW(a, struct llm_plan);
    struct streaming *s = make_streaming(req, a);
    struct llm_relay_start start = { .plan = plan, .form = chat->form, .host = &host, .host_arg = s, .exchange = s->exchange };
    int r = need_relays(req, e);

    chat->ask->is_streamed = true;
    if (r == 0)
        r = admit(req, chat, &s->ticket, e);
    if (r < 0)
        return r;
    r = make_plan(req, chat, a, plan, e);
    if (r < 0) {
        meter_give_back(s->meter, &s->ticket);
        return r;
    }
    if (chat->state) {
        start.state = arena_alloc(a, chat->n_state);
        memcpy(start.state, chat->state, chat->n_state);
    }
    start.scope = chat->is_resumable ? s->scope : NULL;
    s->deferred = request_defer(req, res);
    start.arena = TAKE(a);
    llm_relay_start(req->api->llm_relays, &start);
    return 0;
}

/* "uuid:number", as the stream's ids are. */
static int read_event_id(struct arena *a, const char *id, struct llm_resume *ret, struct err *e)
{
    const char *colon = strchr(id, ':');
    char *end = NULL;

    if (colon && colon[1] >= '0' && colon[1] <= '9')
        ret->after = strtoll(colon + 1, &end, 10);
    if (!end || *end || !uuid_is_valid((struct slice){ id, (size_t)(colon - id) }))
        return err_add_field(e, "last-event-id", "must be the id of an event of this stream");
    ret->uuid = arena_strndup(a, id, (size_t)(colon - id));
    return 0;
}

int llm_chat_resume(struct request *req, struct response *res, const char *last_event_id, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct streaming *s = make_streaming(req, a);
    struct llm_resume how = { .scope = s->scope, .host = &host, .host_arg = s, .exchange = req->exchange };
    int r = need_relays(req, e);

    if (r == 0)
        r = read_event_id(a, last_event_id, &how, e);
    if (r < 0)
        return r;
    s->deferred = request_defer(req, res);
    how.arena = TAKE(a);
    llm_relay_resume(req->api->llm_relays, &how);
    return 0;
}
