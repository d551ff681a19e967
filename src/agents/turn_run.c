/* One turn on its thread: instructions, history and tools; the loop; what is stored and told of it. */
#include "agents/context.h"
#include "agents/folder.h"
#include "agents/message.h"
#include "agents/prompt.h"
#include "agents/turns_private.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "llm/answer.h"
#include "net/wait.h"
#include "os/files.h"
#include "settings/settings.h"
#include "store/tables/workspaces.h"

#include <string.h>

enum { FIRST_THOUGHTS = 16 };

struct run {
    struct agent_turn *turn;
    struct arena *arena; /* owned: everything that the loop and its tools make */
    struct models_call call;
    struct agent_definition agent;
    struct agent_toolbox toolbox;
    struct context context;
    struct agent_loop_end end;
    struct buf text;   /* all that the agent said */
    size_t answer_at;  /* in text: where the last answer begins */
    bool has_break;    /* an answer has ended; the next begins a paragraph */
    struct buf blocks; /* [{dataType, data}; unfinished */
    const char **thoughts;
    size_t n_thoughts, max_thoughts; /* max_thoughts: for which there is room */
    const char **tools_used;
    size_t n_tools_used;
};

/* ---- what the loop reports ---- */

static void emit(struct run *run, const char *type, const char *member, struct slice text)
{
    turn_emit(run->turn, &(struct turn_event){ .type = type, .member = member, .text = text });
}

static void emit_text(struct run *run, struct slice delta)
{
    if (run->text.n + delta.n > LIMIT_LLM_ANSWER)
        return;
    buf_add_slice(&run->text, delta);
    emit(run, "textResponseChunk", "textResponse", delta);
}

static void on_text(void *arg, struct slice delta)
{
    struct run *run = arg;

    if (delta.n == 0)
        return;
    if (run->has_break && run->text.n > 0)
        emit_text(run, SLICE_LIT("\n\n"));
    if (run->has_break)
        run->answer_at = run->text.n;
    run->has_break = false;
    emit_text(run, delta);
}

static void keep_thought(struct run *run, const char *thought)
{
    struct arena *a = run->turn->arena;

    if (run->n_thoughts == run->max_thoughts) {
        const char **larger = arena_array(a, 2 * run->max_thoughts + FIRST_THOUGHTS, sizeof(*larger));

        if (run->n_thoughts > 0)
            memcpy(larger, run->thoughts, run->n_thoughts * sizeof(*larger));
        run->thoughts = larger;
        run->max_thoughts = 2 * run->max_thoughts + FIRST_THOUGHTS;
    }
    run->thoughts[run->n_thoughts++] = arena_strdup(a, thought);
}

static void on_thought(void *arg, const char *thought)
{
    struct run *run = arg;

    if (run->n_thoughts < LIMIT_TURN_THOUGHTS)
        keep_thought(run, thought);
    emit(run, "agentThought", "thought", slice_of(thought));
}

static void on_wait(void *arg, const char *why)
{
    if (why)
        on_thought(arg, why);
}

static void note_tool(struct run *run, const char *name)
{
    for (size_t i = 0; i < run->n_tools_used; i++)
        if (strcmp(run->tools_used[i], name) == 0)
            return;
    if (run->n_tools_used < LIMIT_AGENT_TOOLS)
        run->tools_used[run->n_tools_used++] = arena_strdup(run->turn->arena, name);
}

/* Stored before the loop goes on: a killed service loses no step that has ended. */
static int on_step(void *arg, const struct agent_step *step, struct err *e)
{
    struct run *run = arg;
    struct message_row row = { .turn_id = run->turn->id,
                               .role = agent_role_name(step->role),
                               .tool_name = step->role == LLM_TOOL ? step->tool_name : NULL,
                               .is_error = step->is_error,
                               .took_ms = step->took_ms,
                               .provider = step->provider,
                               .model = step->model,
                               .prompt_tokens = MAX(step->usage.prompt_tokens, (int64_t)0),
                               .completion_tokens = MAX(step->usage.completion_tokens, (int64_t)0) };
    struct buf out;
    int r;

    buf_init(&out, LIMIT_REPLY);
    agent_message_print(&out, step->message);
    r = buf_check(&out, e);
    row.message = buf_str(&out);
    if (r == 0)
        r = store_messages_add(run->call.models->store, &row, e);
    buf_clear(&out);
    run->has_break |= step->role == LLM_ASSISTANT;
    if (step->role == LLM_TOOL && step->tool)
        note_tool(run, step->tool_name);
    return r;
}

