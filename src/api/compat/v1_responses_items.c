#include "api/compat/v1_responses_items.h"

#include "api/compat/v1_draft.h"
#include "base/limits.h"
#include "llm/request.h"

#include <string.h>

enum { PATH_SIZE = sizeof(((struct err_field *)0)->field), BYTES_AN_ITEM = 2048 };

struct item_body {
    const char *type, *role, *id, *call_id, *name, *arguments, *encrypted;
    struct json_value content, output, summary, extra;
};

static const char *const roles[] = { "user", "assistant", "system", "developer", NULL };

static const struct field item_fields[] = {
    FIELD_STRING(struct item_body, type, "type", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct item_body, role, "role", .one_of = roles),
    FIELD_STRING(struct item_body, id, "id", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct item_body, call_id, "call_id", .max = LIMIT_TOOL_ID_BYTES),
    FIELD_STRING(struct item_body, name, "name", .max = LIMIT_TOOL_ID_BYTES),
    FIELD_STRING(struct item_body, arguments, "arguments", .max = LIMIT_BODY_CHAT, .def_str = "{}",
                 .help = "JSON text"),
    FIELD_STRING(struct item_body, encrypted, "encrypted_content", .max = LIMIT_BODY_CHAT),
    FIELD_ANY(struct item_body, content, "content"),
    FIELD_ANY(struct item_body, output, "output"),
    FIELD_ARRAY(struct item_body, summary, "summary"),
    FIELD_OBJECT(struct item_body, extra, "extra_content"),
    FIELD_END,
};

/* ---- items to messages ---- */

struct reading {
    struct arena *a;
    struct err *e;
    const struct v1_items *before;
    struct v1_draft draft;
    struct v1_draft_turn turn; /* all items of one turn of the assistant become one message */
    struct buf reasoning;
    struct v1_draft_turn loose; /* images and files in tool results */
    bool is_referred;           /* the current item was named by a reference */
    size_t n_referred;          /* bytes of all items that references named */
};

static void end_turn(struct reading *d)
{
    struct llm_message m = v1_draft_message(&d->turn, LLM_ASSISTANT);

    if (d->reasoning.n > 0)
        m.reasoning = buf_to_arena(&d->reasoning, d->a);
    if (m.n_order > 0 || m.reasoning)
        v1_draft_add_message(&d->draft, m);
    v1_draft_begin(&d->turn, d->a, 0);
}

/* Some services accept only text as a tool's result: its images follow in a message of the user, after all results. */
static void end_results(struct reading *d)
{
    if (d->loose.n_blocks > 0)
        v1_draft_add_message(&d->draft, v1_draft_message(&d->loose, LLM_USER));
    v1_draft_begin(&d->loose, d->a, 0);
}

static int need(const struct reading *d, const char *value, const char *path, const char *name)
{
    char below[PATH_SIZE];

    if (value && *value)
        return 0;
    snprintf(below, sizeof(below), "%s.%s", path, name);
    return err_add_field(d->e, below, "is required in an item of this type");
}

static int read_content(const struct reading *d, struct json_value content, const char *path, const char *name,
                        struct llm_message *ret)
{
    char below[PATH_SIZE];

    snprintf(below, sizeof(below), "%s.%s", path, name);
    if (json_is_absent(content))
        return err_add_field(d->e, below, "is required in an item of this type");
    return llm_request_blocks(d->a, content, below, ret, d->e);
}

static bool is_text_only(const struct llm_message *m)
{
    for (size_t i = 0; i < m->n_blocks; i++)
        if (m->blocks[i].kind != LLM_BLOCK_TEXT)
            return false;
    return true;
}

static int add_said(struct reading *d, const struct item_body *item, const char *path)
{
    bool is_assistant = item->role && strcmp(item->role, "assistant") == 0,
         is_user = item->role && strcmp(item->role, "user") == 0;
    struct llm_message m = { .role = is_assistant ? LLM_ASSISTANT : is_user ? LLM_USER : LLM_SYSTEM };
    int r = need(d, item->role, path, "role");

    if (r == 0)
        r = read_content(d, item->content, path, "content", &m);
    if (r == 0 && !is_user && !is_text_only(&m))
        r = err_add_field(d->e, path, "must be text in a message of the role %s", item->role);
    if (r < 0)
        return r;
    end_results(d);
    if (!is_assistant) {
        end_turn(d);
        v1_draft_add_message(&d->draft, m);
    }
    for (size_t i = 0; is_assistant && i < m.n_blocks; i++)
        v1_draft_add_block(&d->turn, m.blocks[i]);
    return 0;
}

