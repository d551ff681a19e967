#include "mcp/pins.h"

#include "base/hash.h"
#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

static int compare_members(const void *x, const void *y)
{
    const struct json_value *a = x, *b = y;
    struct slice name_a = json_name_of(*a), name_b = json_name_of(*b);
    int order = memcmp(name_a.p, name_b.p, MIN(name_a.n, name_b.n));

    return order ? order : (name_a.n > name_b.n) - (name_a.n < name_b.n);
}

static void write_sorted(struct json_writer *w, const char *name, struct json_value v, struct arena *a);

static void write_members(struct json_writer *w, struct json_value v, struct arena *a)
{
    struct json_value *members = arena_array(a, json_length(v) + 1, sizeof(*members)), member;
    struct json_iter it = json_iter(v);
    struct slice name;
    size_t n = 0;

    while (json_next(&it, &name, &member))
        members[n++] = member;
    qsort(members, n, sizeof(*members), compare_members);
    for (size_t i = 0; i < n; i++)
        write_sorted(w, arena_slicedup(a, json_name_of(members[i])), members[i], a);
}

/* The value with the members of every object in the order of their names. Its depth is bounded by LIMIT_JSON_DEPTH. */
static void write_sorted(struct json_writer *w, const char *name, struct json_value v, struct arena *a)
{
    struct json_iter it = json_iter(v);
    struct json_value item;

    if (json_type(v) == JSON_OBJECT) {
        json_begin_object_as(w, name);
        write_members(w, v, a);
        json_end(w);
    } else if (json_type(v) == JSON_ARRAY) {
        json_begin_array_as(w, name);
        while (json_next(&it, NULL, &item))
            write_sorted(w, NULL, item, a);
        json_end(w);
    } else {
        json_add_value(w, name, v);
    }
}

/* NULL: larger than LIMIT_MCP_TOOL_BYTES. */
static const char *definition_of(const struct mcp_tool *tool, struct arena *a)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_MCP_TOOL_BYTES);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "name", tool->name);
    json_add_string(&w, "title", tool->title);
    json_add_string(&w, "description", tool->description);
    write_sorted(&w, "inputSchema", tool->input_schema, a);
    write_sorted(&w, "annotations", tool->annotations, a);
    json_end(&w);
    if (!out.overflowed)
        return buf_to_arena(&out, a);
    buf_clear(&out);
    return NULL;
}

static int compare_pins(const void *name, const void *pin)
{
    return strcmp(name, ((const struct mcp_pin_row *)pin)->tool);
}

static bool is_equal(const char *x, const char *y)
{
    return x && y ? strcmp(x, y) == 0 : x == y;
}

/* Judges one tool; true when `ret` is to be stored. The rows of the store are in the order of their names. */
static bool judge(const struct mcp_pin_row *pinned, bool accepts_changes, const char *hash, const char *definition,
                  struct mcp_pin_row *ret, const char **why_not)
{
    bool is_same = pinned && strcmp(pinned->hash, hash) == 0;

    if (!pinned || is_same || accepts_changes) {
        *ret = (struct mcp_pin_row){ .hash = hash, .definition = definition };
        return !is_same || pinned->offered_hash;
    }
    *why_not = "its definition has changed: it is off until a person accepts the new one (`hearth mcp accept`)";
    *ret = (struct mcp_pin_row){
        .hash = pinned->hash, .definition = pinned->definition, .offered_hash = hash, .offered_definition = definition
    };
    return !is_equal(pinned->offered_hash, hash);
}

/* What is kept of one server: a server that invents new tools again and again fills no disk. */
struct kept {
    size_t n, n_bytes;
};

static struct kept kept_of(const struct mcp_pin_row *pins, size_t n)
{
    struct kept kept = { .n = n };

    for (size_t i = 0; i < n; i++)
        kept.n_bytes +=
            strlen(pins[i].definition) + (pins[i].offered_definition ? strlen(pins[i].offered_definition) : 0);
    return kept;
}