/* The text of a rich block is JSON itself (specification, "Agent session"). */
static void on_block(void *arg, const char *data_type, struct json_value data)
{
    struct run *run = arg;
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "dataType", data_type);
    json_add_value(&w, "data", data);
    json_end(&w);
    turn_emit(run->turn, &(struct turn_event){ .type = "textResponseChunk",
                                               .member = "textResponse",
                                               .text = buf_slice(&out),
                                               .more_name = "dataType",
                                               .more = data_type });
    if (run->blocks.n + out.n + 2 <= LIMIT_TURN_BLOCKS) {
        buf_add_char(&run->blocks, run->blocks.n == 0 ? '[' : ',');
        buf_add_slice(&run->blocks, buf_slice(&out));
    }
    buf_clear(&out);
}

static int on_fit(void *arg, struct agent_fit *fit, struct err *e)
{
    struct run *run = arg;

    return context_fit(&run->context, fit, e);
}

/* ---- preparing ---- */

static int find_agent(struct run *run, struct err *e)
{
    const struct agent_turn_job *job = &run->turn->job;
    int r = agent_find(run->turn->turns->config.agents, job->agent_name, run->arena, &run->agent, e);

    if (r == 0 && !agent_is_model(&run->agent))
        r = err_set(e, -EINVAL, "VALIDATION_ERROR", "The agent %.128s is a process now.", job->agent_name);
    if (r == 0 && job->timeout_s > 0)
        run->agent.timeout_s = job->timeout_s;
    return r;
}

static int fill_instructions(struct run *run, struct err *e)
{
    const struct agent_turns_config *c = &run->turn->turns->config;
    struct thread_row thread = { 0 };
    struct workspace_row workspace = { 0 };
    struct agent_prompt_values values = { .app = run->turn->caller.app_name };
    char *text = NULL;
    int r = store_threads_get_id(c->store, run->arena, run->turn->job.thread_id, &thread, e);

    if (r == 0)
        r = store_workspaces_get_id(c->store, run->arena, thread.workspace_id, &workspace, e);
    if (r < 0)
        return r;
    values.workspace = workspace.name;
    values.user = settings_string(c->settings, run->arena, SETTING_IDENTITY_USER_EMAIL);
    if (!*values.user)
        values.user = NULL;
    r = agent_prompt_fill(run->arena, run->agent.instructions, &values, &text, e);
    run->context.instructions = text && *text ? text : NULL;
    return r;
}

static int fill_toolbox(struct run *run, struct err *e)
{
    const struct agent_turns_config *c = &run->turn->turns->config;
    const struct net_wait wait =
        net_wait_of((int64_t)(run->agent.timeout_s * 1000), &run->turn->is_cancelled, c->models->is_leaving);
    const struct agent_toolbox_config config = {
        .call = &run->call, .agent = &run->agent, .host = c->host, .wait = &wait
    };
    int r = agent_toolbox_fill(&config, run->arena, &run->toolbox, e);

    for (size_t i = 0; r == 0 && i < run->toolbox.n_missing; i++)
        on_thought(run, run->toolbox.missing[i]);
    return r;
}