static int add_call(struct reading *d, const struct item_body *item, const char *path)
{
    int r = need(d, item->call_id, path, "call_id"), r_name = need(d, item->name, path, "name");

    if (r < 0 || r_name < 0)
        return -EINVAL;
    end_results(d);
    v1_draft_add_call(&d->turn,
                      (struct llm_tool_call){ item->call_id, item->name, item->arguments,
                                              json_is_absent(item->extra) ? NULL : json_to_str(d->a, item->extra) });
    return 0;
}

static int add_result(struct reading *d, const struct item_body *item, const char *path)
{
    struct llm_message m = { .role = LLM_TOOL, .tool_call_id = item->call_id };
    struct llm_block *texts;
    int r = need(d, item->call_id, path, "call_id"), r_output = read_content(d, item->output, path, "output", &m);

    if (r < 0 || r_output < 0)
        return -EINVAL;
    end_turn(d);
    texts = arena_array(d->a, m.n_blocks, sizeof(*texts));
    for (size_t i = 0, n = m.n_blocks; i < n; i++) {
        if (i == 0)
            m.n_blocks = 0;
        if (m.blocks[i].kind == LLM_BLOCK_TEXT)
            texts[m.n_blocks++] = m.blocks[i];
        else
            v1_draft_add_block(&d->loose, m.blocks[i]);
    }
    m.blocks = texts;
    v1_draft_add_message(&d->draft, m);
    return 0;
}

/* Adds the text of each part of a list as a paragraph. */
static void add_parts(struct buf *out, struct json_value parts)
{
    struct json_value part;
    bool is_first = true;

    for (struct json_iter it = json_iter(parts); json_type(parts) == JSON_ARRAY && json_next(&it, NULL, &part);
         is_first = false) {
        const char *text = json_cstr(json_get(part, "text"));

        if (text && !is_first)
            buf_add_str(out, "\n\n");
        if (text)
            buf_add_str(out, text);
    }
}

/* The provider's signature in `encrypted_content`, after this service's prefix. NULL: no provider would recognize the
 * thought. */
static const char *signature_of(const char *encrypted, bool *ret_is_hidden)
{
    *ret_is_hidden = encrypted && strncmp(encrypted, V1_SIGNATURE_HIDDEN, strlen(V1_SIGNATURE_HIDDEN)) == 0;
    if (*ret_is_hidden)
        return encrypted[strlen(V1_SIGNATURE_HIDDEN)] ? encrypted + strlen(V1_SIGNATURE_HIDDEN) : NULL;
    if (!encrypted || strncmp(encrypted, V1_SIGNATURE_SIGNED, strlen(V1_SIGNATURE_SIGNED)) != 0)
        return NULL;
    return encrypted[strlen(V1_SIGNATURE_SIGNED)] ? encrypted + strlen(V1_SIGNATURE_SIGNED) : NULL;
}

static int add_reasoning(struct reading *d, const struct item_body *item, const char *path)
{
    bool is_hidden;
    const char *signature = signature_of(item->encrypted, &is_hidden), *text;
    struct buf parts;

    end_results(d);
    buf_init(&parts, 2 * LIMIT_BODY_CHAT);
    add_parts(&parts, item->summary);
    if (parts.n == 0)
        add_parts(&parts, item->content);
    if (parts.n > 0 && d->reasoning.n > 0)
        buf_add_str(&d->reasoning, "\n\n");
    buf_add_slice(&d->reasoning, buf_slice(&parts));
    text = buf_to_arena(&parts, d->a);
    if (!signature)
        return 0;
    v1_draft_add_thought(&d->turn, (struct llm_thought){ is_hidden ? NULL : text, signature });
    return 0;
}

static int read_item(struct reading *d, struct json_value value, const char *path);

