#include "vector/remote/remote_record.h"

#include "base/hash.h"
#include "base/uuid.h"

/* ---- tokens ---- */

/* The text that is hashed for a value; NULL: equality is not supported for its type. Integers are written as doubles:
 * different integers of 2^53 and more may share a token. */
static const char *value_text(struct arena *a, struct json_value value)
{
    double d = json_double(value);
    char number[40];

    switch (json_type(value)) {
    case JSON_BOOL:
        return json_bool(value) ? "true" : "false";
    case JSON_INT:
    case JSON_DOUBLE:
        return arena_printf(a, "n%s", remote_double_text(d == 0 ? 0 : d, number));
    case JSON_STRING:
        return arena_printf(a, "s%.*s", (int)json_string(value).n, json_string(value).p);
    default:
        return NULL;
    }
}

static const char *token_of(struct arena *a, struct slice key, struct json_value value)
{
    const char *text = value_text(a, value);
    char hex[HASH_HEX_SIZE];

    if (!text)
        return NULL;
    hash_text_hex(slice_of(arena_printf(a, "%zu %.*s %s", key.n, (int)key.n, key.p, text)), hex);
    return arena_strndup(a, hex, REMOTE_TOKEN_CHARS);
}

bool remote_has_tokens(const struct vector_condition *c)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value choice;

    if (c->op == VECTOR_EQ)
        return value_text(a, c->value) != NULL;
    if (c->op != VECTOR_IN)
        return false;
    for (struct json_iter it = json_iter(c->value); json_next(&it, NULL, &choice);)
        if (!value_text(a, choice))
            return false;
    return json_length(c->value) > 0;
}

struct field_strings remote_tokens_of(struct arena *a, const struct vector_condition *c)
{
    const char **tokens = arena_array(a, json_length(c->value) + 2, sizeof(char *));
    struct json_value choice;
    size_t n = 0;

    tokens[n++] = REMOTE_MANY;
    if (c->op == VECTOR_EQ)
        tokens[n++] = token_of(a, slice_of(c->key), c->value);
    else
        for (struct json_iter it = json_iter(c->value); json_next(&it, NULL, &choice);)
            tokens[n++] = token_of(a, slice_of(c->key), choice);
    return (struct field_strings){ tokens, n };
}

struct field_strings remote_uuids_of(struct arena *a, const char *const *ids, size_t n)
{
    const char **uuids = arena_array(a, n + 1, sizeof(char *));
    char uuid[UUID_SIZE];

    for (size_t i = 0; i < n; i++) {
        uuid_of_text(slice_of(ids[i]), uuid);
        uuids[i] = arena_strdup(a, uuid);
    }
    return (struct field_strings){ uuids, n };
}

/* The texts are hex and hyphens, or REMOTE_MANY, so nothing needs escaping. */
const char *remote_quoted(struct arena *a, const struct field_strings *texts)
{
    struct buf out;

    buf_init(&out, LIMIT_BODY_CHAT);
    for (size_t i = 0; i < texts->n; i++)
        buf_printf(&out, "%s\"%s\"", i ? "," : "", texts->items[i]);
    return buf_to_arena(&out, a);
}

/* ---- records ---- */

static void add_tokens(struct json_writer *w, const char *metadata, const char *uuid)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value members = { 0 }, value;
    struct slice key;
    bool is_read = json_parse(a, slice_of(metadata), &members, NULL) == 0,
         is_many = !is_read || json_length(members) > REMOTE_TOKENS_MAX;

    json_begin_array_as(w, REMOTE_TOKENS);
    if (uuid)
        json_add_string(w, NULL, uuid);
    if (is_many)
        json_add_string(w, NULL, REMOTE_MANY);
    for (struct json_iter it = json_iter(members); !is_many && json_next(&it, &key, &value);) {
        const char *token = token_of(a, key, value);

        if (token)
            json_add_string(w, NULL, token);
    }
    json_end(w);
}

void remote_add_members(struct json_writer *w, const char *ns, const struct vector_record *record, double length,
                        const char *uuid)
{
    const char *metadata = record->metadata ? record->metadata : "{}";

    json_add_string(w, REMOTE_ID, record->id);
    json_add_string(w, REMOTE_NAMESPACE, ns);
    json_add_double(w, REMOTE_LENGTH, length);
    json_add_string(w, REMOTE_JSON, metadata);
    add_tokens(w, metadata, uuid);
}

int remote_read_members(const struct remote_op *op, struct arena *a, struct json_value members,
                        const struct remote_raw *more, size_t n_dimensions, struct vector_hit *ret, struct err *e)
{
    struct remote_raw raw = *more;

    raw.id = json_get(members, REMOTE_ID);
    raw.id_name = REMOTE_ID;
    raw.metadata = json_get(members, REMOTE_JSON);
    raw.length = json_get(members, REMOTE_LENGTH);
    return remote_read_record(op, a, &raw, n_dimensions, ret, e);
}
