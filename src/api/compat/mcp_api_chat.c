/* The tool `chat`: a whole chat, for which a worker of the long pool waits; its progress is the text that has come. */
#include "api/compat/mcp_api_turn.h"
#include "api/resources/llm_form.h"
#include "api/resources/metered.h"
#include "base/clock.h"
#include "base/cond.h"
#include "llm/request.h"
#include "models/chat.h"

#include <pthread.h>

enum { LOOK_US = 100000 };

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
    size_t n_bytes; /* of text and thoughts so far */
    struct llm_whole *whole;
    int r;
    struct err *e;
};

static void done(void *arg, struct llm_whole *whole, int r, const struct err *e)
{
    struct waiting *waiting = arg;

    pthread_mutex_lock(&waiting->lock);
    waiting->whole = whole;
    waiting->r = r;
    if (r < 0)
        *waiting->e = *e;
    waiting->is_done = true;
    pthread_cond_signal(&waiting->changed); /* under the lock: the waiting object ends with its owner's next step */
    pthread_mutex_unlock(&waiting->lock);
}

static int on_delta(void *arg, struct slice text)
{
    struct waiting *waiting = arg;

    pthread_mutex_lock(&waiting->lock);
    waiting->n_bytes += text.n;
    pthread_mutex_unlock(&waiting->lock);
    return 0;
}

/* True when the chat has ended. */
static bool look(struct waiting *waiting, size_t *ret_bytes)
{
    bool is_done;

    pthread_mutex_lock(&waiting->lock);
    if (!waiting->is_done)
        cond_wait_until(&waiting->changed, &waiting->lock, clock_mono_us() + LOOK_US);
    is_done = waiting->is_done;
    *ret_bytes = waiting->n_bytes;
    pthread_mutex_unlock(&waiting->lock);
    return is_done;
}

/* The chat looks at the cancel flag itself and always ends. */
static int wait_for(struct mcp_api_turn *t, struct chat *chat, struct waiting *waiting)
{
    const struct llm_sink sink = { .on_text = on_delta, .on_reasoning = on_delta, .arg = waiting };
    size_t n_bytes;

    pthread_mutex_init(&waiting->lock, NULL);
    cond_init(&waiting->changed);
    chat_start(chat, &(struct chat_client){ .done = done, .sink = t->stream ? &sink : NULL, .arg = waiting });
    while (!look(waiting, &n_bytes)) {
        (void)mcp_api_is_cancelled(t); /* a client that has left cancels the call */
        if (n_bytes > 0)
            mcp_api_progress(t, (double)n_bytes, 0, "bytes of the answer");
    }
    pthread_cond_destroy(&waiting->changed);
    pthread_mutex_destroy(&waiting->lock);
    return waiting->r;
}

static void take_answer(struct mcp_api_turn *t, const struct llm_whole *whole, struct mcp_api_result *ret)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    llm_form_sdk.whole(&w, &whole->progress);
    json_end(&w);
    ret->text = arena_slicedup(t->arena, buf_slice(&whole->answer.text));
    ret->structured.n = out.n;
    ret->structured.p = buf_to_arena(&out, t->arena);
}

static int prepare(struct mcp_api_turn *t, const struct llm_request_body *body, struct chat **ret, struct err *e)
{
    struct arena *a = http_exchange_body_arena(t->req->exchange);
    struct llm_request *request = ARENA_NEW(a, struct llm_request);
    struct models_call *call = metered_call(t->req);
    int r = llm_request_of(body, a, request, e);

    if (r < 0)
        return r;
    request->is_streamed = t->stream != NULL;
    call->is_permitted = false;
    call->is_gone = &t->running.is_cancelled;
    return chat_prepare(call, &(struct chat_job){ .provider = body->provider, .request = request, .arena = a }, ret, e);
}

int mcp_api_chat(struct mcp_api_turn *t, const struct mcp_api_tool *tool, struct json_value arguments,
                 struct mcp_api_result *ret, struct err *e)
{
    const struct route *route = mcp_api_find_route(&tool->route);
    struct llm_request_body *body = arena_alloc(t->arena, route->body_size);
    struct waiting waiting = { .e = e };
    struct chat *chat = NULL;
    int r = fields_read(route->body, arguments, body, t->arena, "", e);

    if (r == 0)
        r = prepare(t, body, &chat, e);
    if (r < 0)
        return r;
    r = wait_for(t, chat, &waiting);
    if (r == 0)
        take_answer(t, waiting.whole, ret);
    llm_whole_free(waiting.whole);
    return r;
}
