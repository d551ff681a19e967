/* A turn over a scripted provider (../models/rig.h): the script's answers come one after the other, each request is
 * kept, and the tools are functions of the test.
 *
 *     AUTO(loop_rig_close) struct loop_rig x = { 0 };   loop_rig_open(&x);
 *     script(&x, CALLS(CALL("1", "echo", "{}")));   script(&x, SAY("done"));
 *     run(&x);    x.end.why == AGENT_ANSWERED;   request_of(&x, 1) ...
 */
#pragma once

#include "../models/rig.h"

#include "agents/approvals.h"
#include "agents/builtin.h"
#include "agents/definition.h"
#include "agents/loop.h"
#include "agents/loop_private.h"
#include "agents/toolbox_private.h"
#include "agents/turn_pool.h"

#define USAGE ",\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}"
#define SAY(text)                                                                                                      \
    "{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":\"" text "\"},\"finish_reason\":\"stop\"}]" USAGE
#define CALL(id, name, arguments)                                                                                      \
    "{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"arguments\":\"" arguments "\"}}"
#define CALLS(list) CALLS_BY(list, "tool_calls")
#define CALLS_BY(list, finish)                                                                                         \
    "{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[" list                             \
    "]},\"finish_reason\":\"" finish "\"}]" USAGE

enum { MAX_ANSWERS = 64, MAX_STEPS_SEEN = 400 };

struct seen_step {
    enum llm_role role;
    size_t call;
    char name[80], text[400];
    bool is_error;
};

struct loop_rig {
    struct models_rig m;
    struct turn_pool *pool;
    struct approvals *approvals;
    struct agent_definition agent;
    struct agent_toolbox box;
    struct agent_tool tools[8];
    struct agent_loop_events on;
    struct agent_loop loop;
    struct agent_loop_end end;
    struct models_call call;
    atomic_bool is_gone;

    pthread_mutex_t lock;
    const char *answers[MAX_ANSWERS];
    int statuses[MAX_ANSWERS];
    char *requests[MAX_ANSWERS];
    size_t n_answers, n_requests;

    struct seen_step steps[MAX_STEPS_SEEN];
    size_t n_steps;
    char thoughts[4000], blocks[8000];
    struct buf said;
    int step_fails_at; /* -1: never */
};

/* ---- the provider ---- */

static inline bool answer_by_script(struct models_rig *m, struct http_exchange *exchange)
{
    struct loop_rig *x = m->arg;
    size_t at;

    pthread_mutex_lock(&x->lock);
    at = x->n_requests;
    if (at < MAX_ANSWERS) {
        x->requests[at] = strndup(exchange->request.body.p, exchange->request.body.n);
        x->n_requests++;
    }
    pthread_mutex_unlock(&x->lock);
    if (at >= x->n_answers) {
        exchange->response.status = 500;
        buf_add_str(&exchange->response.body, "{\"error\":{\"message\":\"the script has ended\"}}");
    } else {
        if (x->statuses[at])
            exchange->response.status = x->statuses[at];
        buf_add_str(&exchange->response.body, x->answers[at]);
    }
    http_exchange_send(exchange);
    return true;
}

static inline void script_status(struct loop_rig *x, int status, const char *answer)
{
    assert_true(x->n_answers < MAX_ANSWERS);
    x->statuses[x->n_answers] = status;
    x->answers[x->n_answers++] = answer;
}

static inline void script(struct loop_rig *x, const char *answer)
{
    script_status(x, 0, answer);
}

static inline struct json_value request_of(struct loop_rig *x, size_t at)
{
    struct json_value v = { 0 };
    struct err e = { 0 };

    assert_true(at < x->n_requests);
    must(json_parse(x->m.f.a, slice_of(x->requests[at]), &v, &e), &e);
    return v;
}

static inline struct json_value item_of(struct json_value list, size_t at)
{
    struct json_value item = { 0 };
    size_t i = 0;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item); i++)
        if (i == at)
            return item;
    fail_msg("no item %zu", at);
    return item;
}

static inline struct json_value messages_of(struct loop_rig *x, size_t at)
{
    return json_get(request_of(x, at), "messages");
}

/* The content of message `at` of request `request`, a text. */
static inline const char *content_of(struct loop_rig *x, size_t request, size_t at)
{
    return json_cstr(json_get(item_of(messages_of(x, request), at), "content"));
}

/* ---- tools ---- */

static inline int give_text(const struct builtin_call *c, struct mcp_result *ret, const char *text)
{
    struct json_value content = { 0 };
    struct err e = { 0 };

    must(json_parse(c->call->arena,
                    slice_of(arena_printf(c->call->arena, "[{\"type\":\"text\",\"text\":\"%s\"}]", text)), &content,
                    &e),
         &e);
    *ret = (struct mcp_result){ .content = content };
    return 0;
}

