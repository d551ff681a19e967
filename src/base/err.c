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

/* Formats beside e first: the arguments may be e's own text. */
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
    char rule[2 * sizeof(e->fields[0].rule)];
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
    copy_cut(e->code, sizeof(e->code), "INTERNAL_ERROR");
    return -errno_value;
}
