/* A client that waits for a whole answer. Its exchange waits in memory; no thread waits. */
#include "api/resources/llm_parts.h"
#include "api/resources/metered.h"
#include "base/clock.h"
#include "base/pool.h"

#include <stdlib.h>

enum { LARGE_ANSWER = LIMIT_LLM_READ_ON_LOOP };

struct chat_answer { /* in the chat's arena */
    struct http_exchange *exchange;
    struct deferred *deferred;
    struct api *api;
    const struct llm_form *form;
    struct chat *chat;
    struct llm_whole *whole;
};

static void write_members(struct json_writer *w, const void *arg)
{
    const struct chat_answer *c = arg;

    c->form->whole(w, &c->whole->progress);
}

/* On the loop, or on a worker when the answer is large. */
static void write_answer(void *arg)
{
    struct chat_answer *c = arg;
    struct llm_whole *whole = c->whole;
    int64_t own_us = clock_mono_us() - c->chat->handled_us - whole->upstream_us;

    metered_headers(c->exchange, whole->progress.provider, c->chat->handled_us, own_us);
    deferred_answer(c->deferred, write_members, c);
    llm_whole_free(whole); /* frees c as well */
}

static bool is_large(const struct llm_answer *answer)
{
    return answer->text.n + answer->reasoning.n + answer->signatures.n + answer->n_argument_bytes > LARGE_ANSWER;
}

static void done(void *arg, struct llm_whole *whole, int r, const struct err *e)
{
    struct chat_answer *c = arg;

    c->whole = whole;
    if (r < 0) {
        metered_retry_after(c->exchange, e, whole ? whole->retry_after_ms : 0);
        deferred_fail(c->deferred, r, e);
        llm_whole_free(whole);
    } else if (!is_large(&whole->answer) || pool_submit(c->api->short_pool, write_answer, c) < 0) {
        write_answer(c);
    }
}

static void on_gone(struct http_exchange *x, void *arg)
{
    struct chat_answer *c = arg;

    chat_cancel(c->chat);
}

static void watch(void *arg, struct chat *chat)
{
    struct chat_answer *c = arg;

    http_exchange_on_gone(c->exchange, chat ? on_gone : NULL, c);
}

void chat_answer_start(struct request *req, struct response *res, struct chat *chat, const struct llm_form *form,
                       void *state)
{
    struct chat_answer *c = ARENA_NEW(chat->arena, struct chat_answer);

    *c = (struct chat_answer){ .exchange = req->exchange, .api = req->api, .form = form, .chat = chat };
    c->deferred = request_defer(req, res);
    chat_start(chat, &(struct chat_client){ .done = done, .watch = watch, .arg = c, .state = state });
}
