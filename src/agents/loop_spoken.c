/* Tools for models whose provider offers none: described in a text, called by a JSON object in the answer, results
 * given back as a message of the user. */
#include "agents/loop_private.h"

#include "agents/message.h"
#include "base/limits.h"
#include "base/uuid.h"

#include <string.h>

#define BY_SCHEMA                                                                                                        \
    "Answer with one JSON object. `calls` lists the tools to call now, each as {\"tool\": NAME, \"arguments\": {...}}; " \
    "their results are then given to you. When no tool is needed any more, leave `calls` empty and write your answer "   \
    "for the person in `answer`."
#define BY_INSTRUCTION                                                                                                  \
    "To call tools, answer with this JSON object and nothing else: "                                                    \
    "{\"calls\": [{\"tool\": NAME, \"arguments\": {...}}]}. The results are then given to you. When no tool is needed " \
    "any more, write your answer for the person as plain text without such an object."

/* ---- what the model is told ---- */

static void describe(struct buf *out, const struct agent_tool *tool)
{
    buf_printf(out, "\n## %s\n", tool->name);
    if (tool->description)
        buf_printf(out, "%s\n", tool->description);
    buf_add_str(out, "Arguments, a JSON Schema: ");
    json_print(out, tool->schema);
    buf_add_char(out, '\n');
}

static const char *description(struct arena *a, const struct turn *t)
{
    const struct agent_toolbox *box = t->l->toolbox;
    struct buf out;

    buf_init(&out, LIMIT_BODY_CHAT);
    buf_add_str(&out, "You can use tools.\n");
    for (size_t i = 0; i < box->n; i++)
        describe(&out, &box->items[i]);
    buf_printf(&out, "\n# How to call tools\n%s", t->habits.tools == LOOP_TOOLS_BY_SCHEMA ? BY_SCHEMA : BY_INSTRUCTION);
    return buf_to_arena(&out, a);
}

static void write_call(struct json_writer *w, const struct llm_tool_call *call, struct arena *a)
{
    json_begin_object(w);
    json_add_string(w, "tool", call->name);
    llm_write_arguments(w, "arguments", slice_of(call->arguments), a);
    json_end(w);
}

/* The calls of an earlier answer, as the model writes them. */
static const char *calls_text(struct arena *a, const struct llm_message *m)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BODY_CHAT);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_begin_array_as(&w, "calls");
    for (size_t i = 0; i < m->n_tool_calls; i++)
        write_call(&w, &m->tool_calls[i], a);
    json_end(&w);
    json_add_string(&w, "answer", "");
    json_end(&w);
    return buf_to_arena(&out, a);
}

static const char *name_of_call(const struct llm_message *answer, const char *id)
{
    for (size_t i = 0; answer && i < answer->n_tool_calls; i++)
        if (strcmp(answer->tool_calls[i].id, id) == 0)
            return answer->tool_calls[i].name;
    return "the tool";
}

static void add_result_text(struct buf *out, const struct llm_message *m, const char *name)
{
    buf_printf(out, "%s# %s of %s\n", out->n ? "\n\n" : "", m->is_error ? "Error" : "Result", name);
    for (size_t i = 0; i < m->n_blocks; i++)
        if (m->blocks[i].kind == LLM_BLOCK_TEXT)
            buf_add_str(out, m->blocks[i].text);
}

static size_t n_images(const struct llm_message *m, size_t n)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m[i].n_blocks; k++)
            found += m[i].blocks[k].kind != LLM_BLOCK_TEXT;
    return found;
}

/* One message for the results of one answer, because some models demand that the sides take turns. */
static struct llm_message results(struct arena *a, const struct llm_message *m, size_t n,
                                  const struct llm_message *answer)
{
    struct llm_block *blocks = arena_array(a, 1 + n_images(m, n), sizeof(*blocks));
    struct llm_message ret = { .role = LLM_USER, .blocks = blocks, .n_blocks = 1 };
    struct buf out;

    buf_init(&out, LIMIT_BODY_CHAT);
    for (size_t i = 0; i < n; i++) {
        add_result_text(&out, &m[i], name_of_call(answer, m[i].tool_call_id));
        for (size_t k = 0; k < m[i].n_blocks; k++)
            if (m[i].blocks[k].kind != LLM_BLOCK_TEXT)
                blocks[ret.n_blocks++] = m[i].blocks[k];
    }
    blocks[0] = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = buf_to_arena(&out, a) };
    return ret;
}

void loop_spoken_messages(struct arena *a, const struct turn *t, bool has_tools, struct llm_request *request)
{
    const struct llm_message *from = request->messages, *answer = NULL;
    struct llm_message *to = arena_array(a, request->n_messages + 1, sizeof(*to));
    size_t n = 0, n_run;
    bool is_described = !has_tools;

    for (size_t i = 0; i < request->n_messages; i += n_run) {
        n_run = 1;
        if (!is_described && from[i].role != LLM_SYSTEM) {
            to[n++] = agent_message_of(a, LLM_SYSTEM, description(a, t));
            is_described = true;
        }
        if (from[i].role == LLM_TOOL) {
            while (i + n_run < request->n_messages && from[i + n_run].role == LLM_TOOL)
                n_run++;
            to[n++] = results(a, &from[i], n_run, answer);
        } else if (from[i].n_tool_calls > 0) {
            answer = &from[i];
            to[n++] = agent_message_of(a, LLM_ASSISTANT, calls_text(a, answer));
        } else {
            to[n++] = from[i];
        }
    }
    request->messages = to;
    request->n_messages = n;
}

