#include "llm/format.h"

#include "base/json_names.h"
#include "base/memory.h"

#include <string.h>

#define INSTRUCTION "Answer with one JSON object and nothing else: no explanation, no code fence."

static bool can(const struct llm_account *acc, enum llm_format format)
{
    const struct llm_protocol *p = acc->preset->protocol;
    unsigned quirks = acc->preset->quirks;

    if (format == LLM_FORMAT_SCHEMA)
        return p->has_json_schema && !(quirks & LLM_QUIRK_NO_JSON_SCHEMA);
    return p->has_json_object && !(quirks & LLM_QUIRK_NO_JSON_OBJECT);
}

static const struct llm_message *with_instruction(const struct llm_request *request, struct arena *a)
{
    struct llm_message *messages = arena_array(a, request->n_messages + 1, sizeof(*messages));
    struct llm_block *block = ARENA_NEW(a, struct llm_block);

    block->text =
        request->format == LLM_FORMAT_JSON
            ? INSTRUCTION
            : arena_printf(a, INSTRUCTION " It must keep to this JSON Schema:\n%s", json_to_str(a, request->schema));
    messages[0] = (struct llm_message){ .role = LLM_SYSTEM, .blocks = block, .n_blocks = 1 };
    memcpy(messages + 1, request->messages, request->n_messages * sizeof(*messages));
    return messages;
}

static bool is_closed_object(struct json_value schema)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value more = json_get(schema, "additionalProperties"), property;
    struct json_names required;
    struct slice name;

    if (json_type(more) != JSON_BOOL || json_bool(more))
        return false;
    required = json_names_of(a, json_get(schema, "required"));
    for (struct json_iter it = json_iter(json_get(schema, "properties")); json_next(&it, &name, &property);)
        if (json_is_absent(json_names_get(&required, name)))
            return false;
    return true;
}

/* Also checks every nested schema. */
bool llm_format_is_strict(struct json_value schema)
{
    bool is_object = slice_eq_str(json_string(json_get(schema, "type")), "object") ||
                     !json_is_absent(json_get(schema, "properties"));
    struct json_value inner;

    if (is_object && !is_closed_object(schema))
        return false;
    for (struct json_iter it = json_iter(schema); json_next(&it, NULL, &inner);)
        if ((json_type(inner) == JSON_OBJECT || json_type(inner) == JSON_ARRAY) && !llm_format_is_strict(inner))
            return false;
    return true;
}

/* OpenAI and services like it refuse json_object unless some message mentions JSON. */
static bool speaks_of_json(const struct llm_request *request)
{
    for (size_t i = 0; i < request->n_messages; i++)
        for (size_t k = 0; k < request->messages[i].n_blocks; k++)
            if (request->messages[i].blocks[k].kind == LLM_BLOCK_TEXT &&
                strcasestr(request->messages[i].blocks[k].text, "json"))
                return true;
    return false;
}

struct llm_request llm_format_plan(const struct llm_account *acc, const struct llm_request *request, struct arena *a,
                                   bool *ret_must_check)
{
    struct llm_request plan = *request;

    *ret_must_check = request->format != LLM_FORMAT_TEXT && !can(acc, request->format);
    if (!*ret_must_check && (request->format != LLM_FORMAT_JSON || speaks_of_json(request)))
        return plan;
    plan.messages = with_instruction(request, a);
    plan.n_messages = request->n_messages + 1;
    plan.format = can(acc, LLM_FORMAT_JSON) ? LLM_FORMAT_JSON : LLM_FORMAT_TEXT;
    return plan;
}

/* ```json ... ``` */
static struct slice without_fence(struct slice s)
{
    const char *line_end;

    s = slice_trim(s);
    if (s.n < 6 || memcmp(s.p, "```", 3) != 0 || memcmp(s.p + s.n - 3, "```", 3) != 0)
        return s;
    line_end = memchr(s.p, '\n', s.n);
    if (!line_end)
        return s;
    return slice_trim((struct slice){ line_end + 1, s.n - 3 - (size_t)(line_end + 1 - s.p) });
}

int llm_format_check(const struct llm_format_rule *rule, struct slice *text, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice inner = without_fence(*text);
    struct json_value v = { 0 };
    struct err why = { 0 };
    int r = json_parse(a, inner, &v, NULL);

    if (r == -ENOMEM)
        return memory_refuse(e);
    if (r < 0)
        err_set(&why, r, "INVALID_JSON", "it is no JSON.");
    if (r == 0 && rule->format == LLM_FORMAT_JSON && json_type(v) != JSON_OBJECT)
        r = err_set(&why, -EINVAL, "VALIDATION_ERROR", "it is no object.");
    if (r == 0 && rule->format == LLM_FORMAT_SCHEMA)
        r = json_schema_apply(rule->schema, v, "", &why);
    if (r < 0)
        return err_set(e, -EIO, "LLM_ERROR", "The model's answer is not the JSON that response_format asks for: %s",
                       why.text);
    *text = inner;
    return 0;
}

int llm_format_rule_copy(struct arena *a, const struct llm_request *request, struct llm_format_rule *ret, struct err *e)
{
    struct json_value schema = { 0 };
    int r = 0;

    *ret = (struct llm_format_rule){ .format = request->format };
    if (request->format != LLM_FORMAT_SCHEMA)
        return 0;
    r = json_copy(a, request->schema, &schema, e);
    return r < 0 ? r : json_schema_compile(a, schema, "schema", &ret->schema, e);
}
