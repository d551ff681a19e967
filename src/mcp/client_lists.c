/* Lists of a server, read page by page. A hostile server has pages without end, pages in a circle, the same item again
 * and again: every list ends, and says why it is not whole. */
#include "mcp/client_private.h"

#include "base/hash.h"
#include "mcp/http_params.h"

#include <string.h>

struct page {
    const char *cursor; /* NULL: the first */
};

/* All items of one list. */
struct items {
    struct json_value *items;
    size_t n, n_bytes;
    const char *cursors[LIMIT_MCP_PAGES]; /* of the pages that were read */
    size_t n_pages;
    const char *why_cut;
};

static void add_page(const void *arg, struct json_writer *w)
{
    const struct page *page = arg;

    if (page->cursor)
        json_add_string(w, "cursor", page->cursor);
}

static void take_items(struct items *list, struct json_value page, struct arena *a)
{
    struct json_iter it = json_iter(page);
    struct json_value item;

    while (json_next(&it, NULL, &item)) {
        if (list->n == LIMIT_MCP_ITEMS) {
            list->why_cut = arena_printf(a, "The list has more than %d entries.", LIMIT_MCP_ITEMS);
            return;
        }
        if (json_type(item) == JSON_OBJECT)
            list->items[list->n++] = item;
    }
}

/* The next page; NULL: there is none, or none that may be read. */
static const char *next_cursor(struct items *list, struct json_value v, struct arena *a)
{
    const char *cursor = json_cstr(v);

    if (list->why_cut || json_is_absent(v))
        return NULL;
    if (!cursor || json_string(v).n > LIMIT_MCP_CURSOR_BYTES)
        list->why_cut =
            arena_printf(a, "The next page has no name that is a text of at most %d bytes.", LIMIT_MCP_CURSOR_BYTES);
    else if (list->n_pages == LIMIT_MCP_PAGES)
        list->why_cut = arena_printf(a, "The list has more than %d pages.", LIMIT_MCP_PAGES);
    for (size_t i = 1; cursor && !list->why_cut && i < list->n_pages; i++)
        if (strcmp(list->cursors[i], cursor) == 0)
            list->why_cut = "A page of the list points to an earlier one.";
    return list->why_cut ? NULL : cursor;
}

static int read_page(struct mcp_client *c, const struct mcp_call *call, const char *method, const char *member,
                     const char **cursor, struct items *list, struct err *e)
{
    const struct page page = { *cursor };
    const struct client_request q = { .method = method, .add_params = page.cursor ? add_page : NULL, .arg = &page };
    struct json_value result, items;
    size_t n_bytes = 0;
    int r = mcp_client_send(c, call, &q, &result, NULL, &n_bytes, e);

    if (r < 0)
        return r;
    items = json_get(result, member);
    if (json_type(items) != JSON_ARRAY)
        return client_bad_answer(method, member, e);
    list->cursors[list->n_pages++] = page.cursor;
    list->n_bytes += n_bytes;
    if (list->n_bytes > LIMIT_MCP_LIST_BYTES)
        list->why_cut = arena_printf(call->arena, "The list has more than %d bytes.", LIMIT_MCP_LIST_BYTES);
    else
        take_items(list, items, call->arena);
    *cursor = next_cursor(list, json_get(result, "nextCursor"), call->arena);
    return 0;
}

static int read_list(struct mcp_client *c, const struct mcp_call *call, const char *method, const char *member,
                     struct items *ret, struct err *e)
{
    const char *cursor = NULL;
    int r;

    *ret = (struct items){ .items = arena_array(call->arena, LIMIT_MCP_ITEMS, sizeof(*ret->items)) };
    do
        r = read_page(c, call, method, member, &cursor, ret, e);
    while (r == 0 && cursor);
    return r;
}

/* ---- items ---- */

static const char *text_of(struct json_value item, const char *name)
{
    return json_cstr(json_get(item, name));
}

static struct json_value object_of(struct json_value item, const char *name)
{
    struct json_value v = json_get(item, name);

    return json_type(v) == JSON_OBJECT ? v : (struct json_value){ 0 };
}