static void write_call_schema(struct json_writer *w, const struct agent_toolbox *toolbox)
{
    static const char *const required[] = { "tool", "arguments" };

    json_begin_object_as(w, "items");
    json_add_string(w, "type", "object");
    json_begin_object_as(w, "properties");
    json_begin_object_as(w, "tool");
    json_add_string(w, "type", "string");
    json_begin_array_as(w, "enum");
    for (size_t i = 0; i < toolbox->n; i++)
        json_add_string(w, NULL, toolbox->items[i].name);
    json_end(w);
    json_end(w);
    json_add_raw(w, "arguments", "{\"type\":\"object\"}");
    json_end(w);
    json_add_strings(w, "required", required, ARRAY_SIZE(required));
    json_end(w);
}

struct json_value loop_spoken_schema(struct arena *a, const struct agent_toolbox *toolbox)
{
    static const char *const required[] = { "calls", "answer" };
    struct json_value schema = { 0 };
    struct json_writer w;
    struct buf out;

    buf_init(&out, MIB(1));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "type", "object");
    json_begin_object_as(&w, "properties");
    json_begin_object_as(&w, "calls");
    json_add_string(&w, "type", "array");
    write_call_schema(&w, toolbox);
    json_end(&w);
    json_add_raw(&w, "answer", "{\"type\":\"string\"}");
    json_end(&w);
    json_add_strings(&w, "required", required, ARRAY_SIZE(required));
    json_add_bool(&w, "additionalProperties", false);
    json_end(&w);
    if (json_parse(a, buf_slice(&out), &schema, NULL) < 0)
        schema = (struct json_value){ 0 };
    buf_clear(&out);
    return schema;
}

/* ---- what the model answers ---- */

/* From the first brace to the last: models put words and code fences around their JSON. */
static struct slice object_in(const char *text)
{
    const char *first = strchr(text, '{'), *last = strrchr(text, '}');

    return first && last && last > first ? (struct slice){ first, (size_t)(last - first) + 1 }
                                         : (struct slice){ "", 0 };
}

static struct llm_tool_call call_of(struct arena *a, struct json_value from)
{
    struct json_value arguments = json_get(from, "arguments");
    const char *name = json_cstr(json_get(from, "tool"));
    char id[UUID_SIZE];

    if (!name)
        name = json_cstr(json_get(from, "name"));
    uuid_v4(id);
    return (struct llm_tool_call){
        .id = arena_printf(a, "call_%s", id),
        .name = name ? name : "",
        .arguments = json_type(arguments) == JSON_STRING ? json_cstr(arguments)
                     : json_is_absent(arguments)         ? "{}"
                                                         : json_to_str(a, arguments),
    };
}

static const struct llm_tool_call *calls_of(struct arena *a, struct json_value list, size_t *ret_n)
{
    size_t n = MIN(json_length(list), (size_t)LIMIT_TOOL_CALLS), i = 0;
    struct llm_tool_call *calls = arena_array(a, n + 1, sizeof(*calls));
    struct json_value item;

    for (struct json_iter it = json_iter(list); i < n && json_next(&it, NULL, &item); i++) {
        calls[i] = call_of(a, item);
        if (!calls[i].arguments)
            calls[i].arguments = "";
    }
    *ret_n = n;
    return calls;
}

static void set_text(struct arena *a, struct llm_message *m, const char *text)
{
    const struct llm_message made = agent_message_of(a, LLM_ASSISTANT, text);

    m->blocks = made.blocks;
    m->n_blocks = *text ? 1 : 0;
    m->thoughts = NULL;
    m->order = NULL;
    m->n_thoughts = m->n_order = 0;
}

/* Does a text that is no JSON look like the beginning of a call? */
static bool is_broken_call(const char *text)
{
    return strchr(text, '{') && strstr(text, "\"calls\"") && strstr(text, "\"tool\"");
}

static bool is_call_object(struct json_value root)
{
    return json_type(json_get(root, "calls")) == JSON_ARRAY ||
           (json_type(json_get(root, "tool")) == JSON_STRING && !json_is_absent(json_get(root, "arguments")));
}

bool loop_spoken_read(struct arena *a, struct llm_message *m)
{
    const char *text = agent_message_text(a, m), *words;
    struct json_value root = { 0 };

    if (json_parse(a, object_in(text), &root, NULL) < 0)
        return !is_broken_call(text);
    if (!is_call_object(root))
        return true;
    words = json_cstr(json_get(root, "answer"));
    if (json_type(json_get(root, "calls")) == JSON_ARRAY) {
        m->tool_calls = calls_of(a, json_get(root, "calls"), &m->n_tool_calls);
    } else {
        struct llm_tool_call *call = ARENA_NEW(a, struct llm_tool_call);

        *call = call_of(a, root);
        m->tool_calls = call;
        m->n_tool_calls = 1;
    }
    set_text(a, m, words ? words : "");
    return true;
}
