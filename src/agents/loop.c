/* One turn: model, tools, model, until an answer or a limit. */
#include "agents/loop_private.h"

#include "agents/approvals.h"
#include "agents/message.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "models/provider_choice.h"

#include <string.h>

#define CLOSING_NOTE                                                                                                   \
    "No further tool can be used in this turn. Answer now with what you know, and say what is left undone."
#define BROKEN_NOTE                                                                                                    \
    "Your call of tools cannot be read: it is unfinished or no JSON. Repeat it as one whole JSON object, shorter if "  \
    "needed."

const char *agent_end_name(enum agent_end_why why)
{
    static const char *const names[N_AGENT_ENDS] = { [AGENT_ANSWERED] = "answered",
                                                     [AGENT_MAX_STEPS] = "max_steps",
                                                     [AGENT_REPEATED_CALL] = "repeated_call",
                                                     [AGENT_TOKEN_BUDGET] = "token_budget",
                                                     [AGENT_TIMEOUT] = "timeout",
                                                     [AGENT_CANCELLED] = "cancelled",
                                                     [AGENT_FAILED] = "failed" };

    return names[why];
}

/* ---- for all files of the loop ---- */

void turn_push(struct turn *t, const struct llm_message *m)
{
    if (t->n_messages == t->cap) {
        struct llm_message *larger = arena_array(t->arena, 2 * t->cap + 16, sizeof(*larger));

        if (t->n_messages > 0)
            memcpy(larger, t->messages, t->n_messages * sizeof(*larger));
        t->messages = larger;
        t->cap = 2 * t->cap + 16;
    }
    t->messages[t->n_messages++] = *m;
}

void turn_think(const struct turn *t, const char *fmt, ...)
{
    va_list ap;

    if (!t->l->on->on_thought)
        return;
    va_start(ap, fmt);
    t->l->on->on_thought(t->l->on->arg, arena_vprintf(t->arena, fmt, ap));
    va_end(ap);
}

int turn_step(struct turn *t, const struct agent_step *step)
{
    return t->l->on->on_step ? t->l->on->on_step(t->l->on->arg, step, &t->end->error) : 0;
}

void turn_move_deadline(struct turn *t)
{
    const char *of = t->l->session_id ? t->l->session_id : t->l->task_uuid;
    int64_t waited_ms;

    if (!t->l->approvals || !of)
        return;
    waited_ms = approvals_waited_ms(t->l->approvals, of);
    t->wait.deadline_ms += waited_ms - t->waited_ms;
    t->waited_ms = waited_ms;
}

/* ---- one answer ---- */

/* Calls of one conversation need different ids, but some models count them anew in each answer. */
static void rename_calls(struct turn *t, struct llm_message *m)
{
    struct llm_tool_call *calls = arena_array(t->arena, m->n_tool_calls + 1, sizeof(*calls));

    for (size_t i = 0; i < m->n_tool_calls; i++) {
        calls[i] = m->tool_calls[i];
        calls[i].id = loop_ids_take(&t->ids, t->arena, calls[i].id);
    }
    m->tool_calls = calls;
}

static int take_answer(struct turn *t, struct loop_answer *answer)
{
    struct agent_step step = { .role = LLM_ASSISTANT,
                               .message = &answer->message,
                               .took_ms = answer->took_ms,
                               .provider = answer->provider,
                               .model = answer->model,
                               .usage = answer->usage,
                               .why = answer->why };

    if (answer->message.n_tool_calls > 0)
        rename_calls(t, &answer->message);
    t->end->n_steps++;
    t->end->provider = answer->provider;
    t->end->model = answer->model;
    t->end->text = agent_message_text(t->arena, &answer->message);
    if (answer->message.reasoning)
        turn_think(t, "%s", answer->message.reasoning);
    turn_push(t, &answer->message);
    return turn_step(t, &step);
}

/* ---- ends ---- */

static void end(struct turn *t, enum agent_end_why why)
{
    t->end->why = why;
}

static void end_by(struct turn *t, int r)
{
    const struct agent_loop *l = t->l;
    bool is_gone = (l->call->is_gone && atomic_load(l->call->is_gone)) ||
                   (l->call->models->is_leaving && atomic_load(l->call->models->is_leaving));

    if (r == -EDQUOT)
        end(t, AGENT_TOKEN_BUDGET);
    else if (is_gone || r == -ECANCELED)
        end(t, AGENT_CANCELLED);
    else if (r == -ETIMEDOUT && clock_mono_ms() >= t->wait.deadline_ms) {
        end(t, AGENT_TIMEOUT);
        err_set(&t->end->error, r, "AGENT_TIMEOUT", "The turn took longer than the %g s that the agent may take.",
                l->agent->timeout_s);
    } else
        end(t, AGENT_FAILED);
}

/* True when the turn was cancelled or its time is over. */
static bool is_over(struct turn *t)
{
    int64_t left = net_wait_left(&t->wait, &t->end->error);

    if (left >= 0)
        return false;
    end_by(t, (int)left);
    return true;
}

/* An empty answer without a call, cut or held back by the provider, is no answer. */
static int check_empty(const struct loop_answer *answer, const char *text, struct err *e)
{
    if (*text || answer->why == LLM_FINISH_STOP || answer->why == LLM_FINISH_TOOLS)
        return 0;
    if (answer->why == LLM_FINISH_LENGTH)
        return err_set(e, -EIO, "LLM_ERROR", "The model used up the tokens of its answer before it said anything.");
    return err_set(e, -EIO, "LLM_ERROR", "The provider's filter withheld the model's answer.");
}

