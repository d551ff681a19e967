/* The calls of one answer: checked, allowed, run beside each other, reported. Every call gets exactly one result,
 * whatever happens. */
#include "agents/loop_private.h"

#include "agents/approvals.h"
#include "agents/builtin.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json_schema.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum call_outcome { CALL_NOT_RUN, CALL_OK, CALL_FAILED, CALL_DENIED, CALL_INVALID, CALL_UNKNOWN };

struct batch;

/* One call; used by one thread at a time. */
struct loop_call {
    struct batch *batch;
    const struct llm_tool_call *wire;
    size_t index;
    const struct agent_tool *tool; /* NULL: the model named none */
    struct arena *arena;           /* owned by the turn's arena */
    struct json_value arguments;
    struct approval *question; /* waits for a person; NULL: none */
    const char *refusal;       /* why the call is not run; NULL: it is run */
    enum call_outcome outcome; /* for the metrics */
    uint64_t hash;             /* of name and arguments */
    struct mcp_result given;
    struct loop_result result;
    int64_t began_ms, took_ms;
    bool is_reported;
};

struct batch {
    struct turn *t;
    struct loop_call *calls;
    size_t n;
    size_t base; /* the place of the first result among the turn's messages */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t *ended; /* indexes of calls that have ended, in this order */
    size_t n_ended, n_reported, n_running;
};

/* ---- before a call ---- */

static uint64_t hash_of(const struct llm_tool_call *call)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value arguments = { 0 };
    const char *text = call->arguments;

    if (json_parse(a, slice_of(text), &arguments, NULL) == 0)
        text = json_to_str(a, arguments);
    return hash_fast(slice_of(arena_printf(a, "%s\n%s", call->name, text)));
}

static const char *violations(struct arena *a, const struct err *e)
{
    struct buf out;

    buf_init(&out, KIB(16));
    for (unsigned i = 0; i < MIN(e->n_fields, (unsigned)ERR_MAX_FIELDS); i++)
        buf_printf(&out, "%s`%s` %s", i ? "; " : "", e->fields[i].field, e->fields[i].rule);
    if (out.n == 0)
        buf_add_str(&out, e->text);
    return buf_to_arena(&out, a);
}

static const char *unknown_tool(const struct batch *b, const struct loop_call *c)
{
    const char *near = b->t->l->toolbox ? agent_toolbox_suggest(b->t->l->toolbox, c->wire->name, c->arena) : NULL;

    return near ? arena_printf(c->arena, "There is no tool named \"%.100s\"; the nearest is %s.", c->wire->name, near)
                : arena_printf(c->arena, "There is no tool named \"%.100s\".", c->wire->name);
}

/* An answer that reached its limit ends within its last call. */
static const char *bad_json(const struct batch *b, const struct loop_call *c, enum llm_finish why, const struct err *e)
{
    if (why == LLM_FINISH_LENGTH && c->index + 1 == b->n)
        return "The call was not made: your answer reached its limit of tokens within the arguments. Call again with "
               "shorter arguments, for example in several calls.";
    return arena_printf(c->arena, "The arguments are no JSON object: %s", e->text);
}

static const char *read_arguments(const struct batch *b, struct loop_call *c, enum llm_finish why)
{
    const char *text = c->wire->arguments;
    bool may_be_cut = why == LLM_FINISH_LENGTH && c->index + 1 == b->n;
    const struct json_schema *schema = c->tool->compiled;
    const char *twice;
    struct err e = { 0 };

    if (!*text && !may_be_cut)
        text = "{}"; /* how some models call a tool without arguments */
    if (json_parse(c->arena, slice_of(text), &c->arguments, &e) < 0)
        return bad_json(b, c, why, &e);
    if (json_type(c->arguments) != JSON_OBJECT)
        return "The arguments must be a JSON object.";
    twice = loop_repeated_name(c->arena, c->arguments);
    if (twice)
        return arena_printf(c->arena,
                            "The call was not made: an object in the arguments has the member `%.100s` twice.", twice);
    if (json_is_absent(c->tool->schema))
        return NULL;
    if (!schema && json_schema_compile(c->arena, c->tool->schema, "schema", &schema, &e) < 0)
        return arena_printf(c->arena, "The tool's own schema cannot be used: %s", violations(c->arena, &e));
    if (json_schema_apply(schema, c->arguments, "arguments", &e) < 0)
        return arena_printf(c->arena, "The arguments do not fit the tool's schema: %s.", violations(c->arena, &e));
    return NULL;
}

static void check(const struct batch *b, struct loop_call *c, enum llm_finish why)
{
    c->tool = b->t->l->toolbox ? agent_toolbox_find(b->t->l->toolbox, c->wire->name) : NULL;
    c->refusal = c->tool ? read_arguments(b, c, why) : unknown_tool(b, c);
    if (c->refusal)
        c->outcome = c->tool ? CALL_INVALID : CALL_UNKNOWN;
}

