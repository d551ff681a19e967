#include "agents/context_private.h"

#include "agents/message.h"
#include "base/json_write.h"
#include "base/limits.h"

#include <string.h>

enum {
    BYTES_A_TOKEN = 4,
    LEAST_ANSWER = 128,
    MOST_ANSWER = 8192,
    KEEP_PERCENT = 60 /* of the budget, once turns must leave: not every turn is to make a summary */
};

static const char unknown_result[] =
    "The result is not known: the turn was interrupted while the tool worked. It may have done its work.";

/* ---- reading the history ---- */

struct list {
    struct llm_message *items;
    size_t n, room;
};

static void add(struct arena *a, struct list *list, struct llm_message message)
{
    if (list->n == list->room) {
        struct llm_message *more = arena_array(a, list->room = MAX(2 * list->room, (size_t)16), sizeof(*more));

        if (list->n > 0)
            memcpy(more, list->items, list->n * sizeof(*more));
        list->items = more;
    }
    list->items[list->n++] = message;
}

/* A turn that ended before the model said anything has nothing to remember. */
static bool is_remembered(const struct turn_row *turn)
{
    return turn->n_steps > 0 && strcmp(turn->state, TURN_RUNNING) != 0;
}

/* The message's calls in the turn's messages that follow it; NULL: the turn was interrupted before the result. */
static const struct llm_message *find_result(const struct list *turn, size_t from, const char *id)
{
    for (size_t i = from; i < turn->n && turn->items[i].role == LLM_TOOL; i++)
        if (turn->items[i].tool_call_id && strcmp(turn->items[i].tool_call_id, id) == 0)
            return &turn->items[i];
    return NULL;
}

static void add_results(struct arena *a, const struct list *turn, size_t at, struct list *list)
{
    const struct llm_message *m = &turn->items[at];

    for (size_t i = 0; i < m->n_tool_calls; i++) {
        const struct llm_message *found = find_result(turn, at + 1, m->tool_calls[i].id);
        struct llm_message missing = agent_message_of(a, LLM_TOOL, unknown_result);

        missing.tool_call_id = m->tool_calls[i].id;
        missing.name = m->tool_calls[i].name;
        missing.is_error = true;
        add(a, list, found ? *found : missing);
    }
}

/* Results were stored as the tools ended; here they follow in the order of their calls, each exactly once. */
static void add_in_order(struct arena *a, const struct list *turn, struct list *list)
{
    for (size_t i = 0; i < turn->n; i++) {
        if (turn->items[i].role == LLM_TOOL)
            continue;
        add(a, list, turn->items[i]);
        add_results(a, turn, i, list);
    }
}

static int add_turn(struct context *c, int64_t turn_id, struct list *list, struct err *e)
{
    struct arena *a = c->call->arena;
    struct message_row *rows = NULL;
    struct list turn = { 0 };
    size_t n = 0;
    int r = store_messages_of_turn(c->call->models->store, a, turn_id, &rows, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        struct llm_message message = { 0 };

        r = agent_message_read(a, rows[i].message, &message, e);
        add(a, &turn, message);
    }
    if (r == 0)
        add_in_order(a, &turn, list);
    return r;
}

/* The newest turns after the summary, oldest first. */
static int list_turns(struct context *c, struct turn_row **ret, size_t *ret_n, struct err *e)
{
    const struct turns_list_request request = { .thread_id = c->thread_id,
                                                .task_uuid = c->task_uuid,
                                                .after = c->summary.through_turn,
                                                .before = c->turn_id,
                                                .limit = LIMIT_CONTEXT_TURNS,
                                                .newest_first = true };

    return store_turns_list(c->call->models->store, c->call->arena, &request, ret, ret_n, e);
}

