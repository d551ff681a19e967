#include "os/child_log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

struct log_line {
    int64_t number, wall_ms;
    enum child_stream stream;
    size_t n;
    char text[]; /* n bytes and NUL */
};

/* The bytes read from a stream since its last newline. */
struct log_partial {
    char bytes[LIMIT_LOG_LINE_BYTES];
    size_t n;
    bool is_cut; /* the line is too long: further bytes are dropped until the newline */
};

struct child_log {
    atomic_uint n_refs;
    pthread_cond_t has_line;
    pthread_mutex_t mutex;                  /* guards all below */
    struct log_line *ring[LIMIT_LOG_LINES]; /* owned; line number i lives in slot i % LIMIT_LOG_LINES */
    int64_t oldest, next;                   /* numbers kept: oldest <= number < next */
    size_t n_bytes;
    struct buf text;                         /* of the line being added */
    struct log_partial partials[CHILD_NOTE]; /* of CHILD_STDOUT and CHILD_STDERR */
};

#define LOG_CUT_MARK " [line cut]"
#define LOG_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

const char *child_stream_name(enum child_stream s)
{
    static const char *const names[] = {
        [CHILD_STDOUT] = "stdout", [CHILD_STDERR] = "stderr", [CHILD_NOTE] = "note", [CHILD_ENTRY] = "log"
    };

    return names[s];
}

struct child_log *child_log_new(void)
{
    struct child_log *log = xcalloc(1, sizeof(*log));

    atomic_init(&log->n_refs, 1);
    pthread_mutex_init(&log->mutex, NULL);
    cond_init(&log->has_line);
    log->oldest = log->next = 1;
    buf_init(&log->text, LIMIT_LOG_LINE_BYTES + sizeof(LOG_CUT_MARK));
    return log;
}

struct child_log *child_log_ref(struct child_log *log)
{
    atomic_fetch_add(&log->n_refs, 1);
    return log;
}

static struct log_line **log_slot(struct child_log *log, int64_t number)
{
    return &log->ring[number % LIMIT_LOG_LINES];
}

static void log_drop_oldest(struct child_log *log)
{
    struct log_line **slot = log_slot(log, log->oldest++);

    log->n_bytes -= (*slot)->n;
    free(TAKE(*slot));
}

struct child_log *child_log_unref(struct child_log *log)
{
    if (!log || atomic_fetch_sub(&log->n_refs, 1) > 1)
        return NULL;
    while (log->oldest < log->next)
        log_drop_oldest(log);
    buf_clear(&log->text);
    pthread_cond_destroy(&log->has_line);
    pthread_mutex_destroy(&log->mutex);
    free(log);
    return NULL;
}

static bool log_is_control(struct slice character)
{
    unsigned char first = (unsigned char)character.p[0];

    if (character.n == 1)
        return (first < 0x20 && first != '\t') || first == 0x7F;
    return character.n == 2 && first == 0xC2 && (unsigned char)character.p[1] < 0xA0; /* C1: U+0080..U+009F */
}

/* Number of bytes at the start of s that need no change. */
static size_t log_clean_bytes(struct slice s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] >= 0x20 && s.p[n] < 0x7F)
        n++;
    return n;
}

/* Copies s as printable text, at most LIMIT_LOG_LINE_BYTES of it, in whole characters. Returns whether all of it
 * fitted. */
static bool log_sanitise(struct buf *out, struct slice s)
{
    while (s.n > 0) {
        size_t n_clean = log_clean_bytes(s), n_character = n_clean ? 0 : utf8_char_bytes(s);
        struct slice good = { s.p, n_clean ? n_clean : n_character }, add = good;

        if (good.n == 0 || (n_character && log_is_control(good)))
            add = SLICE_LIT(LOG_REPLACEMENT);
        if (out->n + add.n > LIMIT_LOG_LINE_BYTES)
            return false;
        buf_add_slice(out, add);
        good.n = MAX(good.n, (size_t)1);
        s = (struct slice){ s.p + good.n, s.n - good.n };
    }
    return true;
}

