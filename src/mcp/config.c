#include "mcp/config.h"

#include "base/limits.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- references ---- */

#define USER_HOME "userHome"

/* The next ${...} of the text: its body without braces; false when there is none. *at moves behind it. */
static bool next_reference(const char **at, const char **ret_start, struct slice *ret_body)
{
    const char *start = strstr(*at, "${"), *end = start ? strchr(start, '}') : NULL;

    if (!end)
        return false;
    *ret_start = start;
    *ret_body = (struct slice){ start + 2, (size_t)(end - start) - 2 };
    *at = end + 1;
    return true;
}

static bool is_variable(struct slice name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!isalnum((unsigned char)name.p[i]) && name.p[i] != '_')
            return false;
    return name.n > 0 && !isdigit((unsigned char)name.p[0]);
}

static bool has_prefix(struct slice text, const char *prefix)
{
    size_t n = strlen(prefix);

    return text.n > n && memcmp(text.p, prefix, n) == 0;
}

/* The input that a reference means. false: no reference that is known; its text stays as it is. */
static bool read_reference(struct arena *a, struct slice body, struct mcp_input *ret)
{
    const char *dash = memmem(body.p, body.n, ":-", 2);
    struct slice name = { body.p, dash ? (size_t)(dash - body.p) : body.n };

    *ret = (struct mcp_input){ .id = NULL };
    if (slice_eq_str(body, USER_HOME))
        ret->id = USER_HOME;
    else if (has_prefix(body, "input:") || slice_eq_str(body, "workspaceFolder"))
        ret->id = arena_slicedup(a, body);
    else if (has_prefix(name, "env:") && is_variable((struct slice){ name.p + 4, name.n - 4 }))
        ret->id = arena_slicedup(a, name);
    else if (is_variable(name))
        ret->id = arena_printf(a, "env:%s", arena_slicedup(a, name));
    if (ret->id && dash && name.n < body.n)
        ret->value = arena_strndup(a, dash + 2, body.n - name.n - 2);
    return ret->id != NULL;
}

static struct mcp_input *find_input(const struct mcp_config *c, const char *id)
{
    for (size_t i = 0; i < c->n_inputs; i++)
        if (strcmp(c->inputs[i].id, id) == 0)
            return &c->inputs[i];
    return NULL;
}

static int add_input(struct mcp_config *c, const struct mcp_input *input, struct err *e)
{
    struct mcp_input *known = find_input(c, input->id);

    if (known && !known->value)
        known->value = input->value;
    if (known || strcmp(input->id, USER_HOME) == 0)
        return 0;
    if (c->n_inputs == LIMIT_MCP_INPUTS)
        return err_add_field(e, "inputs", "must not be more than LIMIT_MCP_INPUTS (%d)", LIMIT_MCP_INPUTS);
    c->inputs[c->n_inputs++] = *input;
    return 0;
}

static int collect_text(struct arena *a, const char *text, struct mcp_config *c, struct err *e)
{
    struct mcp_input input;
    struct slice body;
    const char *start;
    int r = 0;

    while (r == 0 && next_reference(&text, &start, &body))
        if (read_reference(a, body, &input))
            r = add_input(c, &input, e);
    return r;
}

/* Every text of a value; its depth is bounded by LIMIT_JSON_DEPTH. */
static int collect(struct arena *a, struct json_value v, struct mcp_config *c, struct err *e)
{
    struct json_iter it = json_iter(v);
    struct json_value item;
    int r = 0;

    if (json_cstr(v))
        return collect_text(a, json_cstr(v), c, e);
    while (r == 0 && json_next(&it, NULL, &item))
        r = collect(a, item, c, e);
    return r;
}

/* What VS Code's list of inputs says about those that are used. */
static void describe_inputs(struct arena *a, struct json_value list, struct mcp_config *c)
{
    struct json_value item;

    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);) {
        const char *id = json_cstr(json_get(item, "id"));
        struct mcp_input *input = id ? find_input(c, arena_printf(a, "input:%s", id)) : NULL;

        if (!input)
            continue;
        input->description = json_cstr(json_get(item, "description"));
        input->is_secret = json_bool(json_get(item, "password"));
        input->choices = json_get(item, "options");
        if (json_cstr(json_get(item, "default")))
            input->value = json_cstr(json_get(item, "default"));
    }
}