static inline void add_tool(struct loop_rig *x, const struct builtin_tool *tool)
{
    struct agent_tool *to = &x->tools[x->box.n];
    struct err e = { 0 };

    assert_true(x->box.n < ARRAY_SIZE(x->tools));
    *to = (struct agent_tool){ .name = tool->name,
                               .tool = tool->name,
                               .description = tool->description,
                               .is_read_only = tool->is_read_only,
                               .needs_approval = tool->needs_approval,
                               .builtin = tool };
    must(json_parse(x->m.f.a, slice_of(tool->input_schema), &to->schema, &e), &e);
    x->box.items = x->tools;
    x->box.n++;
}

/* The tools of servers are not a part of these tests. */
int loop_server_call(const struct agent_loop *l, const struct agent_tool *tool, struct json_value arguments,
                     const struct net_wait *wait, struct arena *a, struct mcp_result *ret, struct err *e)
{
    return err_set(e, -ENOENT, "SERVER_NOT_FOUND", "There is no server %s.", tool->server);
}

int toolbox_add_servers(struct toolbox_filling *f, struct err *e)
{
    return 0;
}

/* ---- events ---- */

static inline int see_step(void *arg, const struct agent_step *step, struct err *e)
{
    struct loop_rig *x = arg;
    struct seen_step *to = &x->steps[x->n_steps];

    if (x->step_fails_at == (int)x->n_steps)
        return err_set(e, -EIO, "STORE_FAILED", "The step cannot be stored.");
    assert_true(x->n_steps < MAX_STEPS_SEEN);
    x->n_steps++;
    *to = (struct seen_step){ .role = step->role, .call = step->call, .is_error = step->is_error };
    snprintf(to->name, sizeof(to->name), "%s", step->tool_name ? step->tool_name : "");
    if (step->message->n_blocks > 0)
        snprintf(to->text, sizeof(to->text), "%s", step->message->blocks[0].text);
    return 0;
}

static inline void see_thought(void *arg, const char *thought)
{
    struct loop_rig *x = arg;
    size_t n = strlen(x->thoughts);

    snprintf(x->thoughts + n, sizeof(x->thoughts) - n, "%s|", thought);
}

static inline void see_text(void *arg, struct slice delta)
{
    buf_add_slice(&((struct loop_rig *)arg)->said, delta);
}

static inline void see_block(void *arg, const char *data_type, struct json_value data)
{
    struct loop_rig *x = arg;
    size_t n = strlen(x->blocks);

    snprintf(x->blocks + n, sizeof(x->blocks) - n, "%s %s\n", data_type, json_to_str(x->m.f.a, data));
}

/* ---- the turn ---- */

static inline void loop_rig_open(struct loop_rig *x)
{
    struct err e = { 0 };

    pthread_mutex_init(&x->lock, NULL);
    buf_init(&x->said, MIB(1));
    x->step_fails_at = -1;
    models_open(&x->m);
    x->m.arg = x;
    x->m.answer = answer_by_script;
    allow(&x->m, PERM_LLM_CHAT);
    must(turn_pool_start(&(struct turn_pool_config){ .on_thread_end = NULL }, &x->pool, &e), &e);
    must(approvals_open(
             &(struct approvals_config){ .store = x->m.f.store, .settings = x->m.settings, .identity = x->m.f.id },
             &x->approvals, &e),
         &e);
    x->agent = (struct agent_definition){
        .name = "tester", .kind = "model", .timeout_s = 60, .approval = "never", .max_steps = 20
    };
    x->on =
        (struct agent_loop_events){ .on_step = see_step, .on_thought = see_thought, .on_block = see_block, .arg = x };
    x->call = call_of(&x->m);
    x->call.is_gone = &x->is_gone;
    x->loop = (struct agent_loop){ .call = &x->call,
                                   .agent = &x->agent,
                                   .toolbox = &x->box,
                                   .approvals = x->approvals,
                                   .calls = turn_pool_calls(x->pool),
                                   .session_id = "s1",
                                   .on = &x->on };
}

static inline void loop_rig_close(struct loop_rig *x)
{
    turn_pool_stop(x->pool);
    approvals_close(x->approvals);
    models_close(&x->m);
    buf_clear(&x->said);
    for (size_t i = 0; i < x->n_requests; i++)
        free(x->requests[i]);
    pthread_mutex_destroy(&x->lock);
}

static inline void run(struct loop_rig *x)
{
    static const struct llm_block blocks[] = { { LLM_BLOCK_TEXT, .text = "Be exact." },
                                               { LLM_BLOCK_TEXT, .text = "Go." } };
    static const struct llm_message messages[] = {
        { .role = LLM_SYSTEM, .blocks = &blocks[0], .n_blocks = 1 },
        { .role = LLM_USER, .blocks = &blocks[1], .n_blocks = 1 },
    };
    struct err e = { 0 };

    if (!x->loop.messages) {
        x->loop.messages = messages;
        x->loop.n_messages = ARRAY_SIZE(messages);
    }
    must(agent_loop_run(&x->loop, &x->end, &e), &e);
}

/* The end's name; with the error's code when there is one. */
static inline const char *ended(struct loop_rig *x)
{
    return x->end.why == AGENT_FAILED ? x->end.error.code : agent_end_name(x->end.why);
}