static int work(struct run *run, struct err *e)
{
    struct agent_turn *turn = run->turn;
    const struct agent_turns_config *c = &turn->turns->config;
    const struct agent_loop_events events = { on_text, on_thought, on_step, on_block, on_wait, on_fit, run };
    struct agent_loop loop = { .call = &run->call,
                               .agent = &run->agent,
                               .toolbox = &run->toolbox,
                               .approvals = c->approvals,
                               .host = c->host,
                               .calls = turn_pool_calls(turn->turns->pool),
                               .services = c->services,
                               .session_id = turn->job.session_id,
                               .task_uuid = turn->job.task_uuid,
                               .app_id = turn->job.app_id,
                               .on = &events };
    struct thread_row thread = { .id = 0 };
    int r = find_agent(run, e);

    if (r == 0)
        r = fill_instructions(run, e);
    if (r == 0)
        r = context_begin(&run->context, &loop.messages, &loop.n_messages, e);
    if (r == 0)
        r = fill_toolbox(run, e);
    if (r == 0)
        r = store_threads_get_id(c->store, run->arena, turn->job.thread_id, &thread, e);
    if (r < 0)
        return r;
    loop.thread_dir = folder_path(run->arena, c->data_dir, thread.id, thread.created_at);
    return agent_loop_run(&loop, &run->end, e);
}

/* ---- the end ---- */

/* What the client is told: a turn with an answer is a success, whatever ended it. */
static int judge(struct run *run, struct err *e)
{
    const struct agent_loop_end *end = &run->end;

    if (end->why == AGENT_CANCELLED && run->turn->is_stopped)
        return err_set(e, -ECANCELED, "SHUTTING_DOWN", "The service is stopping.");
    if (end->why == AGENT_CANCELLED)
        return err_set(e, -EBUSY, "TURN_CANCELLED", "The turn was cancelled before it had an answer.");
    if (end->why == AGENT_FAILED) {
        *e = end->error;
        return e->code[0] ? -EIO : err_set(e, -EIO, "INTERNAL_ERROR", "The turn failed.");
    }
    if (*end->text)
        return 0;
    if (end->why == AGENT_TIMEOUT)
        return err_set(e, -ETIMEDOUT, "UPSTREAM_TIMEOUT",
                       "The turn took longer than the %.0f s that the agent may take.", run->agent.timeout_s);
    return err_set(e, -EIO, "NO_ANSWER", "The agent ended without an answer (%s).", agent_end_name(end->why));
}

static const char *thoughts_json(struct run *run)
{
    struct json_writer w;
    struct buf out;

    if (run->n_thoughts == 0)
        return NULL;
    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_add_strings(&w, NULL, run->thoughts, run->n_thoughts);
    return buf_to_arena(&out, run->arena);
}

static const char *why_of(const struct run *run, bool is_interrupted)
{
    return is_interrupted ? "interrupted" : agent_end_name(run->end.why);
}

static void store_end(struct run *run)
{
    struct agent_turn *turn = run->turn;
    struct agent_turn_end *end = &turn->end;
    bool is_interrupted = run->end.why == AGENT_CANCELLED && turn->is_stopped;
    const struct turn_row row = { .id = turn->id,
                                  .uuid = turn->uuid,
                                  .state = is_interrupted ? TURN_INTERRUPTED : TURN_ENDED,
                                  .why = end->why,
                                  .error_code = end->r < 0 ? turn->error.code : NULL,
                                  .error = end->r < 0 ? turn->error.text : NULL,
                                  .n_steps = end->n_steps,
                                  .provider = end->provider,
                                  .model = end->model,
                                  .prompt_tokens = end->usage.prompt_tokens,
                                  .completion_tokens = end->usage.completion_tokens,
                                  .is_estimated = end->usage.is_estimated,
                                  .cut = context_cut(&run->context),
                                  .thoughts = thoughts_json(run),
                                  .blocks = end->blocks };
    struct store *store = turn->turns->config.store;
    struct err e;
    int r;

    err_init(&e);
    r = store_turns_end(store, &row, &e);
    if (r == 0 && turn->job.session_id)
        r = store_agent_sessions_touch(store, turn->job.session_id, &e);
    if (r == 0)
        r = store_messages_count(store, turn->job.thread_id, &end->n_messages, &e);
    if (r < 0 && end->r == 0) { /* an answer that is not stored was not given */
        end->r = r;
        turn->error = e;
    }
}