/* ---- reading ---- */

static const char *fit_name(struct arena *a, struct slice given)
{
    char *name = arena_alloc(a, given.n + 2);
    size_t n = 0;

    for (size_t i = 0; i < given.n && n < LIMIT_MCP_SERVER_NAME; i++) {
        char c = given.p[i];
        bool is_plain = isalnum((unsigned char)c) || c == '-' || c == '_';
        char to = is_plain ? c : '-';

        if ((to == '-' || to == '_') && (n == 0 || name[n - 1] == '-' || name[n - 1] == '_'))
            continue;
        name[n++] = to;
    }
    while (n > 0 && (name[n - 1] == '-' || name[n - 1] == '_'))
        name[--n] = '\0';
    return n ? name : "server";
}

static int add_entry(struct arena *a, struct slice name, struct json_value object, struct mcp_config *c, struct err *e)
{
    struct mcp_config_entry *to = &c->items[c->n];

    if (c->n == LIMIT_MCP_SERVERS)
        return err_add_field(e, "mcpServers", "must not be more than LIMIT_MCP_SERVERS (%d)", LIMIT_MCP_SERVERS);
    if (json_type(object) != JSON_OBJECT)
        return err_add_field(e, arena_slicedup(a, name), "must be an object");
    *to = (struct mcp_config_entry){ fit_name(a, name), arena_slicedup(a, name), object };
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->items[i].name, to->name) == 0)
            return err_add_field(e, to->display_name, "must have another name: there is a second %s", to->name);
    c->n++;
    return collect(a, object, c, e);
}

/* The object of servers, in whichever form; absent: none. */
static struct json_value servers_of(struct json_value root, struct json_value *ret_inputs)
{
    struct json_value places[] = { root, json_get(root, "mcp") };
    static const char *const names[] = { "mcpServers", "servers" };

    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        for (size_t at = 0; at < ARRAY_SIZE(names); at++)
            if (json_type(json_get(places[i], names[at])) == JSON_OBJECT) {
                *ret_inputs = json_get(places[i], "inputs");
                return json_get(places[i], names[at]);
            }
    return (struct json_value){ NULL, 0 };
}

int mcp_config_read(struct arena *a, struct json_value root, struct mcp_config *ret, struct err *e)
{
    struct json_value inputs = { NULL, 0 }, servers = servers_of(root, &inputs), object;
    struct json_iter it = json_iter(servers);
    struct mcp_config c = { .n = 0 };
    struct slice name;
    int r = 0;

    if (json_is_absent(servers))
        return err_add_field(e, "mcpServers", "must be an object of servers, or `servers` as in VS Code");
    c.items = arena_array(a, LIMIT_MCP_SERVERS, sizeof(*c.items));
    c.inputs = arena_array(a, LIMIT_MCP_INPUTS, sizeof(*c.inputs));
    while (r == 0 && json_next(&it, &name, &object))
        r = add_entry(a, name, object, &c, e);
    if (r < 0)
        return r;
    describe_inputs(a, inputs, &c);
    *ret = c;
    return 0;
}

/* ---- one server ---- */

struct making {
    const struct mcp_config *config;
    struct json_value answers;
    struct arena *arena;
    struct json_writer w;
    int r;
    struct err *e;
};

static const char *answer_of(struct making *m, const char *id)
{
    const char *answer = json_cstr(json_get(m->answers, id));
    const struct mcp_input *input = find_input(m->config, id);

    if (strcmp(id, USER_HOME) == 0)
        answer = getenv("HOME");
    if (!answer && input)
        answer = input->value;
    if (!answer) {
        m->r = err_add_field(m->e, arena_printf(m->arena, "inputs.%s", id), "is required");
        answer = "";
    }
    return answer;
}

static const char *put_in(struct making *m, const char *text)
{
    const char *at = text, *start, *rest = text;
    struct mcp_input input;
    struct slice body;
    struct buf out;

    buf_init(&out, LIMIT_MCP_DEFINITION);
    while (next_reference(&at, &start, &body)) {
        if (!read_reference(m->arena, body, &input))
            continue;
        buf_add(&out, rest, (size_t)(start - rest));
        buf_add_str(&out, answer_of(m, input.id));
        rest = at;
    }
    buf_add_str(&out, rest);
    if (out.overflowed)
        m->r = err_add_field(m->e, "inputs", "make the definition larger than LIMIT_MCP_DEFINITION");
    return buf_to_arena(&out, m->arena);
}