/* The model may answer once more, without tools. Its answer is kept; a failure leaves the turn's end as it is. */
static void close_turn(struct turn *t, enum agent_end_why why)
{
    const struct loop_next closing = { .is_closing = true, .note = CLOSING_NOTE };
    struct loop_answer answer;
    struct err e;
    int r;

    err_init(&e);
    end(t, why);
    t->end->text = ""; /* what the model said before its calls is no answer */
    r = loop_request(t, &closing, &answer, &e);
    if (r == 0) {
        answer.message.n_tool_calls = 0;
        answer.message.order = NULL;
        answer.message.n_order = 0;
        if (take_answer(t, &answer) < 0)
            end(t, AGENT_FAILED);
        return;
    }
    if (r == -ECANCELED || r == -ETIMEDOUT) {
        t->end->error = e;
        end_by(t, r);
    }
}

/* The calls of an answer that are not run get a result all the same: histories without results are refused. */
static void refuse_calls(struct turn *t, const struct loop_answer *answer, const char *why, enum agent_end_why how)
{
    end(t, loop_calls(t, answer, why) < 0 ? AGENT_FAILED : how);
}

static bool is_budget_used(const struct turn *t)
{
    int64_t most = t->l->agent->max_tokens_per_turn;

    return most > 0 && t->end->usage.prompt_tokens + t->end->usage.completion_tokens >= most;
}

/* ---- the loop ---- */

enum next { GO_ON, IS_OVER };

static enum next after_calls(struct turn *t)
{
    if (is_over(t))
        return IS_OVER;
    if (t->end->n_steps < t->l->agent->max_steps)
        return GO_ON;
    close_turn(t, AGENT_MAX_STEPS);
    return IS_OVER;
}

static enum next obey(struct turn *t, const struct loop_answer *answer)
{
    if (is_budget_used(t)) {
        refuse_calls(t, answer, "The call was not made: the turn has used its tokens.", AGENT_TOKEN_BUDGET);
        return IS_OVER;
    }
    if (loop_calls_repeat(t, &answer->message)) {
        refuse_calls(t, answer, "The call was not made: it was made before, with the same arguments and result.",
                     AGENT_REPEATED_CALL);
        if (t->end->why == AGENT_REPEATED_CALL && !is_over(t))
            close_turn(t, AGENT_REPEATED_CALL);
        return IS_OVER;
    }
    if (loop_calls(t, answer, NULL) < 0) {
        end(t, AGENT_FAILED);
        return IS_OVER;
    }
    return after_calls(t);
}

static void complain(struct turn *t)
{
    const struct llm_message note = agent_message_of(t->arena, LLM_USER, BROKEN_NOTE);

    turn_push(t, &note);
}

static enum next step(struct turn *t)
{
    const struct loop_next what = { .is_closing = false };
    struct loop_answer answer;
    int r = loop_request(t, &what, &answer, &t->end->error);

    if (r < 0) {
        end_by(t, r);
        return IS_OVER;
    }
    if (take_answer(t, &answer) < 0) {
        end(t, AGENT_FAILED);
        return IS_OVER;
    }
    if (answer.message.n_tool_calls > 0)
        return obey(t, &answer);
    if (answer.is_broken) {
        complain(t);
        return after_calls(t);
    }
    end(t, check_empty(&answer, t->end->text, &t->end->error) < 0 ? AGENT_FAILED : AGENT_ANSWERED);
    return IS_OVER;
}

static void count(const struct turn *t, int64_t began_ms)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *labels = arena_printf(a, "end=\"%s\"", agent_end_name(t->end->why));

    metric_add(metric_counter("hearth_agent_turns_total", "Turns of model agents, by their end", labels), 1);
    metric_add(metric_counter("hearth_agent_steps_total", "Answers of models in turns of agents", ""), t->end->n_steps);
    metric_observe(metric_histogram("hearth_agent_turn_seconds", "Time from a turn's begin to its end", ""),
                   (double)(clock_mono_ms() - began_ms) / 1000);
}

static void read_habits(struct turn *t)
{
    const struct agent_definition *agent = t->l->agent;
    struct provider_choice choice = { 0 };

    if (provider_choose(t->l->call, PROVIDER_CHAT, agent->provider, agent->model, &choice, NULL) < 0)
        return; /* the first request says why */
    t->provider = choice.provider;
    t->model = choice.model;
    loop_habits_read(t->l->call, &t->provider, &t->model, &t->habits);
}

static void begin(struct turn *t, const struct agent_loop *l, struct agent_loop_end *ret)
{
    const struct models_call *call = l->call;

    *t = (struct turn){ .l = l, .arena = call->arena, .end = ret };
    t->wait = net_wait_of((int64_t)(l->agent->timeout_s * 1000), call->is_gone, call->models->is_leaving);
    t->wait.holder = call->holder;
    if (l->approvals && (l->session_id || l->task_uuid))
        t->waited_ms = approvals_waited_ms(l->approvals, l->session_id ? l->session_id : l->task_uuid);
    for (size_t i = 0; i < l->n_messages; i++) {
        turn_push(t, &l->messages[i]);
        for (size_t k = 0; k < l->messages[i].n_tool_calls; k++)
            loop_ids_note(&t->ids, t->arena, l->messages[i].tool_calls[k].id);
    }
    read_habits(t);
}

int agent_loop_run(const struct agent_loop *l, struct agent_loop_end *ret, struct err *e)
{
    int64_t began_ms = clock_mono_ms();
    struct turn t;

    if (l->n_messages == 0)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "A turn needs at least one message.");
    if (l->agent->max_steps < 1)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "`max_steps` must be at least 1.");
    ret->text = "";
    ret->usage = (struct llm_usage){ 0 };
    ret->n_steps = ret->n_calls = 0;
    ret->provider = ret->model = NULL;
    err_init(&ret->error);
    begin(&t, l, ret);
    while (step(&t) == GO_ON)
        ;
    count(&t, began_ms);
    return 0;
}
