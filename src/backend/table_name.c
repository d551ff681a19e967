#include "backend/backend.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <string.h>

/* A part of a name as the database has it. */
struct part {
    char text[LIMIT_TABLE_NAME_PART + 1];
    size_t n; /* more than LIMIT_TABLE_NAME_PART: too long, the rest is left out */
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void add(struct part *part, char c)
{
    if (part->n < LIMIT_TABLE_NAME_PART)
        part->text[part->n] = c;
    part->n++;
}

/* Both return what follows the part. */
static const char *read_quoted(const char *at, struct part *ret)
{
    for (at++; *at && (*at != '"' || at[1] == '"'); at++) {
        at += *at == '"';
        add(ret, *at);
    }
    return *at ? at + 1 : NULL; /* no closing quote */
}

static const char *read_plain(const char *at, struct part *ret)
{
    for (; is_letter(*at) || (ret->n > 0 && is_digit(*at)); at++)
        add(ret, *at);
    return at;
}

/* NULL: it is no part. */
static const char *read_part(const char *at, struct part *ret)
{
    *ret = (struct part){ .n = 0 };
    at = *at == '"' ? read_quoted(at, ret) : read_plain(at, ret);
    return ret->n > 0 && ret->n <= LIMIT_TABLE_NAME_PART && utf8_is_valid(slice_of(ret->text)) ? at : NULL;
}

static bool read_name(const char *text, struct part *ret_schema, struct part *ret_table)
{
    const char *at = read_part(text, ret_table);

    *ret_schema = (struct part){ "public", strlen("public") };
    if (at && *at == '.') {
        *ret_schema = *ret_table;
        at = read_part(at + 1, ret_table);
    }
    return at && !*at;
}

static bool is_plain(const struct part *part)
{
    struct part again = { .n = 0 };

    return *read_plain(part->text, &again) == '\0';
}

static void put_part(struct buf *out, const struct part *part)
{
    bool is_bare = is_plain(part);

    buf_add_str(out, is_bare ? "" : "\"");
    for (size_t i = 0; i < part->n; i++) {
        if (part->text[i] == '"')
            buf_add_char(out, '"');
        buf_add_char(out, part->text[i]);
    }
    buf_add_str(out, is_bare ? "" : "\"");
}

int backend_table_name(struct arena *a, const char *declared, char **ret, struct err *e)
{
    struct part schema, table;
    struct buf out;

    if (!read_name(declared ? declared : "", &schema, &table))
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "a table name must be " BACKEND_TABLE_RULE,
                       LIMIT_TABLE_NAME_PART);
    buf_init(&out, LIMIT_TABLE_NAME);
    if (strcmp(schema.text, "public") != 0) {
        put_part(&out, &schema);
        buf_add_char(&out, '.');
    }
    put_part(&out, &table);
    *ret = buf_to_arena(&out, a);
    return 0;
}

struct table_parts backend_table_parts(struct arena *a, const char *name)
{
    struct part schema, table;

    if (!read_name(name, &schema, &table))
        return (struct table_parts){ "public", arena_strdup(a, name) };
    return (struct table_parts){ arena_strdup(a, schema.text), arena_strdup(a, table.text) };
}