/* The call names a tool, and nothing is against it so far. */
static bool is_accepted(const struct loop_call *c)
{
    return c->tool && !c->refusal;
}

/* ---- approval ---- */

static bool needs_approval(const struct agent_loop *l, const struct agent_tool *tool)
{
    enum agent_approval policy = agent_approval_of(l->agent);

    return tool->needs_approval || policy == AGENT_APPROVAL_ALWAYS ||
           (policy == AGENT_APPROVAL_DANGEROUS && !tool->is_read_only);
}

static void deny(struct loop_call *c, const char *why)
{
    c->refusal = why;
    c->outcome = CALL_DENIED;
}

static void put_question(const struct batch *b, struct loop_call *c)
{
    const struct agent_loop *l = b->t->l;
    struct err e = { 0 };
    const struct approval_question q = {
        .kind = "tool",
        .agent = l->agent->name,
        .server = c->tool->server,
        .tool = c->tool->server ? c->tool->tool : c->tool->name,
        .session_id = l->session_id,
        .task_uuid = l->task_uuid,
        .app_id = l->app_id,
        .arguments = c->arguments,
        .is_destructive = c->tool->is_destructive,
    };

    if (!l->approvals)
        deny(c, "The call needs a person's approval, and nobody can give it here.");
    else if (approvals_put(l->approvals, &q, &c->question, &e) < 0)
        deny(c, arena_printf(c->arena, "The call needs a person's approval, which could not be requested: %s", e.text));
}

static void hear_decision(struct batch *b, struct loop_call *c)
{
    struct approval_answer answer = { .outcome = APPROVAL_UNANSWERED };
    struct err e = { 0 };
    int r = approvals_wait(b->t->l->approvals, c->question, &b->t->wait, c->arena, &answer, &e);

    c->question = NULL;
    if (r < 0)
        deny(c, arena_printf(c->arena, "The call was not made: %s", e.text));
    else if (answer.outcome == APPROVAL_UNANSWERED)
        deny(c, "Nobody answered whether this call is allowed, so it was denied. Go on without it.");
    else if (answer.outcome == APPROVAL_DENIED)
        deny(c, "A person denied this call. Do not repeat it; go on without it, or say what cannot be done.");
}

/* All questions are put before the first answer is awaited, so a person sees them together. */
static void allow(struct batch *b)
{
    const struct agent_loop *l = b->t->l;
    bool waits = false;

    for (size_t i = 0; i < b->n; i++)
        if (is_accepted(&b->calls[i]) && needs_approval(l, b->calls[i].tool))
            put_question(b, &b->calls[i]);
    for (size_t i = 0; i < b->n; i++) {
        struct loop_call *c = &b->calls[i];

        if (!is_accepted(c) || !c->question)
            continue;
        if (!waits && l->on->on_wait && approval_is_open(c->question)) {
            waits = true;
            l->on->on_wait(l->on->arg, arena_printf(c->arena, "waits for an approval of %s", c->tool->name));
        }
        hear_decision(b, c);
    }
    if (waits)
        l->on->on_wait(l->on->arg, NULL);
}

/* ---- the call itself ---- */

static int call_builtin(const struct batch *b, struct loop_call *c, struct err *e)
{
    const struct agent_loop *l = b->t->l;
    struct models_call own = *l->call;
    const struct builtin_call call = {
        .call = &own,
        .agent = l->agent,
        .approvals = l->approvals,
        .session_id = l->session_id,
        .thread_dir = l->thread_dir,
        .task_uuid = l->task_uuid,
        .app_id = l->app_id,
        .wait = &b->t->wait,
        .arguments = c->arguments,
        .services = l->services,
        .n_triggers = &b->t->n_triggers,
    };

    own.arena = c->arena;
    return c->tool->builtin->run(&call, &c->given, e);
}

/* Any thread. A turn may have been cancelled after a person had allowed the call. */
static void run_call(struct loop_call *c)
{
    struct err e;
    int r;

    err_init(&e);
    c->began_ms = clock_mono_ms();
    if (net_wait_left(&c->batch->t->wait, &e) < 0) {
        c->refusal = arena_printf(c->arena, "The call was not made: %s", e.text);
        return;
    }
    r = c->tool->server
            ? loop_server_call(c->batch->t->l, c->tool, c->arguments, &c->batch->t->wait, c->arena, &c->given, &e)
            : call_builtin(c->batch, c, &e);
    c->took_ms = clock_mono_ms() - c->began_ms;
    if (r < 0)
        c->refusal = arena_printf(c->arena, "%s: %s", e.code, e.text);
    else
        loop_result_of(c->arena, &c->given, &c->result);
    c->outcome = r < 0 || c->result.is_error ? CALL_FAILED : CALL_OK;
}

