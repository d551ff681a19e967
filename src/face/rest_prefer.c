#include "face/rest_prefer.h"

#include "base/limits.h"

#include <stdlib.h>
#include <strings.h>

enum { INT64_DIGITS = 18 };

static struct slice trim(struct slice s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (struct slice){ s.p + 1, s.n - 1 };
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* The next element of a list of a header; false at its end. */
static bool next_element(const char **at, struct slice *ret)
{
    size_t n = strcspn(*at, ",");

    if (!**at)
        return false;
    *ret = trim((struct slice){ *at, n });
    *at += n + ((*at)[n] == ',');
    return true;
}

static bool starts(struct slice s, const char *word)
{
    return s.n >= strlen(word) && strncasecmp(s.p, word, strlen(word)) == 0;
}

static bool is_word(struct slice s, const char *word)
{
    return s.n == strlen(word) && starts(s, word);
}

static int64_t number_of(struct slice digits)
{
    char text[INT64_DIGITS + 1] = "";

    if (digits.n == 0 || digits.n > INT64_DIGITS)
        return -1;
    memcpy(text, digits.p, digits.n);
    return text[strspn(text, "0123456789")] ? -1 : strtoll(text, NULL, 10);
}

/* ---- Prefer ---- */

/* Each preference counts once: its first value. */

static void take_return(struct rest_prefer *p, const char *value)
{
    if (!p->has_return)
        p->returns = value[0] == 'r' ? REST_REPRESENTATION : value[0] == 'h' ? REST_HEADERS_ONLY : REST_MINIMAL;
    p->has_return = true;
}

static void take_resolution(struct rest_prefer *p, const char *value)
{
    if (!p->has_resolution)
        p->resolution = value[0] == 'm' ? QUERY_CONFLICT_MERGED : QUERY_CONFLICT_IGNORED;
    p->has_resolution = true;
}

static void take_count(struct rest_prefer *p, const char *value)
{
    p->count = p->count ? p->count : value;
}

static void take_missing(struct rest_prefer *p, const char *value)
{
    if (!p->has_missing)
        p->is_default_for_missing = value[0] == 'd';
    p->has_missing = true;
}

static void take_handling(struct rest_prefer *p, const char *value)
{
    if (!p->has_handling)
        p->is_strict = value[0] == 's';
    p->has_handling = true;
}

/* A transaction ends with its request, as the hosted service has it. */
static void take_nothing(struct rest_prefer *p, const char *value)
{
}

static const struct preference {
    const char *name, *value;
    void (*take)(struct rest_prefer *p, const char *value);
} preferences[] = {
    { "return", "representation", take_return },
    { "return", "headers-only", take_return },
    { "return", "minimal", take_return },
    { "resolution", "merge-duplicates", take_resolution },
    { "resolution", "ignore-duplicates", take_resolution },
    { "count", "exact", take_count },
    { "count", "planned", take_count },
    { "count", "estimated", take_count },
    { "missing", "default", take_missing },
    { "missing", "null", take_missing },
    { "handling", "strict", take_handling },
    { "handling", "lenient", take_handling },
    { "tx", "commit", take_nothing },
    { "tx", "rollback", take_nothing },
    { NULL, NULL, NULL },
};

static bool take_max_affected(struct rest_prefer *p, struct slice element)
{
    const size_t n = strlen("max-affected=");
    int64_t max;

    if (!starts(element, "max-affected="))
        return false;
    max = number_of((struct slice){ element.p + n, element.n - n });
    if (max >= 0 && p->max_affected < 0)
        p->max_affected = max;
    return max >= 0;
}

static bool take(struct rest_prefer *p, struct slice element)
{
    const char *equals = element.n ? memchr(element.p, '=', element.n) : NULL;
    struct slice name = { element.p, equals ? (size_t)(equals - element.p) : element.n }, value;

    if (!equals)
        return false;
    value = (struct slice){ equals + 1, element.n - name.n - 1 };
    for (const struct preference *one = preferences; one->name; one++)
        if (is_word(name, one->name) && is_word(value, one->value)) {
            one->take(p, one->value);
            return true;
        }
    return take_max_affected(p, element);
}

int rest_prefer_read(struct arena *a, const char *header, struct rest_prefer *ret, struct err *e)
{
    struct rest_prefer p = { .max_affected = -1 };
    const char *at = header ? header : "", *unknown = NULL;
    struct slice element;

    while (next_element(&at, &element))
        if (element.n && !take(&p, element) && !unknown)
            unknown = arena_slicedup(a, element);
    if (p.is_strict && unknown) {
        err_set(e, -EINVAL, "BAD_PREFERENCE", "Invalid preferences given with handling=strict");
        err_add_extra(e, "details", arena_printf(a, "Invalid preferences: %.150s", unknown));
        return -EINVAL;
    }
    *ret = p;
    return 0;
}

static void add_applied(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s%s=%s", out->n ? ", " : "", name, value);
}

const char *rest_prefer_applied(struct arena *a, const struct rest_prefer *p, enum query_kind kind)
{
    static const char *const returns[] = { "minimal", "headers-only", "representation" };
    bool is_write = kind != QUERY_SELECT;
    struct buf out;

    buf_init(&out, KIB(1));
    if (kind == QUERY_INSERT && p->has_resolution)
        add_applied(&out, "resolution",
                    p->resolution == QUERY_CONFLICT_MERGED ? "merge-duplicates" : "ignore-duplicates");
    if (kind == QUERY_INSERT && p->has_missing)
        add_applied(&out, "missing", p->is_default_for_missing ? "default" : "null");
    if (is_write && p->has_return)
        add_applied(&out, "return", returns[p->returns]);
    if (p->count)
        add_applied(&out, "count", p->count);
    if (p->has_handling)
        add_applied(&out, "handling", p->is_strict ? "strict" : "lenient");
    if (is_write && p->is_strict && p->max_affected >= 0)
        add_applied(&out, "max-affected", arena_printf(a, "%lld", (long long)p->max_affected));
    return out.n ? buf_to_arena(&out, a) : NULL;
}

/* ---- Range ---- */

int rest_range_read(const char *header, const char *unit, int64_t *limit, int64_t *offset, struct err *e)
{
    const char *dash = header ? strchr(header, '-') : NULL;
    int64_t first, last, end;

    if (!dash || (unit && strcasecmp(unit, "items") != 0))
        return 0;
    first = number_of((struct slice){ header, (size_t)(dash - header) });
    last = dash[1] ? number_of(slice_of(dash + 1)) : INT64_MAX - 1;
    if (first < 0 || last < 0)
        return 0;
    if (last < first)
        return err_set(e, -ERANGE, "BAD_RANGE",
                       "The lower boundary must be lower than or equal to the upper boundary in the Range header.");
    end = *limit < 0 || *limit > INT64_MAX - 1 - *offset ? INT64_MAX - 1 : *offset + *limit - 1;
    end = MIN(end, last);
    *offset = MAX(*offset, first);
    *limit = end >= INT64_MAX - 1 ? -1 : MAX(end - *offset + 1, (int64_t)0);
    return 0;
}

/* ---- Accept ---- */

static bool takes_json(struct slice type)
{
    return is_word(type, "*/*") || is_word(type, "application/*") || is_word(type, "application/json");
}

static bool takes_object(struct slice type)
{
    return is_word(type, "application/vnd.pgrst.object+json") || is_word(type, "application/vnd.pgrst.object");
}

int rest_accept_read(const char *header, bool *ret_is_object, struct err *e)
{
    const char *at = header && *header ? header : "*/*";
    struct slice element;

    while (next_element(&at, &element)) {
        const char *parameters = element.n ? memchr(element.p, ';', element.n) : NULL;
        struct slice type = { element.p, parameters ? (size_t)(parameters - element.p) : element.n };

        type = trim(type);
        if (!takes_json(type) && (!takes_object(type) || memmem(element.p, element.n, "nulls=stripped", 14)))
            continue;
        *ret_is_object = takes_object(type);
        return 0;
    }
    err_set(e, -ENOTSUP, "NOT_ACCEPTABLE", "None of these media types are available: %.200s", header);
    err_add_extra(e, "hint", "application/json and application/vnd.pgrst.object+json are");
    return -ENOTSUP;
}