/* Numbers and switches among variables are texts to a program. */
static void add_text(struct making *m, const char *name, struct json_value v)
{
    enum json_type type = json_type(v);

    if (json_cstr(v))
        json_add_string(&m->w, name, put_in(m, json_cstr(v)));
    else if (type == JSON_INT || type == JSON_DOUBLE || type == JSON_BOOL)
        json_add_string(&m->w, name, json_to_str(m->arena, v));
    else if (!json_is_absent(v)) /* refused by the table of fields */
        json_add_value(&m->w, name, v);
}

static void add_first(struct making *m, const char *name, struct json_value object, const char *const *names)
{
    for (; *names; names++)
        if (!json_is_absent(json_get(object, *names))) {
            add_text(m, name, json_get(object, *names));
            return;
        }
}

static void add_map(struct making *m, const char *name, struct json_value map)
{
    struct json_iter it = json_iter(map);
    struct json_value value;
    struct slice key;

    if (json_type(map) != JSON_OBJECT)
        return;
    json_begin_object_as(&m->w, name);
    while (json_next(&it, &key, &value))
        add_text(m, arena_slicedup(m->arena, key), value);
    json_end(&m->w);
}

static void add_list(struct making *m, const char *name, struct json_value list)
{
    struct json_value item;

    if (json_type(list) != JSON_ARRAY)
        return;
    json_begin_array_as(&m->w, name);
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        add_text(m, NULL, item);
    json_end(&m->w);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* The programs have several words for one transport. */
static const char *type_of(struct json_value object, const char *url)
{
    const char *given = json_cstr(json_get(object, "type"));

    if (!given)
        given = json_cstr(json_get(object, "transport"));
    if (!url)
        return "stdio";
    if (given)
        return strcmp(given, "sse") == 0 ? "sse" : "http";
    return ends_with(url, "/sse") ? "sse" : "http";
}

static void write_definition(struct making *m, const struct mcp_config_entry *entry)
{
    static const char *const urls[] = { "url", "serverUrl", "httpUrl", NULL };
    static const char *const folders[] = { "cwd", "working_dir", NULL };
    struct json_value o = entry->object, enabled = json_get(o, "enabled");
    const char *url = NULL;

    for (const char *const *name = urls; *name && !url; name++)
        url = json_cstr(json_get(o, *name));
    json_begin_object(&m->w);
    json_add_string(&m->w, "name", entry->name);
    json_add_string(&m->w, "display_name", entry->display_name);
    json_add_string(&m->w, "server_type", type_of(o, url));
    json_add_bool(&m->w, "enabled",
                  !json_bool(json_get(o, "disabled")) && (json_is_absent(enabled) || json_bool(enabled)));
    add_text(m, "description", json_get(o, "description"));
    add_text(m, "command", json_get(o, "command"));
    add_list(m, "args", json_get(o, "args"));
    add_map(m, "env", json_get(o, "env"));
    add_first(m, "working_dir", o, folders);
    add_first(m, "url", o, urls);
    add_map(m, "headers", json_get(o, "headers"));
    json_end(&m->w);
}

int mcp_config_server(const struct mcp_config *c, size_t at, struct json_value answers, struct arena *a,
                      struct mcp_server *ret, struct err *e)
{
    struct making m = { .config = c, .answers = answers, .arena = a, .e = e };
    struct mcp_server server = { .name = NULL };
    struct json_value object;
    struct buf out;
    int r;

    buf_init(&out, 2 * LIMIT_MCP_DEFINITION);
    json_write_init(&m.w, &out);
    write_definition(&m, &c->items[at]);
    r = m.r < 0 ? m.r : buf_check(&out, e);
    if (r == 0)
        r = json_parse(a, buf_slice(&out), &object, e);
    buf_clear(&out);
    if (r == 0)
        r = fields_read(mcp_server_fields, object, &server, a, c->items[at].name, e);
    if (r < 0)
        return r;
    mcp_server_complete(&server);
    *ret = server;
    return 0;
}