static int add_history(struct context *c, struct list *list, struct err *e)
{
    struct turn_row *turns = NULL;
    size_t n = 0;
    int64_t *ids;
    int r = list_turns(c, &turns, &n, e);

    if (r < 0)
        return r;
    c->turn_ids = ids = arena_array(c->call->arena, n + 1, sizeof(*ids));
    c->is_full = n == LIMIT_CONTEXT_TURNS;
    for (size_t i = n; r == 0 && i-- > 0;) {
        if (!is_remembered(&turns[i]))
            continue;
        r = add_turn(c, turns[i].id, list, e);
        ids[c->n_turns++] = turns[i].id;
    }
    return r;
}

/* ---- the beginning ---- */

static struct llm_message system_message(const struct context *c)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    if (c->instructions)
        buf_add_str(&out, c->instructions);
    if (c->summary.text)
        buf_printf(&out, "%sSummary of the earlier part of this conversation:\n%s", out.n > 0 ? "\n\n" : "",
                   c->summary.text);
    return agent_message_of(c->call->arena, LLM_SYSTEM, buf_to_arena(&out, c->call->arena));
}

int context_begin(struct context *c, const struct llm_message **ret, size_t *ret_n, struct err *e)
{
    struct arena *a = c->call->arena;
    struct list list = { 0 };
    int r = c->task_uuid ? 0 : store_summaries_get(c->call->models->store, a, c->thread_id, &c->summary, e);

    if (r == 0 && (c->instructions || c->summary.text))
        add(a, &list, system_message(c));
    if (r == 0)
        r = add_history(c, &list, e);
    if (r < 0)
        return r;
    add(a, &list, agent_message_of(a, LLM_USER, c->message));
    *ret = list.items;
    *ret_n = list.n;
    return 0;
}

/* ---- fitting ---- */

static int64_t toolbox_tokens(const struct agent_toolbox *box)
{
    struct buf out;
    size_t n = 0;

    for (size_t i = 0; box && i < box->n; i++) {
        buf_init(&out, LIMIT_REPLY);
        json_print(&out, box->items[i].schema);
        n += out.n + strlen(box->items[i].name) + (box->items[i].description ? strlen(box->items[i].description) : 0);
        buf_clear(&out);
    }
    return (int64_t)(n / BYTES_A_TOKEN);
}

/* What the messages may have: the window without the tools and without room for the answer. */
static int64_t budget_of(const struct context *c)
{
    int64_t answer = MIN(MAX(c->window_tokens / 8, (int64_t)LEAST_ANSWER), (int64_t)MOST_ANSWER);

    return MAX(c->window_tokens - c->toolbox_tokens - answer, c->window_tokens / 4);
}

static void note_cuts(struct context *c, const struct context_cuts *cuts)
{
    c->n_shortened += cuts->n_shortened;
    c->n_bytes_cut += cuts->n_bytes;
}

/* The summary takes the place of the turns that leave; a summary that failed is made with the next turn. */
static void summarise(struct context *c, const struct context_list *list, size_t n_leaving, int64_t budget)
{
    size_t from = context_turn_at(list, 0), to = context_turn_at(list, n_leaving);
    struct summary_row row = { .through_turn = c->turn_ids[c->n_left + n_leaving - 1],
                               .n_turns = c->summary.n_turns + (int64_t)n_leaving };
    struct err e;
    int r;

    err_init(&e);
    if (c->report)
        c->report(c->arg, "Summarises the oldest part of the conversation.");
    r = context_summarise(c, list->items + from, to - from, budget * 3 / 4, &row.text, &e);
    if (r == 0 && !c->task_uuid) /* the kept one stands for all turns of the thread */
        r = store_summaries_put(c->call->models->store, c->thread_id, &row, &e);
    if (r == 0)
        c->summary = row;
    else
        c->summary_failed = arena_strdup(c->call->arena, e.code);
}

