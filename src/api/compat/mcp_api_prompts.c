/* Prompts: what a person picks in the client, one row each. A prompt needs no permission of its own beyond that of what
 * it shows. */
#include "api/compat/mcp_api_turn.h"
#include "identity/identity.h"
#include "store/tables/agents.h"

enum { MAX_ARGUMENTS = 2 };

struct prompt_argument {
    const char *name, *title, *description;
    int (*complete)(struct mcp_api_turn *t, struct mcp_api_completion *c,
                    struct err *e); /* NULL: no values are known */
};

struct prompt {
    const char *name, *title, *description;
    struct prompt_argument arguments[MAX_ARGUMENTS]; /* all required; ended by name NULL, when fewer */
    /* Writes the messages. values: one for each argument. */
    int (*write)(struct mcp_api_turn *t, const char *const *values, struct json_writer *w, struct err *e);
};

/* ---- messages ---- */

static void begin_message(struct json_writer *w, const char *type)
{
    json_begin_object(w);
    json_add_string(w, "role", "user");
    json_begin_object_as(w, "content");
    json_add_string(w, "type", type);
}

static void end_message(struct json_writer *w)
{
    json_end(w);
    json_end(w);
}

static void write_text(struct json_writer *w, const char *text)
{
    begin_message(w, "text");
    json_add_string(w, "text", text);
    end_message(w);
}

static void write_resource(struct json_writer *w, const char *uri, const struct mcp_api_content *content)
{
    begin_message(w, "resource");
    json_begin_object_as(w, "resource");
    mcp_api_write_contents(w, uri, content);
    json_end(w);
    end_message(w);
}

/* ---- the prompts ---- */

static int write_agent_request(struct mcp_api_turn *t, const char *const *values, struct json_writer *w, struct err *e)
{
    write_text(w, arena_printf(t->arena,
                               "Give the agent `%s` the task below: call the tool trigger_agent with agent_name `%s`, "
                               "the task as prompt and wait_s 600. Then say what the agent answered.\n\n%s",
                               values[0], values[0], values[1]));
    return 0;
}

static int complete_agent(struct mcp_api_turn *t, struct mcp_api_completion *c, struct err *e)
{
    struct agent_row *rows = NULL;
    bool may = false;
    size_t n = 0;
    int r = identity_has_grant(t->req->api->identity, t->req->caller, PERM_AGENTS, &may, e);

    if (r == 0 && may)
        r = store_agents_list(t->req->api->store, t->arena, &rows, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        mcp_api_add_value(c, rows[i].name);
    return r;
}

/* A sentence, and the resource that it is about. */
static int write_about(struct mcp_api_turn *t, const char *sentence, const char *uri, struct json_writer *w,
                       struct err *e)
{
    struct mcp_api_content content = { 0 };
    int r = mcp_api_read_content(t, uri, &content, e);

    if (r < 0)
        return r;
    write_text(w, sentence);
    write_resource(w, uri, &content);
    return 0;
}

static int write_task_report(struct mcp_api_turn *t, const char *const *values, struct json_writer *w, struct err *e)
{
    return write_about(t,
                       "Report on the task of Hearth that follows: what was asked, what came of it, what went wrong.",
                       arena_printf(t->arena, MCP_API_TASK_URI "%s", values[0]), w, e);
}

static int write_thread(struct mcp_api_turn *t, const char *const *values, struct json_writer *w, struct err *e)
{
    return write_about(t, "This conversation with an agent of Hearth comes before ours: go on from there.",
                       arena_printf(t->arena, MCP_API_THREAD_URI "%s", values[0]), w, e);
}

static const struct prompt prompts[] = {
    { "ask_agent",
      "Ask an agent",
      "Gives one of the person's agents a task and reports its answer.",
      { { "agent", "Agent", "the agent's name", complete_agent }, { "task", "Task", "what the agent shall do", NULL } },
      write_agent_request },
    { "task_report",
      "Report on a task",
      "Brings a task with its result and its runs into the conversation.",
      { { "uuid", "Task", "the task's uuid", mcp_api_complete_task } },
      write_task_report },
    { "continue_thread",
      "Go on from a conversation",
      "Brings a conversation with an agent into this one.",
      { { "thread", "Thread", "workspace/thread", mcp_api_complete_thread } },
      write_thread },
};

static const struct prompt *find_prompt(struct slice name)
{
    for (size_t i = 0; i < ARRAY_SIZE(prompts); i++)
        if (slice_eq_str(name, prompts[i].name))
            return &prompts[i];
    return NULL;
}

static size_t n_arguments(const struct prompt *prompt)
{
    size_t n = 0;

    while (n < MAX_ARGUMENTS && prompt->arguments[n].name)
        n++;
    return n;
}

/* ---- the source ---- */

static void write_arguments(const struct mcp_api_turn *t, const struct prompt *prompt, struct json_writer *w)
{
    json_begin_array_as(w, "arguments");
    for (size_t i = 0; i < n_arguments(prompt); i++) {
        json_begin_object(w);
        json_add_string(w, "name", prompt->arguments[i].name);
        if (t->version >= MCP_API_2025_06_18)
            json_add_string(w, "title", prompt->arguments[i].title);
        json_add_string(w, "description", prompt->arguments[i].description);
        json_add_bool(w, "required", true);
        json_end(w);
    }
    json_end(w);
}

static int list_own(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(prompts); i++) {
        json_begin_object(w);
        json_add_string(w, "name", prompts[i].name);
        if (t->version >= MCP_API_2025_06_18)
            json_add_string(w, "title", prompts[i].title);
        json_add_string(w, "description", prompts[i].description);
        write_arguments(t, &prompts[i], w);
        json_end(w);
    }
    return 0;
}

