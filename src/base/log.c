#include "base/log.h"
#include "base/clock.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/log_writer.h"
#include "base/utf8.h"
#include "base/visible.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A write of at most PIPE_BUF bytes is never interleaved with another write, even in a pipe. */
static_assert(LIMIT_LOG_OWN_LINE_BYTES <= PIPE_BUF, "log lines must be written whole");

enum { LOG_ID_SHOWN = 128 }; /* bytes of a request id */

static const char *const level_names[] = {
    [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"
};

static atomic_int current_level = LOG_INFO;
static atomic_bool as_json;

void log_setup(enum log_level level, bool json)
{
    atomic_store(&current_level, (int)level);
    atomic_store(&as_json, json);
}

int log_level_parse(const char *name, enum log_level *ret)
{
    for (size_t i = 0; name && i < ARRAY_SIZE(level_names); i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *ret = (enum log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

static void print_text(struct buf *line, enum log_level level, const char *area, const char *request_id,
                       struct slice text)
{
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    buf_printf(line, "%s %-5s %s ", now, level_names[level], area);
    if (request_id) {
        buf_add_char(line, '[');
        visible_add(line, (struct slice){ request_id, strnlen(request_id, LOG_ID_SHOWN) }, VISIBLE_LINE);
        buf_add_str(line, "] ");
    }
    visible_add(line, text, VISIBLE_LINE);
}

static void print_json(struct buf *line, enum log_level level, const char *area, const char *request_id,
                       struct slice text)
{
    struct json_writer w;
    char now[TIME_TEXT_SIZE];
    struct buf plain;

    clock_now_text(now);
    buf_init(&plain, LIMIT_LOG_OWN_LINE_BYTES);
    json_write_init(&w, &plain);
    json_begin_object(&w);
    json_add_string(&w, "time", now);
    json_add_string(&w, "level", level_names[level]);
    json_add_string(&w, "area", area);
    if (request_id)
        json_add_slice(&w, "request_id", (struct slice){ request_id, strnlen(request_id, LOG_ID_SHOWN) });
    json_add_slice(&w, "text", text);
    json_end(&w);
    visible_add(line, buf_slice(&plain), VISIBLE_JSON);
    line->overflowed = line->overflowed || plain.overflowed;
    buf_clear(&plain);
}

/* Shortens the text until the line fits: a line that is cut would not be valid JSON. */
static void write_line(enum log_level level, const char *area, const char *request_id, const char *text)
{
    bool is_json = atomic_load(&as_json);
    struct slice shown = slice_of(text);
    struct buf line;

    buf_init(&line, LIMIT_LOG_OWN_LINE_BYTES);
    for (;;) {
        (is_json ? print_json : print_text)(&line, level, area, request_id, shown);
        buf_add_char(&line, '\n');
        if (!line.overflowed || shown.n == 0)
            break;
        shown.n -= shown.n / 8 + 1;
        buf_reset(&line);
    }
    if (!log_writer_add(buf_slice(&line)) && write(STDERR_FILENO, line.p, line.n) < 0) {
        /* Standard error cannot be written: there is nowhere to report that. */
    }
    buf_clear(&line);
}

static void report_dropped_lines(void)
{
    uint64_t n = log_writer_take_dropped();
    char text[96];

    if (n == 0)
        return;
    snprintf(text, sizeof(text), "%llu log lines were dropped here because standard error was not read",
             (unsigned long long)n);
    write_line(LOG_WARN, "log", NULL, text);
}

void log_write(enum log_level level, const char *area, const char *request_id, const char *fmt, ...)
{
    char text[LIMIT_LOG_OWN_LINE_BYTES];
    int saved_errno = errno;
    va_list ap;

    if (!log_enabled(level))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    report_dropped_lines();
    write_line(level, area, request_id, text);
    errno = saved_errno;
}

enum { QUOTE_RING = 8, QUOTE_MAX = 200, QUOTE_SIZE = 4 * QUOTE_MAX + 6 };

/* C1 control characters, in UTF-8 c2 80 to c2 9f, steer terminals too. */
static bool is_control(const char *c)
{
    unsigned char first = (unsigned char)c[0];

    return first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)c[1] <= 0x9f);
}

/* Writes the quoted form of the first character and returns how many bytes were read. */
static size_t quote_char(char **to, struct slice rest)
{
    static const char letters[] = { ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['"'] = '"', ['\\'] = '\\' };
    unsigned char first = (unsigned char)rest.p[0];
    size_t n = utf8_char_bytes(rest);

    if (first < sizeof(letters) && letters[first]) {
        *to += snprintf(*to, 3, "\\%c", letters[first]);
    } else if (n == 0 || is_control(rest.p)) {
        n = MAX(n, (size_t)1);
        *to += snprintf(*to, 5, "\\x%02x", (unsigned char)rest.p[n - 1]);
    } else {
        memcpy(*to, rest.p, n);
        *to += n;
    }
    return n;
}

const char *log_quote(const char *s)
{
    static _Thread_local char ring[QUOTE_RING][QUOTE_SIZE];
    static _Thread_local unsigned next;
    char *text = ring[next++ % QUOTE_RING], *to = text;
    size_t n;

    if (!s)
        return "null";
    n = strnlen(s, QUOTE_MAX + 1);
    if (n > QUOTE_MAX) {
        n = QUOTE_MAX;
        while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
            n--; /* not inside a UTF-8 character */
    }
    *to++ = '"';
    for (size_t i = 0; i < n;)
        i += quote_char(&to, (struct slice){ s + i, n - i });
    *to++ = '"';
    memcpy(to, s[n] ? "..." : "", s[n] ? 4 : 1);
    return text;
}