static void renew_system(struct context *c, struct context_list *list)
{
    struct llm_message first;

    if (!c->instructions && !c->summary.text)
        return;
    first = system_message(c);
    if (list->n > 0 && list->items[0].role == LLM_SYSTEM) {
        list->items[0] = first;
        return;
    }
    memmove(list->items + 1, list->items, list->n * sizeof(*list->items)); /* copy_list() left room */
    list->items[0] = first;
    list->n++;
}

static void let_leave(struct context *c, struct context_list *list, size_t n_leaving, int64_t budget)
{
    if (n_leaving == 0)
        return;
    summarise(c, list, n_leaving, budget);
    context_drop(list, n_leaving);
    c->n_left += n_leaving;
    renew_system(c, list);
}

static struct context_list copy_list(const struct context *c, const struct agent_fit *fit)
{
    struct context_list list = { .n = fit->n, .n_turns = c->n_turns - c->n_left };

    list.items = arena_array(fit->arena, fit->n + 2, sizeof(*list.items));
    memcpy(list.items, fit->messages, fit->n * sizeof(*list.items));
    return list;
}

static void cut(struct context *c, struct context_list *list, int64_t budget)
{
    struct arena *a = c->call->arena;
    struct context_cuts cuts = { 0 };
    size_t n_leaving;

    context_shorten(a, list, 0, context_turn_at(list, list->n_turns), CONTEXT_RESULT_BYTES, budget, &cuts);
    n_leaving =
        context_tokens(list->items, list->n) > budget ? context_count_leaving(list, budget * KEEP_PERCENT / 100) : 0;
    if (c->is_full)
        n_leaving = MAX(n_leaving, list->n_turns / 2);
    c->is_full = false;
    let_leave(c, list, n_leaving, budget);
    context_shorten(a, list, 0, list->n, CONTEXT_RESULT_BYTES, budget, &cuts);
    context_shorten(a, list, 0, list->n, CONTEXT_RESULT_BYTES_LEAST, budget, &cuts);
    note_cuts(c, &cuts);
}

static bool learn(struct context *c, const struct agent_fit *fit)
{
    int64_t n_sent = context_tokens(fit->messages, fit->n) + c->toolbox_tokens;
    int64_t window = context_window_of_refusal(fit->refusal, n_sent);

    if (window == 0 || window >= c->window_tokens)
        return false;
    c->window_tokens = window;
    context_window_learn(c->call, fit->provider, fit->model, window);
    return true;
}

int context_fit(struct context *c, struct agent_fit *fit, struct err *e)
{
    struct context_list list;
    int64_t budget, n_before = context_tokens(fit->messages, fit->n);

    if (c->window_tokens == 0) {
        c->window_tokens = context_window(c->call, fit->provider, fit->model);
        c->toolbox_tokens = toolbox_tokens(fit->toolbox);
    }
    if (fit->refusal && !learn(c, fit))
        return 0;
    budget = budget_of(c);
    if (n_before <= budget && !c->is_full)
        return 0;
    list = copy_list(c, fit);
    cut(c, &list, budget);
    fit->has_changed = context_tokens(list.items, list.n) < n_before || list.n < fit->n;
    fit->messages = list.items;
    fit->n = list.n;
    return 0;
}

/* ---- the record ---- */

const char *context_cut(const struct context *c)
{
    struct json_writer w;
    struct buf out;

    if (c->n_shortened == 0 && c->n_left == 0 && c->summary.n_turns == 0)
        return NULL;
    buf_init(&out, KIB(4));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_int(&w, "window_tokens", c->window_tokens);
    json_add_int(&w, "results_shortened", (int64_t)c->n_shortened);
    json_add_int(&w, "bytes_cut", c->n_bytes_cut);
    json_add_int(&w, "turns_left", (int64_t)c->n_left);
    json_add_int(&w, "turns_in_summary", c->summary.n_turns);
    if (c->summary_failed)
        json_add_string(&w, "summary_failed", c->summary_failed);
    json_end(&w);
    return buf_to_arena(&out, c->call->arena);
}