static int read_values(struct mcp_api_turn *t, const struct prompt *prompt, struct json_value arguments,
                       const char **values, struct err *e)
{
    for (size_t i = 0; i < n_arguments(prompt); i++) {
        values[i] = json_cstr(json_get(arguments, prompt->arguments[i].name));
        if (!values[i] || !*values[i])
            return mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e, "`%s` is required: a string",
                                  prompt->arguments[i].name);
    }
    return 0;
}

static int get_own(struct mcp_api_turn *t, const char *name, struct json_value arguments, struct json_writer *w,
                   struct err *e)
{
    const struct prompt *prompt = find_prompt(slice_of(name));
    const char *values[MAX_ARGUMENTS] = { NULL };
    int r;

    if (!prompt)
        return 0;
    r = read_values(t, prompt, arguments, values, e);
    if (r < 0)
        return r;
    json_add_string(w, "description", prompt->description);
    json_begin_array_as(w, "messages");
    r = prompt->write(t, values, w, e);
    json_end(w);
    return r < 0 ? r : 1;
}

static int complete_own(struct mcp_api_turn *t, struct slice name, struct mcp_api_completion *c, struct err *e)
{
    const struct prompt *prompt = find_prompt(name);
    int r = 0;

    for (size_t i = 0; prompt && i < n_arguments(prompt); i++)
        if (slice_eq_str(c->argument, prompt->arguments[i].name)) {
            if (prompt->arguments[i].complete)
                r = prompt->arguments[i].complete(t, c, e);
            return r < 0 ? r : 1;
        }
    return 0;
}

const struct mcp_api_prompts mcp_api_own_prompts = { .list = list_own, .get = get_own, .complete = complete_own };

/* ---- the methods ---- */

int mcp_api_list_prompts(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    int r = mcp_api_read_only_page(t, e);

    if (r < 0)
        return r;
    json_begin_array_as(w, "prompts");
    for (const struct mcp_api_prompts *const *at = mcp_api_profile.prompts; r == 0 && *at; at++)
        r = (*at)->list(t, w, e);
    json_end(w);
    return r;
}

int mcp_api_get_prompt(struct mcp_api_turn *t, struct json_writer *w, struct err *e)
{
    const char *name = json_cstr(json_get(t->frame->params, "name"));
    struct json_value arguments = json_get(t->frame->params, "arguments");
    int r = 0;

    for (const struct mcp_api_prompts *const *at = mcp_api_profile.prompts; name && r == 0 && *at; at++)
        r = (*at)->get(t, name, arguments, w, e);
    if (r == 0)
        return mcp_api_refuse(t, JSON_RPC_INVALID_PARAMS, e, "Unknown prompt: %.100s", name ? name : "");
    return MIN(r, 0);
}