/* Names that were seen, with their hashes: long texts are compared only when these are equal. */
struct seen {
    uint64_t *hashes;
    const char **names;
    size_t n;
};

static struct seen seen_new(struct arena *a)
{
    return (struct seen){ arena_array(a, LIMIT_MCP_ITEMS, sizeof(uint64_t)),
                          arena_array(a, LIMIT_MCP_ITEMS, sizeof(char *)), 0 };
}

static bool seen_add(struct seen *s, struct slice name)
{
    uint64_t hash = hash_fast(name);

    for (size_t i = 0; i < s->n; i++)
        if (s->hashes[i] == hash && strcmp(s->names[i], name.p) == 0)
            return false;
    s->hashes[s->n] = hash;
    s->names[s->n++] = name.p;
    return true;
}

/* The name of an item; NULL when it has none that may be used, or when an earlier item has it. */
static const char *name_of(struct json_value item, const char *member, size_t max, struct seen *seen)
{
    struct json_value v = json_get(item, member);
    const char *name = json_cstr(v);

    return name && *name && json_string(v).n <= max && seen_add(seen, json_string(v)) ? name : NULL;
}

static bool hint(struct json_value annotations, const char *name, bool otherwise)
{
    struct json_value v = json_get(annotations, name);

    return json_type(v) == JSON_BOOL ? json_bool(v) : otherwise;
}

/* Specification, "Tool annotations": the defaults. */
static struct mcp_tool tool_of(const char *name, struct json_value item)
{
    struct json_value annotations = object_of(item, "annotations");
    const char *title = text_of(item, "title");

    return (struct mcp_tool){
        .name = name,
        .title = title ? title : text_of(annotations, "title"),
        .description = text_of(item, "description"),
        .input_schema = json_get(item, "inputSchema"),
        .output_schema = object_of(item, "outputSchema"),
        .annotations = annotations,
        .is_read_only = hint(annotations, "readOnlyHint", false),
        .is_destructive = hint(annotations, "destructiveHint", true),
        .is_idempotent = hint(annotations, "idempotentHint", false),
        .is_open_world = hint(annotations, "openWorldHint", true),
    };
}

/* ---- tools that are called in a special way ---- */

static bool needs_task(const struct mcp_client *c, struct json_value item)
{
    struct json_value support = json_get(json_get(item, "execution"), "taskSupport");

    return c->about.has_tasks && slice_eq_str(json_string(support), "required");
}

/* Over HTTP in the stateless era, arguments may have to be repeated in headers. */
static bool has_headers(const struct mcp_client *c)
{
    return c->era->era == MCP_ERA_STATELESS && strcmp(mcp_peer_link_name(c->peer), "http") == 0;
}

static bool names_headers(struct arena *a, struct json_value schema)
{
    return strstr(json_to_str(a, schema), "\"x-mcp-header\"") != NULL;
}

static void remember_tools(struct mcp_client *c, const struct items *list, const struct mcp_call *call)
{
    struct arena *a = arena_new(), *before;
    struct client_tool *tools = arena_array(a, list->n + 1, sizeof(*tools));
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        struct json_value name = json_get(list->items[i], "name"), schema = json_get(list->items[i], "inputSchema");
        struct client_tool tool = { .must_be_task = needs_task(c, list->items[i]) };
        bool is_special = tool.must_be_task;

        if (has_headers(c) && names_headers(call->arena, schema))
            is_special = json_copy(a, schema, &tool.schema, NULL) == 0;
        if (!is_special || !json_cstr(name) || json_string(name).n > LIMIT_MCP_NAME_BYTES)
            continue;
        tool.name = arena_strdup(a, json_cstr(name));
        tools[n++] = tool;
    }
    pthread_mutex_lock(&c->lock);
    before = c->tools_arena;
    c->tools_arena = a;
    c->tools = tools;
    c->n_tools = n;
    pthread_mutex_unlock(&c->lock);
    arena_free(before);
}

/* A tool whose headers break the rules is left out ("Custom Headers from Tool Parameters"). */
static bool may_list(const struct mcp_client *c, struct json_value schema)
{
    return json_type(schema) == JSON_OBJECT && (!has_headers(c) || mcp_params_check(schema, NULL) == 0);
}