static void note_end(struct batch *b, const struct loop_call *c)
{
    pthread_mutex_lock(&b->lock);
    b->ended[b->n_ended++] = c->index;
    b->n_running--;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void run_on_pool(void *arg)
{
    struct loop_call *c = arg;
    struct batch *b = c->batch;

    run_call(c);
    note_end(b, c);
}

/* ---- after a call ---- */

static struct llm_message *message_of(struct batch *b, const struct loop_call *c)
{
    struct llm_message *m = &b->t->messages[b->base + c->index];

    *m = (struct llm_message){ .role = LLM_TOOL,
                               .blocks = c->result.blocks,
                               .n_blocks = c->result.n_blocks,
                               .tool_call_id = c->wire->id,
                               .is_error = c->result.is_error };
    return m;
}

static void count(const struct loop_call *c)
{
    static const char *const labels[] = {
        [CALL_NOT_RUN] = "outcome=\"not_run\"", [CALL_OK] = "outcome=\"ok\"",
        [CALL_FAILED] = "outcome=\"failed\"",   [CALL_DENIED] = "outcome=\"denied\"",
        [CALL_INVALID] = "outcome=\"invalid\"", [CALL_UNKNOWN] = "outcome=\"unknown\""
    };

    metric_add(metric_counter("hearth_agent_tool_calls_total", "Calls of tools by model agents", labels[c->outcome]),
               1);
}

static int report(struct batch *b, struct loop_call *c)
{
    struct agent_step step = { .role = LLM_TOOL,
                               .call = c->index,
                               .tool = c->tool,
                               .tool_name = c->wire->name,
                               .arguments = c->wire->arguments,
                               .took_ms = c->took_ms };
    int r;

    if (c->refusal)
        loop_result_text(c->arena, c->refusal, &c->result);
    c->is_reported = true;
    step.message = message_of(b, c);
    step.is_error = c->result.is_error;
    step.is_cut = c->result.is_cut;
    count(c);
    b->t->end->n_calls++;
    r = turn_step(b->t, &step);
    if (r == 0)
        loop_result_show(b->t, &step, &c->given);
    return r;
}

/* Reports the calls that have ended since. The caller holds the lock. */
static int report_ended(struct batch *b, int r)
{
    while (b->n_reported < b->n_ended) {
        struct loop_call *c = &b->calls[b->ended[b->n_reported++]];
        int why;

        pthread_mutex_unlock(&b->lock);
        why = report(b, c);
        pthread_mutex_lock(&b->lock);
        r = r < 0 ? r : why;
    }
    return r;
}

/* ---- all calls ---- */

static void begin(struct batch *b, struct loop_call *c)
{
    turn_think(b->t, "%s is called.", c->tool->title ? c->tool->title : c->tool->name);
    pthread_mutex_lock(&b->lock);
    b->n_running++;
    pthread_mutex_unlock(&b->lock);
    if (!b->t->l->calls || pool_submit(b->t->l->calls, run_on_pool, c) < 0)
        run_on_pool(c);
}

static bool is_runnable(const struct loop_call *c)
{
    return is_accepted(c) && !c->is_reported;
}

static size_t count_runnable(const struct batch *b, struct loop_call **ret_first)
{
    size_t n = 0;

    for (size_t i = b->n; i-- > 0;)
        if (is_runnable(&b->calls[i])) {
            *ret_first = &b->calls[i];
            n++;
        }
    return n;
}

/* A call that is alone runs on the turn's own thread. */
static int run_one(struct batch *b, struct loop_call *c)
{
    turn_think(b->t, "%s is called.", c->tool->title ? c->tool->title : c->tool->name);
    run_call(c);
    return report(b, c);
}

/* When a step cannot be stored no further call is begun; those that run are awaited. */
static int run_many(struct batch *b)
{
    size_t next = 0;
    int r = 0;

    pthread_mutex_lock(&b->lock);
    for (;;) {
        r = report_ended(b, r);
        while (next < b->n && (!is_runnable(&b->calls[next]) || r < 0))
            next++;
        if (next < b->n && b->n_running < LIMIT_PARALLEL_CALLS) {
            struct loop_call *c = &b->calls[next++];

            pthread_mutex_unlock(&b->lock);
            begin(b, c);
            pthread_mutex_lock(&b->lock);
        } else if (b->n_running > 0 && b->n_reported == b->n_ended) {
            pthread_cond_wait(&b->changed, &b->lock);
        } else if (b->n_running == 0 && b->n_reported == b->n_ended) {
            break;
        }
    }
    pthread_mutex_unlock(&b->lock);
    return r;
}

/* Questions to a person come first, one after the other, and on the turn's thread, which says that it waits. */
static int run_questions(struct batch *b)
{
    const struct agent_loop_events *on = b->t->l->on;
    int r = 0;

    for (size_t i = 0; r == 0 && i < b->n; i++) {
        struct loop_call *c = &b->calls[i];

        if (!is_accepted(c) || !c->tool->builtin || !c->tool->builtin->waits_for_person)
            continue;
        if (on->on_wait)
            on->on_wait(on->arg, arena_printf(c->arena, "waits for an answer to %s", c->tool->name));
        r = run_one(b, c);
        if (on->on_wait)
            on->on_wait(on->arg, NULL);
    }
    turn_move_deadline(b->t);
    return r;
}

static int run_all(struct batch *b)
{
    struct loop_call *first = NULL;
    int r = run_questions(b);
    size_t n = count_runnable(b, &first);

    if (r < 0)
        n = 0;
    if (n == 1)
        r = run_one(b, first);
    else if (n > 1)
        r = run_many(b);
    for (size_t i = 0; i < b->n; i++) {
        struct loop_call *c = &b->calls[i];
        int why;

        if (c->is_reported)
            continue;
        if (!c->refusal)
            c->refusal = "The call was not made, because the turn ended.";
        why = report(b, c);
        r = r < 0 ? r : why;
    }
    return r;
}

static void free_call_arena(void *arena)
{
    arena_free(arena);
}

static void prepare(struct batch *b, const struct loop_answer *answer, const char *refusal)
{
    for (size_t i = 0; i < b->n; i++) {
        struct loop_call *c = &b->calls[i];

        *c = (struct loop_call){ .batch = b, .wire = &answer->message.tool_calls[i], .index = i, .arena = arena_new() };
        arena_defer(b->t->arena, free_call_arena, c->arena);
        c->hash = hash_of(c->wire);
        c->refusal = refusal;
        if (refusal)
            c->tool = b->t->l->toolbox ? agent_toolbox_find(b->t->l->toolbox, c->wire->name) : NULL;
        else
            check(b, c, answer->why);
    }
}

/* ---- repeated calls ---- */

static unsigned see(struct turn *t, uint64_t hash)
{
    struct loop_seen *seen = &t->seen;

    for (size_t i = 0; i < seen->n; i++)
        if (seen->items[i].hash == hash)
            return ++seen->items[i].count;
    if (seen->n == seen->cap) {
        struct loop_seen_call *larger = arena_array(t->arena, 2 * seen->cap + 16, sizeof(*larger));

        if (seen->n > 0)
            memcpy(larger, seen->items, seen->n * sizeof(*larger));
        seen->items = larger;
        seen->cap = 2 * seen->cap + 16;
    }
    seen->items[seen->n++] = (struct loop_seen_call){ hash, 1 };
    return 1;
}

bool loop_calls_repeat(struct turn *t, const struct llm_message *answer)
{
    bool is_repeated = false;

    for (size_t i = 0; i < answer->n_tool_calls; i++)
        if (see(t, hash_of(&answer->tool_calls[i])) >= LIMIT_SAME_CALLS)
            is_repeated = true;
    return is_repeated;
}

static bool is_of_batch(const struct batch *b, uint64_t hash)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->calls[i].hash == hash)
            return true;
    return false;
}