static int find_item(const struct v1_items *before, const char *id, const char *path, struct json_value *ret,
                     struct err *e)
{
    if (before->find)
        return before->find(before->arg, id, path, ret, e);
    return err_add_field(e, path, "names an item that is not kept");
}

/* A reference costs what its item costs when it is sent: a short id must not stand for megabytes many times. */
static int count_referred(struct reading *d, struct json_value item)
{
    struct buf text;
    bool fits;

    buf_init(&text, LIMIT_BODY_CHAT - d->n_referred);
    json_print(&text, item);
    fits = !text.overflowed;
    d->n_referred += fits ? text.n : 0;
    buf_clear(&text);
    return fits ? 0
                : err_set(d->e, -E2BIG, "TOO_LARGE", "The items that references name have more than %d bytes together.",
                          LIMIT_BODY_CHAT);
}

static int add_reference(struct reading *d, const struct item_body *item, const char *path)
{
    struct json_value found = { 0 };
    int r = need(d, item->id, path, "id");

    if (r == 0 && d->is_referred)
        r = err_add_field(d->e, path, "must not name another reference");
    if (r == 0)
        r = find_item(d->before, item->id, path, &found, d->e);
    if (r == 0)
        r = count_referred(d, found);
    if (r < 0)
        return r;
    d->is_referred = true;
    r = read_item(d, found, path);
    d->is_referred = false;
    return r;
}

static const struct {
    const char *type;
    int (*add)(struct reading *d, const struct item_body *item, const char *path);
} kinds[] = {
    { "message", add_said },        { "function_call", add_call },       { "function_call_output", add_result },
    { "reasoning", add_reasoning }, { "item_reference", add_reference },
};

static bool is_type(const struct item_body *item, const char *type)
{
    return strcmp(item->type ? item->type : item->role ? "message" : "item_reference", type) == 0;
}

static int read_item(struct reading *d, struct json_value value, const char *path)
{
    struct item_body item = { 0 };
    int r = fields_read(item_fields, value, &item, d->a, path, d->e);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++)
        if (is_type(&item, kinds[i].type))
            return kinds[i].add(d, &item, path);
    return r < 0
               ? r
               : err_add_field(
                     d->e, path,
                     "must be an item of type message, function_call, function_call_output, reasoning or item_reference");
}

static int worse(int r, int r_more)
{
    return r_more < 0 && (r == 0 || r_more != -EINVAL) ? r_more : r;
}

static int read_list(struct reading *d, struct json_value list, const char *name)
{
    struct json_value item;
    char path[PATH_SIZE];
    size_t i = 0;
    int r = 0;

    for (struct json_iter it = json_iter(list); (r == 0 || r == -EINVAL) && json_next(&it, NULL, &item); i++) {
        snprintf(path, sizeof(path), "%s[%zu]", name, i);
        r = worse(r, read_item(d, item, path));
    }
    return r;
}

static int read_input(struct reading *d, struct json_value input)
{
    struct llm_message m = { .role = LLM_USER };
    int r;

    if (json_type(input) == JSON_ARRAY)
        return read_list(d, input, "input");
    if (json_type(input) != JSON_STRING)
        return err_add_field(d->e, "input", "must be a text or an array of items");
    r = llm_request_blocks(d->a, input, "input", &m, d->e);
    if (r == 0) {
        end_results(d);
        end_turn(d);
        v1_draft_add_message(&d->draft, m);
    }
    return r;
}

static void add_instructions(struct reading *d, const char *instructions)
{
    struct llm_block *block = ARENA_NEW(d->a, struct llm_block);

    if (!instructions || !*instructions)
        return;
    *block = (struct llm_block){ .kind = LLM_BLOCK_TEXT, .text = instructions };
    v1_draft_add_message(&d->draft, (struct llm_message){ .role = LLM_SYSTEM, .blocks = block, .n_blocks = 1 });
}

static size_t blocks_in(struct json_value list)
{
    struct json_value item;
    size_t n = 0;

    for (struct json_iter it = json_iter(list); json_type(list) == JSON_ARRAY && json_next(&it, NULL, &item);)
        n += 1 + json_length(json_get(item, "content")) + json_length(json_get(item, "output"));
    return n;
}

