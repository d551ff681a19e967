/* References to schemas (RFC 3986, section 5.2.2). */
#include "base/json_schema_private.h"

#include <string.h>

struct uri {
    struct slice scheme, authority, path, query; /* p NULL: absent; path may be empty */
};

static struct slice between(const char *start, const char *end)
{
    return (struct slice){ start, (size_t)(end - start) };
}

/* The first of the characters in s; its end when there is none. */
static const char *find_any(struct slice s, const char *characters)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] && strchr(characters, s.p[i]))
            return s.p + i;
    return s.p + s.n;
}

static struct slice without_fragment(struct slice s)
{
    return s.p ? between(s.p, find_any(s, "#")) : (struct slice){ "", 0 };
}

/* The expression of appendix B. */
static struct uri parse(struct slice s)
{
    struct uri uri = { 0 };
    const char *end, *at;

    s = without_fragment(s);
    end = s.p + s.n;
    at = find_any(s, ":/?");
    if (at < end && *at == ':' && at > s.p) {
        uri.scheme = between(s.p, at);
        s = between(at + 1, end);
    }
    if (s.n >= 2 && memcmp(s.p, "//", 2) == 0) {
        at = find_any(between(s.p + 2, end), "/?");
        uri.authority = between(s.p + 2, at);
        s = between(at, end);
    }
    at = find_any(s, "?");
    uri.path = between(s.p, at);
    if (at < end)
        uri.query = between(at + 1, end);
    return uri;
}

/* Section 5.2.4, for the text that out holds from `from` on. */
static void remove_dots(struct buf *out, size_t from)
{
    char *start = out->p + from, *end = out->p + out->n, *to = start;

    for (const char *at = start; at < end;) {
        const char *next = memchr(at + 1, '/', (size_t)(end - at - 1));
        struct slice part = between(at, next ? next : end);
        bool is_dot = slice_eq_str(part, "/."), is_dots = slice_eq_str(part, "/..");

        if (is_dots)
            while (to > start && *--to != '/')
                ;
        if (!is_dot && !is_dots) {
            memmove(to, at, part.n);
            to += part.n;
        } else if (!next) {
            *to++ = '/';
        }
        at += part.n;
    }
    out->n = (size_t)(to - out->p);
    *to = '\0';
}

/* Section 5.2.3 */
static void write_path(struct buf *out, const struct uri *base, struct slice path)
{
    const char *last = memrchr(base->path.p ? base->path.p : "", '/', base->path.n);
    size_t from = out->n;

    if (path.n == 0 || path.p[0] != '/') {
        if (base->authority.p && base->path.n == 0)
            buf_add_char(out, '/');
        else if (last)
            buf_add_slice(out, between(base->path.p, last + 1));
    }
    buf_add_slice(out, path);
    if (out->n > from && out->p[from] == '/')
        remove_dots(out, from);
}

static void write_part(struct buf *out, const char *before, struct slice part, const char *after)
{
    if (!part.p)
        return;
    buf_add_str(out, before);
    buf_add_slice(out, part);
    buf_add_str(out, after);
}

struct slice uri_resolve(struct arena *a, struct slice base_text, struct slice reference)
{
    struct uri base = parse(base_text), uri = parse(reference), nothing = { 0 };
    bool is_whole = uri.scheme.p, has_authority = is_whole || uri.authority.p;
    struct slice query = uri.query.p || uri.path.n > 0 || has_authority ? uri.query : base.query;
    struct buf out;
    size_t n;

    buf_init(&out, base_text.n + reference.n + 16);
    write_part(&out, "", is_whole ? uri.scheme : base.scheme, ":");
    write_part(&out, "//", has_authority ? uri.authority : base.authority, "");
    if (uri.path.n > 0 || has_authority)
        write_path(&out, has_authority ? &nothing : &base, uri.path);
    else
        buf_add_slice(&out, base.path);
    write_part(&out, "?", query, "");
    n = out.n;
    return (struct slice){ buf_to_arena(&out, a), n };
}

struct slice uri_fragment(struct slice reference, bool *has_fragment)
{
    const char *hash = reference.n > 0 ? memchr(reference.p, '#', reference.n) : NULL;

    if (has_fragment)
        *has_fragment = hash != NULL;
    return hash ? between(hash + 1, reference.p + reference.n) : (struct slice){ "", 0 };
}