/* pinned NULL: a new tool. */
static bool has_room(struct kept *kept, const struct mcp_pin_row *pinned, const struct mcp_pin_row *row)
{
    size_t n_bytes = strlen(row->offered_definition ? row->offered_definition : row->definition);

    if (pinned && strcmp(pinned->hash, row->hash) == 0 && !row->offered_hash)
        return true; /* what was offered is forgotten */
    if (kept->n_bytes + n_bytes > LIMIT_MCP_PIN_BYTES || (!pinned && kept->n >= LIMIT_MCP_PINS))
        return false;
    kept->n += !pinned;
    kept->n_bytes += n_bytes;
    return true;
}

int mcp_pins_check(struct store *store, const char *server, bool accepts_changes, const struct mcp_tool *tools,
                   size_t n, struct arena *a, const char **why_not, struct err *e)
{
    struct mcp_pin_row *pins = NULL, *changed = arena_array(a, n + 1, sizeof(*changed));
    size_t n_pins = 0, n_changed = 0;
    struct kept kept;
    int r = store_mcp_pins_list(store, a, server, &pins, &n_pins, e);

    if (r < 0)
        return r;
    kept = kept_of(pins, n_pins);
    for (size_t i = 0; i < n; i++) {
        const char *definition = definition_of(&tools[i], a);
        const struct mcp_pin_row *pinned =
            n_pins ? bsearch(tools[i].name, pins, n_pins, sizeof(*pins), compare_pins) : NULL;
        char hash[HASH_HEX_SIZE];

        why_not[i] = definition ? NULL : "its definition is larger than LIMIT_MCP_TOOL_BYTES";
        if (!definition)
            continue;
        hash_text_hex(slice_of(definition), hash);
        if (!judge(pinned, accepts_changes, arena_strdup(a, hash), definition, &changed[n_changed], &why_not[i]))
            continue;
        if (has_room(&kept, pinned, &changed[n_changed]))
            changed[n_changed++].tool = tools[i].name;
        else
            why_not[i] = "its server has had too many different tools (LIMIT_MCP_PINS, LIMIT_MCP_PIN_BYTES): remove "
                         "the server and add it again";
    }
    r = store_mcp_pins_put(store, server, changed, n_changed, e);
    if (r == -ENOENT)
        err_set(e, r, "SERVER_NOT_FOUND", "There is no MCP server named %.64s.", server);
    return r;
}

int mcp_pins_changed(struct store *store, const char *server, struct arena *a, struct mcp_pin_row **ret, size_t *ret_n,
                     struct err *e)
{
    struct mcp_pin_row *pins = NULL;
    size_t n_pins = 0, n = 0;
    int r = store_mcp_pins_list(store, a, server, &pins, &n_pins, e);

    for (size_t i = 0; r == 0 && i < n_pins; i++)
        if (pins[i].offered_hash)
            pins[n++] = pins[i];
    if (r < 0)
        return r;
    *ret = pins;
    *ret_n = n;
    return 0;
}

static int check_seen(const struct mcp_pin_row *pin, const char *hash, struct err *e)
{
    if (!hash || strcmp(pin->offered_hash, hash) == 0)
        return 0;
    return err_set(e, -EAGAIN, "TOOL_CHANGED",
                   "The definition of %.100s has changed again since it was shown: look at the difference once more.",
                   pin->tool);
}

int mcp_pins_accept(struct store *store, const char *server, const char *tool, const char *hash, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_pin_row *pins = NULL;
    size_t n_pins = 0, n = 0;
    int r = mcp_pins_changed(store, server, a, &pins, &n_pins, e);

    for (size_t i = 0; r == 0 && i < n_pins; i++) {
        if (tool && strcmp(tool, pins[i].tool) != 0)
            continue;
        r = check_seen(&pins[i], hash, e);
        pins[n++] = (struct mcp_pin_row){ .tool = pins[i].tool,
                                          .hash = pins[i].offered_hash,
                                          .definition = pins[i].offered_definition };
    }
    if (r == 0 && tool && n == 0)
        r = err_set(e, -ENOENT, "TOOL_NOT_FOUND", "The server %.64s has no tool %.100s whose definition changed.",
                    server, tool);
    return r < 0 ? r : store_mcp_pins_put(store, server, pins, n, e);
}