/* ---- the lists ---- */

int mcp_client_tools(struct mcp_client *c, const struct mcp_call *call, struct mcp_tools *ret, struct err *e)
{
    struct seen seen = seen_new(call->arena);
    struct mcp_tools tools = { 0 };
    struct items list = { 0 };
    int r = c->about.has_tools ? read_list(c, call, "tools/list", "tools", &list, e) : 0;

    if (r < 0 || !c->about.has_tools) {
        if (r == 0)
            *ret = tools;
        return r;
    }
    tools.items = arena_array(call->arena, list.n + 1, sizeof(*tools.items));
    tools.why_cut = list.why_cut;
    for (size_t i = 0; i < list.n; i++) {
        const char *name = name_of(list.items[i], "name", LIMIT_MCP_NAME_BYTES, &seen);

        if (name && may_list(c, json_get(list.items[i], "inputSchema")))
            tools.items[tools.n++] = tool_of(name, list.items[i]);
    }
    remember_tools(c, &list, call);
    *ret = tools;
    return 0;
}

static struct mcp_resource resource_of(const char *uri, struct json_value item)
{
    struct json_value size = json_get(item, "size");

    return (struct mcp_resource){
        .uri = uri,
        .name = text_of(item, "name"),
        .title = text_of(item, "title"),
        .description = text_of(item, "description"),
        .mime_type = text_of(item, "mimeType"),
        .size = json_type(size) == JSON_INT && json_int(size) >= 0 ? json_int(size) : -1,
        .annotations = object_of(item, "annotations"),
    };
}

static int list_resources(struct mcp_client *c, const struct mcp_call *call, const char *method, const char *member,
                          const char *uri_member, struct mcp_resources *ret, struct err *e)
{
    struct seen seen = seen_new(call->arena);
    struct mcp_resources resources = { 0 };
    struct items list = { 0 };
    int r = c->about.has_resources ? read_list(c, call, method, member, &list, e) : client_lacks("resources", e);

    if (r < 0)
        return r;
    resources.items = arena_array(call->arena, list.n + 1, sizeof(*resources.items));
    resources.why_cut = list.why_cut;
    for (size_t i = 0; i < list.n; i++) {
        const char *uri = name_of(list.items[i], uri_member, LIMIT_MCP_TARGET_URI_BYTES, &seen);

        if (uri && text_of(list.items[i], "name"))
            resources.items[resources.n++] = resource_of(uri, list.items[i]);
    }
    *ret = resources;
    return 0;
}

int mcp_client_resources(struct mcp_client *c, const struct mcp_call *call, struct mcp_resources *ret, struct err *e)
{
    return list_resources(c, call, "resources/list", "resources", "uri", ret, e);
}

int mcp_client_templates(struct mcp_client *c, const struct mcp_call *call, struct mcp_resources *ret, struct err *e)
{
    return list_resources(c, call, "resources/templates/list", "resourceTemplates", "uriTemplate", ret, e);
}

int mcp_client_prompts(struct mcp_client *c, const struct mcp_call *call, struct mcp_prompts *ret, struct err *e)
{
    struct seen seen = seen_new(call->arena);
    struct mcp_prompts prompts = { 0 };
    struct items list = { 0 };
    int r = c->about.has_prompts ? read_list(c, call, "prompts/list", "prompts", &list, e) : client_lacks("prompts", e);

    if (r < 0)
        return r;
    prompts.items = arena_array(call->arena, list.n + 1, sizeof(*prompts.items));
    prompts.why_cut = list.why_cut;
    for (size_t i = 0; i < list.n; i++) {
        struct json_value arguments = json_get(list.items[i], "arguments");
        const char *name = name_of(list.items[i], "name", LIMIT_MCP_NAME_BYTES, &seen);

        if (!name)
            continue;
        if (json_type(arguments) != JSON_ARRAY)
            arguments = (struct json_value){ 0 };
        prompts.items[prompts.n++] = (struct mcp_prompt){
            .name = name,
            .title = text_of(list.items[i], "title"),
            .description = text_of(list.items[i], "description"),
            .arguments = arguments,
        };
    }
    *ret = prompts;
    return 0;
}
