#include "cli/out.h"

#include "base/limits.h"
#include "base/visible.h"

#include <stdarg.h>

static void write_visible(FILE *to, struct slice text, enum visible_form form)
{
    struct buf out;

    buf_init(&out, (size_t)6 * LIMIT_REPLY);
    visible_add(&out, text, form);
    fwrite(buf_str(&out), 1, out.n, to);
    buf_clear(&out);
}

static void write_line(FILE *to, struct slice text)
{
    size_t first = 0, last = text.n;

    while (first < text.n && text.p[first] == '\n')
        first++;
    while (last > first && text.p[last - 1] == '\n')
        last--;
    fwrite(text.p, 1, first, to);
    write_visible(to, (struct slice){ text.p + first, last - first }, VISIBLE_LINE);
    fwrite(text.p + last, 1, text.n - last, to);
}

static void PRINTF_LIKE(2, 0) print_to(FILE *to, const char *fmt, va_list ap)
{
    char *text = NULL;
    int n = vasprintf(&text, fmt, ap);

    if (n < 0)
        return;
    write_line(to, (struct slice){ text, (size_t)n });
    free(text);
}

void out_print(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    print_to(stdout, fmt, ap);
    va_end(ap);
}

void out_complain(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    print_to(stderr, fmt, ap);
    va_end(ap);
}

void out_lines(FILE *to, struct slice text)
{
    write_visible(to, text, VISIBLE_LINES);
}

void out_progress(struct slice line)
{
    fputs("\r\033[K", stderr);
    write_visible(stderr, line, VISIBLE_LINE);
    fflush(stderr);
}

void out_json(struct slice json)
{
    write_visible(stdout, json, VISIBLE_JSON);
}

char *out_shown(struct arena *a, struct slice value)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    visible_add(&out, value, VISIBLE_LINE);
    return buf_to_arena(&out, a);
}

void out_add_word(struct buf *to, const char *text)
{
    buf_add_char(to, '\'');
    for (; *text; text++)
        *text == '\'' ? buf_add_str(to, "'\\''") : buf_add_char(to, *text);
    buf_add_char(to, '\'');
}