/* After a tool that changes something, other calls may rightly be made again. */
static void forget_others(struct batch *b)
{
    struct loop_seen *seen = &b->t->seen;
    bool has_changed = false;
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        has_changed |= is_accepted(&b->calls[i]) && !b->calls[i].tool->is_read_only;
    if (!has_changed)
        return;
    for (size_t i = 0; i < seen->n; i++)
        if (is_of_batch(b, seen->items[i].hash))
            seen->items[n++] = seen->items[i];
    seen->n = n;
}

int loop_calls(struct turn *t, const struct loop_answer *answer, const char *refusal)
{
    static const struct llm_message none;
    struct batch b = { .t = t, .n = answer->message.n_tool_calls, .base = t->n_messages };
    int r;

    b.calls = arena_array(t->arena, b.n + 1, sizeof(*b.calls));
    b.ended = arena_array(t->arena, b.n + 1, sizeof(*b.ended));
    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.changed, NULL);
    for (size_t i = 0; i < b.n; i++)
        turn_push(t, &none);
    prepare(&b, answer, refusal);
    allow(&b);
    turn_move_deadline(t);
    r = run_all(&b);
    turn_move_deadline(t);
    if (r == 0)
        forget_others(&b);
    pthread_cond_destroy(&b.changed);
    pthread_mutex_destroy(&b.lock);
    return r;
}