/* When the cut is inside a character, drops the first bytes of that character too. */
static struct slice log_whole_characters(struct slice s)
{
    for (size_t n_tail = 1; n_tail < 4 && n_tail <= s.n; n_tail++) {
        struct slice tail = { s.p + s.n - n_tail, n_tail };

        if ((unsigned char)tail.p[0] >= 0xC0)
            return utf8_char_bytes(tail) ? s : (struct slice){ s.p, s.n - n_tail };
    }
    return s;
}

/* Called with the mutex held. */
static void log_add_line(struct child_log *log, enum child_stream stream, struct slice raw, bool is_cut)
{
    struct buf *text = &log->text;
    struct log_line *line;

    buf_reset(text);
    if (!log_sanitise(text, is_cut ? log_whole_characters(raw) : raw) || is_cut)
        buf_add_str(text, LOG_CUT_MARK);
    line = xcalloc(1, sizeof(*line) + text->n + 1);
    *line = (struct log_line){ .number = log->next, .wall_ms = clock_wall_ms(), .stream = stream, .n = text->n };
    memcpy(line->text, buf_str(text), text->n);

    while (log->oldest < log->next &&
           (log->next - log->oldest == LIMIT_LOG_LINES || log->n_bytes + line->n > LIMIT_LOG_BYTES))
        log_drop_oldest(log);
    *log_slot(log, log->next++) = line;
    log->n_bytes += line->n;
    pthread_cond_broadcast(&log->has_line);
}

static void log_partial_add(struct log_partial *partial, struct slice bytes)
{
    size_t n = MIN(bytes.n, sizeof(partial->bytes) - partial->n);

    if (n > 0)
        memcpy(partial->bytes + partial->n, bytes.p, n);
    partial->n += n;
    partial->is_cut = partial->is_cut || n < bytes.n;
}

static void log_partial_end(struct child_log *log, enum child_stream stream)
{
    struct log_partial *partial = &log->partials[stream];
    struct slice raw = { partial->bytes, partial->n };

    if (raw.n > 0 && raw.p[raw.n - 1] == '\r') /* CR LF ends a line too */
        raw.n--;
    log_add_line(log, stream, raw, partial->is_cut);
    partial->n = 0;
    partial->is_cut = false;
}

void child_log_add_bytes(struct child_log *log, enum child_stream stream, struct slice bytes)
{
    pthread_mutex_lock(&log->mutex);
    while (bytes.n > 0) {
        const char *newline = memchr(bytes.p, '\n', bytes.n);
        size_t n = newline ? (size_t)(newline - bytes.p) : bytes.n;

        log_partial_add(&log->partials[stream], (struct slice){ bytes.p, n });
        if (newline)
            log_partial_end(log, stream);
        n += newline != NULL;
        bytes = (struct slice){ bytes.p + n, bytes.n - n };
    }
    pthread_mutex_unlock(&log->mutex);
}

void child_log_add_text(struct child_log *log, enum child_stream stream, struct slice text)
{
    pthread_mutex_lock(&log->mutex);
    while (text.n > 0) {
        const char *newline = memchr(text.p, '\n', text.n);
        size_t n = newline ? (size_t)(newline - text.p) : text.n, n_kept = MIN(n, (size_t)LIMIT_LOG_LINE_BYTES);

        log_add_line(log, stream, (struct slice){ text.p, n_kept }, n_kept < n);
        n += newline != NULL;
        text = (struct slice){ text.p + n, text.n - n };
    }
    pthread_mutex_unlock(&log->mutex);
}

void child_log_note(struct child_log *log, const char *fmt, ...)
{
    struct buf text;
    va_list ap;
    char *to;
    int n;

    buf_init(&text, LIMIT_LOG_LINE_BYTES);
    to = buf_reserve(&text, LIMIT_LOG_LINE_BYTES);
    va_start(ap, fmt);
    n = vsnprintf(to, LIMIT_LOG_LINE_BYTES, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&log->mutex);
    log_add_line(log, CHILD_NOTE, slice_of(to), n >= LIMIT_LOG_LINE_BYTES);
    pthread_mutex_unlock(&log->mutex);
    buf_clear(&text);
}

