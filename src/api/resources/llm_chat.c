#include "api/resources/llm_chat.h"

#include "api/resources/llm_form.h"
#include "api/resources/llm_parts.h"
#include "api/resources/metered.h"

/* ---- the start ---- */

/* Afterwards the body is not needed any more. */
static int prepare(struct request *req, const struct llm_chat *chat, struct chat **ret, struct err *e)
{
    struct models_call *call = metered_call(req);
    const struct chat_job job = { .provider = chat->provider,
                                  .request = chat->request,
                                  .arena = http_exchange_body_arena(req->exchange) };
    int r = chat_prepare(call, &job, ret, e);

    if (r < 0)
        metered_retry_after(req->exchange, e, call->retry_after_ms);
    return r;
}

static void *copy_state(const struct llm_chat *chat, struct arena *a)
{
    void *state = chat->state ? arena_alloc(a, chat->n_state) : NULL;

    if (state)
        memcpy(state, chat->state, chat->n_state);
    if (state && chat->end_state)
        arena_defer(a, chat->end_state, state);
    return state;
}

/* Frees the body, which may be a long history, before the answer arrives: the plan holds the requests to send, and the
 * caller's budget is charged for the plan instead. */
static void exchange_body_for_plan(struct http_exchange *x, const struct llm_plan *plan)
{
    size_t n = arena_bytes(*plan->requests);

    http_exchange_forget_body(x);
    if (n > LIMIT_LARGE_BODY)
        purse_force(&x->purse, BUDGET_MEMORY, (int64_t)n);
}

int llm_chat_answer(struct request *req, struct response *res, struct llm_chat *chat, struct err *e)
{
    struct chat *prepared = NULL;
    void *state;
    int r = prepare(req, chat, &prepared, e);

    if (r < 0)
        return r;
    state = copy_state(chat, prepared->arena);
    exchange_body_for_plan(req->exchange, prepared->plan);
    chat_answer_start(req, res, prepared, chat->form, state);
    return 0;
}

int llm_chat_stream(struct request *req, struct response *res, struct llm_chat *chat, struct err *e)
{
    struct llm_relay_start start = { .form = chat->form, .client = &chat_stream_client };
    struct chat *prepared = NULL;
    struct chat_stream *s;
    int r;

    chat->request->is_streamed = true;
    r = prepare(req, chat, &prepared, e);
    if (r < 0)
        return r;
    start.arena = prepared->arena;
    start.plan = prepared->plan;
    start.state = copy_state(chat, start.arena);
    start.scope = chat->is_resumable ? arena_strdup(start.arena, req->caller->scope) : NULL;
    start.client_arg = s = chat_stream_new(req, start.arena, chat->form, prepared);
    exchange_body_for_plan(req->exchange, prepared->plan);
    chat_stream_defer(s, req, res);
    llm_relay_start(req->api->models->llm_relays, &start);
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
    struct chat_stream *s = chat_stream_new(req, a, &llm_form_sdk, NULL);
    struct llm_resume how = { .scope = arena_strdup(a, req->caller->scope),
                              .client = &chat_stream_client,
                              .client_arg = s };
    int r = chat_need_service(req->api->models, e);

    if (r == 0)
        r = read_event_id(a, last_event_id, &how, e);
    if (r < 0)
        return r;
    chat_stream_defer(s, req, res);
    how.arena = TAKE(a);
    llm_relay_resume(req->api->models->llm_relays, &how);
    return 0;
}
