#include "agents/private.h"

#include "base/limits.h"

enum { ERROR_LINES = 20, ERROR_BYTES = 4000 };

static struct slice trimmed(struct slice text)
{
    static const char blanks[] = " \t\r\n";

    while (text.n > 0 && memchr(blanks, text.p[0], sizeof(blanks) - 1)) {
        text.p++;
        text.n--;
    }
    while (text.n > 0 && memchr(blanks, text.p[text.n - 1], sizeof(blanks) - 1))
        text.n--;
    return text;
}

/* {"output": text}, and "truncated": true when the output is longer. */
static void write_output(struct buf *out, struct slice output, bool is_cut)
{
    struct json_writer w;

    buf_reset(out);
    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_slice(&w, "output", output);
    if (is_cut)
        json_add_bool(&w, "truncated", true);
    json_end(&w);
}

/* Escapes may make the text longer than a result may be: then the text is cut at its end. */
static char *wrapped(struct slice output, bool is_cut, struct arena *a)
{
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    write_output(&out, output, is_cut);
    while (out.n > LIMIT_RESULT_BYTES) {
        output.n -=
            MIN(output.n, MAX(output.n - (size_t)((double)output.n * LIMIT_RESULT_BYTES / (double)out.n), (size_t)32));
        write_output(&out, output, true);
    }
    return buf_to_arena(&out, a);
}

static const char *result_of(const struct agent_end *end, struct arena *a)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct slice output = trimmed(end->output);
    struct json_value parsed;

    if (output.n == 0)
        return "{}";
    if (!end->is_output_cut && json_parse(scratch, output, &parsed, NULL) == 0)
        return arena_slicedup(a, output);
    return wrapped(output, end->is_output_cut, a);
}

/* The last lines of standard error; NULL when standard error is empty. */
static const char *last_words(const struct agent_end *end, struct arena *a)
{
    const char *tail = child_log_tail(end->log, a, CHILD_STDERR, ERROR_LINES);
    size_t n = strlen(tail);

    if (n > ERROR_BYTES)
        for (tail += n - ERROR_BYTES; ((unsigned char)*tail & 0xc0) == 0x80; tail++)
            ; /* start at a whole character */
    return n ? tail : NULL;
}

static const char *error_of(const struct agent_end *end, struct arena *a)
{
    const char *words = last_words(end, a);
    const char *how = NULL;

    if (end->how.timed_out)
        how = arena_printf(a, "timed out after %g s", end->timeout_s);
    else if (end->how.signal)
        how = arena_printf(a, "ended by signal %d (%s)", end->how.signal, strsignal(end->how.signal));
    else if (!words)
        how = arena_printf(a, "ended with exit code %d", end->how.code);
    if (!how || !words)
        return how ? how : words;
    return arena_printf(a, "%s\n%s", how, words);
}

void agent_outcome_read(const struct agent_end *end, struct arena *a, struct agent_outcome *ret)
{
    bool is_success = end->how.code == 0 && !end->how.timed_out;

    *ret = (struct agent_outcome){
        .is_success = is_success,
        .was_stopped = end->how.was_stopped,
        .was_crowded = end->how.was_crowded && !end->how.was_stopped && !end->how.timed_out,
        .result_json = is_success ? result_of(end, a) : NULL,
        .error = is_success ? NULL : error_of(end, a),
        .log = child_log_text(end->log, a),
    };
}