/* Counts before memory is allocated: lists that grow leave as much unused memory as they use, and the assistant's
 * blocks are copied once more. Thoughts are copied twice, from the input, the items that references name
 * (count_referred()) and the thread. The blocks of these items are not counted: this service's own answers have few.
 */
static int check_count(struct json_value input, const struct v1_items *before, const struct arena *a, struct err *e)
{
    size_t n = json_type(input) == JSON_ARRAY ? json_length(input) : 1, n_blocks;

    if (n == 0)
        return err_add_field(e, "input", "must have an item");
    for (size_t i = 0; i < before->n_lists && n <= LIMIT_MESSAGES; i++)
        n += json_length(before->lists[i]);
    if (n > LIMIT_MESSAGES)
        return err_add_field(e, "input", "must have at most %d items, those of the thread it continues among them",
                             LIMIT_MESSAGES);
    n_blocks = blocks_in(input);
    for (size_t i = 0; i < before->n_lists; i++)
        n_blocks += blocks_in(before->lists[i]);
    if (!arena_has_room(a, n_blocks * 5 * sizeof(struct llm_block) + n * BYTES_AN_ITEM +
                               2 * (2 * (size_t)LIMIT_BODY_CHAT + before->n_bytes) + (size_t)LIMIT_BODY_CHAT))
        return err_set(e, -E2BIG, "TOO_LARGE",
                       "The input, with the thread it continues, has more parts than one request may have.");
    return 0;
}

int v1_items_read(struct json_value input, const char *instructions, const struct v1_items *before, struct arena *a,
                  struct llm_request *ret, struct err *e)
{
    struct reading d = { .a = a, .e = e, .before = before, .draft = { .a = a } };
    int r = check_count(input, before, a, e);

    if (r < 0)
        return r;
    v1_draft_begin(&d.turn, a, 0);
    v1_draft_begin(&d.loose, a, 0);
    buf_init(&d.reasoning, LIMIT_ARENA_BYTES);
    add_instructions(&d, instructions);
    for (size_t i = 0; i < before->n_lists; i++)
        r = worse(r, read_list(&d, before->lists[i], "previous_response_id"));
    r = worse(r, read_input(&d, input));
    end_results(&d);
    end_turn(&d);
    buf_clear(&d.reasoning);
    if (r == 0 && d.draft.n == 0)
        r = err_add_field(e, "input", "must have something that is said");
    ret->messages = d.draft.messages;
    ret->n_messages = d.draft.n;
    return r;
}

bool v1_items_name_address(struct json_value input)
{
    struct json_value item;

    if (json_length(input) > LIMIT_MESSAGES) /* check_count() refuses it */
        return false;
    for (struct json_iter it = json_iter(input); json_type(input) == JSON_ARRAY && json_next(&it, NULL, &item);)
        if (llm_content_names_address(json_get(item, "content")) || llm_content_names_address(json_get(item, "output")))
            return true;
    return false;
}

/* ---- the input in its kept form ---- */

static void print_text(struct json_writer *w, struct json_value text)
{
    json_begin_object(w);
    json_add_string(w, "type", "message");
    json_add_string(w, "role", "user");
    json_begin_array_as(w, "content");
    json_begin_object(w);
    json_add_string(w, "type", "input_text");
    json_add_value(w, "text", text);
    json_end(w);
    json_end(w);
    json_end(w);
}

static void print_item(struct json_writer *w, struct json_value item, const struct v1_items *before)
{
    struct slice type = json_string(json_get(item, "type"));
    bool is_reference = slice_eq_str(type, "item_reference") || (type.n == 0 && json_is_absent(json_get(item, "role")));
    const char *id = json_cstr(json_get(item, "id"));
    struct json_value found = { 0 };

    if (is_reference && id && find_item(before, id, "input", &found, NULL) == 0)
        item = found;
    json_add_value(w, NULL, item);
}

void v1_items_print(struct json_value input, const struct v1_items *before, struct buf *out)
{
    struct json_writer w;
    struct json_value item;

    json_write_init(&w, out);
    json_begin_array(&w);
    if (json_type(input) == JSON_STRING)
        print_text(&w, input);
    for (struct json_iter it = json_iter(input); json_type(input) == JSON_ARRAY && json_next(&it, NULL, &item);)
        print_item(&w, item, before);
    json_end(&w);
}
