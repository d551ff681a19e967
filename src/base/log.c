#include "base/log.h"
#include "base/clock.h"
#include "base/limits.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One write of at most PIPE_BUF bytes never mixes with another's, even through a pipe. */
static_assert(LIMIT_LOG_OWN_LINE_BYTES <= PIPE_BUF, "log lines must be written whole");

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

/* A line stays a line: control characters become spaces. */
static void flatten(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = ' ';
    }
}

static size_t print_text(char line[LIMIT_LOG_OWN_LINE_BYTES], enum log_level level, const char *area,
                         const char *request_id, const char *text)
{
    char now[TIME_TEXT_SIZE];
    int n;

    clock_now_text(now);
    n = snprintf(line, LIMIT_LOG_OWN_LINE_BYTES, "%s %-5s %s %s%s%s%s", now, level_names[level], area,
                 request_id ? "[" : "", request_id ? request_id : "", request_id ? "] " : "", text);
    flatten(line);
    return MIN((size_t)n, (size_t)LIMIT_LOG_OWN_LINE_BYTES - 1);
}

void log_write(enum log_level level, const char *area, const char *request_id, const char *fmt, ...)
{
    char text[LIMIT_LOG_OWN_LINE_BYTES], line[LIMIT_LOG_OWN_LINE_BYTES];
    int saved_errno = errno;
    va_list ap;
    size_t n;

    if (!log_enabled(level))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    n = print_text(line, level, area, request_id, text);
    line[n] = '\n';
    if (write(STDERR_FILENO, line, n + 1) < 0) {
        /* There is nobody left to tell. */
    }
    errno = saved_errno;
}

enum { QUOTE_RING = 8, QUOTE_MAX = 200, QUOTE_SIZE = 4 * QUOTE_MAX + 6 };

/* C1 control characters, in UTF-8 c2 80 to c2 9f, steer terminals too. */
static bool is_control(const unsigned char *c)
{
    return *c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f);
}

/* Writes one character of the quoted form and says how many bytes of input it took. */
static size_t quote_char(char **to, const unsigned char *c)
{
    static const char letters[] = { ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['"'] = '"', ['\\'] = '\\' };

    if (*c < sizeof(letters) && letters[*c]) {
        *(*to)++ = '\\';
        *(*to)++ = letters[*c];
    } else if (is_control(c)) {
        size_t n = *c == 0xc2 ? 2 : 1;

        *to += snprintf(*to, 5, "\\x%02x", c[n - 1]);
        return n;
    } else {
        *(*to)++ = (char)*c;
    }
    return 1;
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
            n--;                        /* not inside a UTF-8 character */
    }
    *to++ = '"';
    for (size_t i = 0; i < n;)
        i += quote_char(&to, (const unsigned char *)s + i);
    *to++ = '"';
    memcpy(to, s[n] ? "..." : "", s[n] ? 4 : 1);
    return text;
}
