#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Copies what fits and never ends inside a UTF-8 character. */
static void copy_cut(char *to, size_t size, const char *from)
{
    size_t n = strlen(from);

    if (n >= size) {
        n = size - 1;
        while (n > 0 && ((unsigned char)from[n] & 0xc0) == 0x80)
            n--;
    }
    memmove(to, from, n);
    to[n] = '\0';
}

/* Formats into a separate buffer first: the arguments may point into e's own text. */
PRINTF_LIKE(3, 0)
static void format_text(struct err *e, const char *before, const char *fmt, va_list ap, const char *after)
{
    char middle[2 * sizeof(e->text)], whole[4 * sizeof(e->text)];

    vsnprintf(middle, sizeof(middle), fmt, ap);
    snprintf(whole, sizeof(whole), "%s%s%s", before, middle, after);
    copy_cut(e->text, sizeof(e->text), whole);
}

struct err *err_place(struct err **place)
{
    if (!*place)
        *place = xcalloc(1, sizeof(**place));
    return *place;
}

int err_set(struct err *e, int r, const char *code, const char *fmt, ...)
{
    va_list ap;

    assert(r < 0);
    if (!e)
        return r;
    va_start(ap, fmt);
    format_text(e, "", fmt, ap, "");
    va_end(ap);
    copy_cut(e->code, sizeof(e->code), code);
    return r;
}

int err_add_field(struct err *e, const char *field, const char *fmt, ...)
{
    char rule[2 * sizeof(((struct err *)0)->fields[0].rule)];
    va_list ap;

    if (!e)
        return -EINVAL;
    va_start(ap, fmt);
    vsnprintf(rule, sizeof(rule), fmt, ap);
    va_end(ap);

    if (e->n_fields == 0)
        err_set(e, -EINVAL, "VALIDATION_ERROR", "%s%s%s%s", *field ? "`" : "", field, *field ? "` " : "", rule);
    if (e->n_fields < ERR_MAX_FIELDS) {
        copy_cut(e->fields[e->n_fields].field, sizeof(e->fields[0].field), field);
        copy_cut(e->fields[e->n_fields].rule, sizeof(e->fields[0].rule), rule);
    }
    e->n_fields++;
    return -EINVAL;
}

void err_add_extra(struct err *e, const char *key, const char *value)
{
    if (!e || e->n_extras >= ERR_MAX_EXTRAS)
        return;
    copy_cut(e->extras[e->n_extras].key, sizeof(e->extras[0].key), key);
    copy_cut(e->extras[e->n_extras].value, sizeof(e->extras[0].value), value);
    e->n_extras++;
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Finds the host as a whole word at or after `from`; NULL: none. */
static const char *find_host(const char *text, const char *from, const char *host)
{
    size_t n = strlen(host);

    for (const char *at = strcasestr(from, host); at; at = strcasestr(at + 1, host)) {
        bool goes_on = is_of_name(at[n]) || (at[n] == '.' && is_of_name(at[n + 1]));

        if (!goes_on && (at == text || (!is_of_name(at[-1]) && at[-1] != '.')))
            return at;
    }
    return NULL;
}

static size_t port_bytes(const char *text)
{
    size_t n = *text == ':' ? strspn(text + 1, "0123456789") : 0;

    return n ? n + 1 : 0;
}

void err_strip_hidden(struct err *e)
{
    size_t from = MIN((size_t)e->hidden_from, strlen(e->text)), n_host = strlen(e->hidden);
    const char *at;

    if (n_host == 0)
        return;
    while ((at = find_host(e->text, e->text + from, e->hidden))) {
        char before[sizeof(e->text)], whole[2 * sizeof(e->text)];
        const char *after = at + n_host + port_bytes(at + n_host);

        snprintf(before, sizeof(before), "%.*s", (int)(at - e->text), e->text);
        snprintf(whole, sizeof(whole), "%s%s%s", before, e->hidden_as, after);
        from = strlen(before) + strlen(e->hidden_as);
        copy_cut(e->text, sizeof(e->text), whole);
        from = MIN(from, strlen(e->text));
    }
}

int err_prefix(struct err *e, int r, const char *fmt, ...)
{
    char after[sizeof(e->text) + 2];
    va_list ap;

    if (!e)
        return r;
    snprintf(after, sizeof(after), ": %s", e->text);
    va_start(ap, fmt);
    format_text(e, "", fmt, ap, after);
    va_end(ap);
    return r;
}

const char *err_code_of(int r, const char *otherwise)
{
    static const struct {
        int errno_value;
        const char *code;
    } wants[] = {
        { EMFILE, "TOO_FEW_FILES" },
        { ENFILE, "TOO_FEW_FILES" },
        { ENOMEM, "OUT_OF_MEMORY" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(wants); i++)
        if (wants[i].errno_value == -r)
            return wants[i].code;
    return otherwise;
}

int err_errno(struct err *e, int errno_value, const char *fmt, ...)
{
    char reason[128], after[160];
    va_list ap;

    if (!e)
        return -errno_value;
    snprintf(after, sizeof(after), ": %s", strerror_r(errno_value, reason, sizeof(reason)));
    va_start(ap, fmt);
    format_text(e, "", fmt, ap, after);
    va_end(ap);
    copy_cut(e->code, sizeof(e->code), err_code_of(-errno_value, "INTERNAL_ERROR"));
    return -errno_value;
}
