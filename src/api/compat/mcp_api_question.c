/* Requests of the server to the client of a session: sampling and elicitation (revision 2025-11-25, "Client features").
 * They go out in the stream of the call's answer; the client's answer comes with a POST of its own. */
#include "api/compat/mcp_api_private.h"
#include "api/compat/mcp_api_turn.h"
#include "base/cond.h"
#include "http/sse.h"

#include <stdlib.h>

enum { LOOK_US = 1000000 };

static const char *const methods[] = {
    [MCP_API_SAMPLING] = "sampling/createMessage", [MCP_API_ELICITATION] = "elicitation/create"
};

/* ---- the questions that wait ---- */

static void begin_question(struct mcp_api *m, struct mcp_api_question *q)
{
    pthread_mutex_lock(&m->lock);
    q->id = ++m->n_questions;
    q->next = m->questions;
    m->questions = q;
    pthread_mutex_unlock(&m->lock);
}

static void end_question(struct mcp_api *m, struct mcp_api_question *q)
{
    struct mcp_api_question **at;

    pthread_mutex_lock(&m->lock);
    for (at = &m->questions; *at != q; at = &(*at)->next)
        ;
    *at = q->next;
    pthread_mutex_unlock(&m->lock);
}

static struct mcp_api_question *find_question(struct mcp_api *m, const char *owner, const char *session_id,
                                              const struct json_rpc_id *id)
{
    struct mcp_api_question *q = m->questions;

    while (q && (id->kind != JSON_RPC_ID_INT || q->id != id->number || strcmp(q->running->owner, owner) != 0 ||
                 strcmp(q->running->session_id, session_id) != 0))
        q = q->next;
    return q;
}

/* The result as JSON, or the sentence of the error. Owned by the caller. */
static char *answer_text(const struct json_rpc_frame *frame)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BODY_CHAT);
    json_write_init(&w, &out);
    if (frame->kind == JSON_RPC_ERROR)
        json_add_slice(&w, NULL, frame->error.message);
    else
        json_add_value(&w, NULL, frame->result);
    return buf_take(&out);
}

void mcp_api_answered(struct mcp_api *m, const char *owner, const char *session_id, const struct json_rpc_frame *frame)
{
    char *text = answer_text(frame);
    struct mcp_api_question *q;
    uint64_t places = 0;

    pthread_mutex_lock(&m->lock);
    q = find_question(m, owner, session_id, &frame->id);
    if (q && !q->answer) {
        q->answer = text;
        q->is_error = frame->kind == JSON_RPC_ERROR;
        text = NULL;
        places = mcp_api_set_woken(q->running);
    }
    pthread_mutex_unlock(&m->lock);
    mcp_api_wake(m, places);
    free(text);
}

/* ---- sending one ---- */

static int send_question(const struct mcp_api_question *q, struct json_value params, struct err *e)
{
    const struct json_rpc_id id = { .kind = JSON_RPC_ID_INT, .number = q->id };
    struct json_writer w;
    struct buf out;
    int r;

    buf_init(&out, LIMIT_BODY_CHAT);
    json_rpc_begin_request(&w, &out, &id, methods[q->ability]);
    json_add_value(&w, "params", params);
    json_end(&w);
    r = buf_check(&out, e);
    if (r == 0 && sse_push(q->running->stream, "message", NULL, buf_slice(&out)) < 0)
        r = err_set(e, -EIO, "CLIENT_ERROR", "The client does not read its stream.");
    buf_clear(&out);
    return r;
}

static bool is_over(const struct mcp_api *m, const struct mcp_api_running *r)
{
    return r->is_ending || atomic_load(&r->is_cancelled) || atomic_load(&m->api->is_leaving);
}

static int wait_for_answer(struct mcp_api *m, const struct mcp_api_question *q, struct err *e)
{
    int64_t until_us = clock_mono_us() + LIMIT_MCP_WAIT_S * INT64_C(1000000);
    bool is_answered;

    pthread_mutex_lock(&m->lock);
    while (!q->answer && !is_over(m, q->running) && clock_mono_us() < until_us)
        (void)cond_wait_until(&m->wakes[q->running->place], &m->lock, MIN(until_us, clock_mono_us() + LOOK_US));
    is_answered = q->answer != NULL;
    pthread_mutex_unlock(&m->lock);
    if (is_answered)
        return 0;
    return clock_mono_us() < until_us
               ? err_set(e, -ECANCELED, "SHUTTING_DOWN", "The call ended while its client was asked.")
               : err_set(e, -ETIMEDOUT, "CLIENT_SILENT", "The client has not answered %s within %d s.",
                         methods[q->ability], LIMIT_MCP_WAIT_S);
}

static int read_answer(const struct mcp_api_question *q, struct arena *a, struct json_value *ret, struct err *e)
{
    struct json_value answer = { 0 };
    int r = json_parse(a, slice_of(arena_strdup(a, q->answer)), &answer, e);

    if (r < 0)
        return r;
    if (q->is_error)
        return err_set(e, -EIO, "CLIENT_ERROR", "The client refused %s: %.200s", methods[q->ability],
                       json_cstr(answer) ? json_cstr(answer) : "");
    *ret = answer;
    return 0;
}

/* Of a running call, which cannot end meanwhile. */
static int request(struct mcp_api *m, struct mcp_api_running *running, enum mcp_api_ability ability,
                   struct json_value params, struct arena *a, struct json_value *ret, struct err *e)
{
    struct mcp_api_question q = { .running = running, .ability = ability };
    int r;

    if (!running->stream || !(mcp_api_session_abilities(m, running->session_id) & 1u << ability))
        return err_set(e, -ENOTSUP, "CLIENT_CANNOT", "The client does not answer %s.", methods[ability]);
    begin_question(m, &q);
    r = send_question(&q, params, e);
    if (r == 0)
        r = wait_for_answer(m, &q, e);
    end_question(m, &q);
    if (r == 0)
        r = read_answer(&q, a, ret, e);
    free(q.answer);
    return r;
}

int mcp_api_request_client(struct mcp_api_turn *t, enum mcp_api_ability ability, struct json_value params,
                           struct json_value *ret, struct err *e)
{
    return request(t->req->api->mcp_api, &t->running, ability, params, t->arena, ret, e);
}

/* ---- what a configured server asks during a call ---- */

static struct mcp_api_running *hold_running(struct mcp_api *m, const char *name)
{
    char text[RUNNING_NAME_SIZE];
    struct mcp_api_running *r;

    pthread_mutex_lock(&m->lock);
    for (r = m->running; r; r = r->next) {
        mcp_api_running_name(r, text);
        if (!r->is_ending && strcmp(text, name) == 0)
            break;
    }
    if (r)
        r->n_users++;
    pthread_mutex_unlock(&m->lock);
    return r;
}

static void release_running(struct mcp_api *m, struct mcp_api_running *r)
{
    unsigned place = r->place;

    pthread_mutex_lock(&m->lock);
    r->n_users--;
    pthread_mutex_unlock(&m->lock);
    mcp_api_wake(m, UINT64_C(1) << place); /* r may be gone */
}

int mcp_api_request_caller(struct mcp_api *m, const char *name, enum mcp_api_ability ability, struct json_value params,
                           struct arena *a, struct json_value *ret, struct err *e)
{
    struct mcp_api_running *running = m && name ? hold_running(m, name) : NULL;
    int r;

    if (!running)
        return err_set(e, -ENOTSUP, "CLIENT_CANNOT", "No client of /mcp made this call.");
    r = request(m, running, ability, params, a, ret, e);
    release_running(m, running);
    return r;
}