void child_log_flush(struct child_log *log)
{
    pthread_mutex_lock(&log->mutex);
    for (enum child_stream stream = CHILD_STDOUT; stream < CHILD_NOTE; stream++)
        if (log->partials[stream].n > 0)
            log_partial_end(log, stream);
    pthread_mutex_unlock(&log->mutex);
}

size_t child_log_lines(struct child_log *log, struct arena *a, int64_t after, size_t max, struct child_line **ret)
{
    struct child_line *lines;
    int64_t first;
    size_t n;

    pthread_mutex_lock(&log->mutex);
    first = MAX(log->oldest, MAX(after, 0) + 1);
    n = first < log->next ? (size_t)(log->next - first) : 0;
    if (n > max) {
        first += (int64_t)(n - max);
        n = max;
    }
    lines = arena_array(a, n, sizeof(*lines));
    for (size_t i = 0; i < n; i++) {
        const struct log_line *line = *log_slot(log, first + (int64_t)i);

        lines[i] =
            (struct child_line){ line->number, line->wall_ms, line->stream, arena_strndup(a, line->text, line->n) };
    }
    pthread_mutex_unlock(&log->mutex);
    *ret = lines;
    return n;
}

/* Number of the n-th line of the stream counted from the newest; called with the mutex held. */
static int64_t log_tail_start(struct child_log *log, enum child_stream stream, size_t n)
{
    int64_t number = log->next;

    while (n > 0 && number > log->oldest) {
        number--;
        n -= (*log_slot(log, number))->stream == stream;
    }
    return number;
}

char *child_log_tail(struct child_log *log, struct arena *a, enum child_stream stream, size_t n)
{
    struct buf text;

    buf_init(&text, LIMIT_LOG_BYTES + LIMIT_LOG_LINES);
    pthread_mutex_lock(&log->mutex);
    for (int64_t number = log_tail_start(log, stream, n); number < log->next; number++) {
        const struct log_line *line = *log_slot(log, number);

        if (line->stream != stream)
            continue;
        if (text.n > 0)
            buf_add_char(&text, '\n');
        buf_add(&text, line->text, line->n);
    }
    pthread_mutex_unlock(&log->mutex);
    return buf_to_arena(&text, a);
}

char *child_log_text(struct child_log *log, struct arena *a)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct child_line *lines;
    size_t n = child_log_lines(log, scratch, 0, LIMIT_LOG_LINES, &lines);
    char time[TIME_TEXT_SIZE];
    struct buf text;

    buf_init(&text, LIMIT_LOG_BYTES + LIMIT_LOG_LINES * (sizeof(time) + 16));
    for (size_t i = 0; i < n; i++) {
        clock_format(lines[i].wall_ms, time);
        buf_printf(&text, "%s %s %s\n", time, child_stream_name(lines[i].stream), lines[i].text);
    }
    return buf_to_arena(&text, a);
}

/* The flags cannot wake the waiting thread, so they are polled at this interval. */
enum { LOG_LOOK_MS = 200 };

void child_log_wait(struct child_log *log, int64_t after, int timeout_ms, const atomic_bool *is_gone,
                    const atomic_bool *is_leaving)
{
    int64_t end_us = clock_mono_us() + (int64_t)timeout_ms * 1000;

    pthread_mutex_lock(&log->mutex);
    while (log->next <= after + 1 && !atomic_load(is_gone) && !atomic_load(is_leaving) && clock_mono_us() < end_us)
        cond_wait_until(&log->has_line, &log->mutex, MIN(clock_mono_us() + LOG_LOOK_MS * 1000, end_us));
    pthread_mutex_unlock(&log->mutex);
}
