#include "base/json_write.h"
#include "base/limits.h"
#include "identity/audit.h"
#include "identity/state.h"

#include <ctype.h>

#define MASK "****"

/* Members that hold a secret are recognized by a part of their name, without _ and -. */
static bool is_secret_name(struct slice name)
{
    static const char *const parts[] = { "apikey", "accesskey",  "privatekey",    "secret", "token",
                                         "passw",  "passphrase", "authorization", "cookie", "credential" };
    char plain[64];
    size_t n = 0;

    for (size_t i = 0; i < name.n && n + 1 < sizeof(plain); i++)
        if (name.p[i] != '_' && name.p[i] != '-')
            plain[n++] = (char)tolower((unsigned char)name.p[i]);
    plain[n] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (strstr(plain, parts[i]))
            return true;
    return strcmp(plain, "key") == 0;
}

static size_t span_to(struct slice text, size_t from, const char *ends)
{
    while (from < text.n && !strchr(ends, text.p[from]))
        from++;
    return from;
}

/* The whole text is an address: in a command line, something that looks like a query may be a command. */
static bool is_address(struct slice text)
{
    return span_to(text, 0, " \t\r\n\"'`;|<>$()\\") == text.n;
}

/* "https://user:password@host/path?token=x" without user, password and query. */
static void write_text(struct json_writer *w, const char *name, struct slice text)
{
    const char *found = memmem(text.p, text.n, "://", 3);
    size_t host = found ? (size_t)(found - text.p) + 3 : text.n, path = span_to(text, host, "/?# \t\r\n\"'"), rest = 0,
           end = text.n;
    struct buf masked;

    buf_init(&masked, LIMIT_REPLY);
    for (size_t i = host; i < path; i++)
        if (text.p[i] == '@')
            rest = i;
    if (rest) {
        buf_add(&masked, text.p, host);
        buf_add_str(&masked, MASK);
    }
    if (found && is_address(text))
        end = MIN(span_to(text, path, "?") + 1, text.n);
    buf_add(&masked, text.p + rest, end - rest);
    if (end < text.n)
        buf_add_str(&masked, MASK);
    json_add_slice(w, name, buf_slice(&masked));
    buf_clear(&masked);
}

/* The JSON reader limits how deep a value is. */
// NOLINTNEXTLINE(misc-no-recursion)
static void write_masked(struct json_writer *w, const char *name, struct json_value value, bool is_secret)
{
    enum json_type type = json_type(value);
    struct json_value item;
    struct slice key = { 0 };

    if (type == JSON_STRING && is_secret) {
        json_add_string(w, name, json_string(value).n ? MASK : "");
    } else if (type == JSON_STRING) {
        write_text(w, name, json_string(value));
    } else if (type == JSON_OBJECT || type == JSON_ARRAY) {
        (type == JSON_OBJECT ? json_begin_object_as : json_begin_array_as)(w, name);
        for (struct json_iter it = json_iter(value); json_next(&it, &key, &item);)
            write_masked(w, type == JSON_OBJECT ? key.p : NULL, item,
                         is_secret || (type == JSON_OBJECT && (is_secret_name(key) || slice_eq_str(key, "headers"))));
        json_end(w);
    } else {
        json_add_value(w, name, value);
    }
}

/* Shortens a detail that exceeds the limit to its beginning and a hash, which shows whether two details are the same.
 */
static void shorten(struct buf *detail)
{
    struct slice begin = { detail->p, LIMIT_AUDIT_DETAIL / 4 };
    char hash[HASH_HEX_SIZE];
    struct json_writer w;
    struct buf out;

    if (detail->n <= LIMIT_AUDIT_DETAIL)
        return;
    hash_text_hex(buf_slice(detail), hash);
    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_int(&w, "bytes", (int64_t)detail->n);
    json_add_string(&w, "blake2b", hash);
    json_add_slice(&w, "begins", begin);
    json_end(&w);
    buf_clear(detail);
    *detail = out;
}

int audit_append_values(struct identity *id, const char *actor, const char *action, const char *subject,
                        struct json_value values, struct err *e)
{
    struct json_writer w;
    struct buf detail;
    int r;

    buf_init(&detail, LIMIT_REPLY);
    json_write_init(&w, &detail);
    write_masked(&w, NULL, values, false);
    shorten(&detail);
    r = audit_append(id, actor, action, subject, buf_str(&detail), e);
    buf_clear(&detail);
    return r;
}

int audit_append_json(struct identity *id, const char *actor, const char *action, const char *subject,
                      struct slice json, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value values;
    int r = json_parse(a, json, &values, e);

    return r < 0 ? r : audit_append_values(id, actor, action, subject, values, e);
}