static void fill_end(struct run *run)
{
    struct agent_turn *turn = run->turn;
    struct arena *a = turn->arena;

    if (run->blocks.n > 0)
        buf_add_char(&run->blocks, ']');
    turn->end = (struct agent_turn_end){
        .turn_id = turn->uuid,
        .why = why_of(run, run->end.why == AGENT_CANCELLED && turn->is_stopped),
        .text = arena_strdup(a, run->end.text ? run->end.text : ""),
        .whole_text = arena_slicedup(a, buf_slice(&run->text)),
        .thoughts = run->thoughts,
        .n_thoughts = run->n_thoughts,
        .blocks = run->blocks.n > 0 ? arena_slicedup(a, buf_slice(&run->blocks)) : NULL,
        .tools_used = run->tools_used,
        .n_tools_used = run->n_tools_used,
        .provider = arena_strdup(a, run->end.provider),
        .model = arena_strdup(a, run->end.model),
        .usage = run->end.usage,
        .n_steps = run->end.n_steps,
        .error = &turn->error,
    };
}

/* An answer that was not streamed is streamed now, so that the chunks are always the whole text. */
static void complete_text(struct run *run)
{
    const char *answer = run->end.text ? run->end.text : "";

    if (*answer && strcmp(buf_str(&run->text) + run->answer_at, answer) != 0) {
        run->has_break = true;
        on_text(run, slice_of(answer));
    }
}

static void report_end(struct run *run)
{
    struct agent_turn *turn = run->turn;
    const struct turn_event failure = { .type = "error",
                                        .member = "error",
                                        .text = slice_of(turn->error.text),
                                        .more_name = "code",
                                        .more = turn->error.code,
                                        .is_failure = true };

    if (turn->end.r == 0)
        emit(run, "textResponse", "textResponse", slice_of(turn->end.whole_text));
    else
        turn_emit(turn, &failure);
    turn_emit(turn, &(struct turn_event){ .type = "close", .is_failure = true });
}

static void run_in(struct run *run)
{
    struct agent_turn *turn = run->turn;
    struct err *e = &turn->error;
    int r = work(run, e);

    turn->is_stopped = atomic_load(&turn->turns->is_leaving) || atomic_load(run->call.models->is_leaving);
    if (r < 0) {
        run->end.why = atomic_load(&turn->is_cancelled) ? AGENT_CANCELLED : AGENT_FAILED;
        run->end.error = *e;
        run->end.text = "";
    }
    llm_usage_add(&run->end.usage, &run->context.used);
    complete_text(run);
    fill_end(run);
    err_init(e);
    turn->end.r = judge(run, e);
    store_end(run);
    turns_release(turn);
    report_end(run);
}

void turn_run(struct agent_turn *turn)
{
    struct arena *a = arena_new();
    struct run *run = ARENA_NEW(a, struct run);

    *run = (struct run){ .turn = turn, .arena = a };
    run->call = (struct models_call){ .models = turn->turns->config.models,
                                      .caller = &turn->caller,
                                      .arena = a,
                                      .is_gone = &turn->is_cancelled,
                                      .is_permitted = true };
    run->context = (struct context){ .call = &run->call,
                                     .agent = &run->agent,
                                     .thread_id = turn->job.thread_id,
                                     .turn_id = turn->id,
                                     .task_uuid = turn->job.sees_thread ? NULL : turn->job.task_uuid,
                                     .message = turn->job.message,
                                     .report = on_thought,
                                     .arg = run };
    run->tools_used = arena_array(turn->arena, LIMIT_AGENT_TOOLS, sizeof(*run->tools_used));
    buf_init(&run->text, LIMIT_LLM_ANSWER);
    buf_init(&run->blocks, LIMIT_TURN_BLOCKS);
    run_in(run);
    buf_clear(&run->text);
    buf_clear(&run->blocks);
    arena_free(a);
}
