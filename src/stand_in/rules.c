#include "stand_in/rules.h"

#include "base/json_write.h"
#include "base/utf8.h"

#include <stdlib.h>

enum { TOKEN_BYTES = 16, REFUSAL_BYTES = 4096 };

/* ---- reading ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct slice trim(struct slice s)
{
    while (s.n > 0 && is_blank(s.p[0]))
        s = (struct slice){ s.p + 1, s.n - 1 };
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Takes the first word of *line, and the blanks behind it. */
static struct slice take_word(struct slice *line)
{
    size_t n = 0;
    struct slice word;

    while (n < line->n && !is_blank(line->p[n]))
        n++;
    word = (struct slice){ line->p, n };
    *line = trim((struct slice){ line->p + n, line->n - n });
    return word;
}

/* A whole number of at most nine digits; -1: the line does not begin with one. */
static int64_t take_number(struct slice *line)
{
    struct slice word = take_word(line);
    int64_t number = 0;

    if (word.n == 0 || word.n > 9)
        return -1;
    for (size_t i = 0; i < word.n; i++) {
        if (word.p[i] < '0' || word.p[i] > '9')
            return -1;
        number = 10 * number + word.p[i] - '0';
    }
    return number;
}

static const char *add_line(struct arena *a, const char *text, struct slice line)
{
    const char *own = arena_slicedup(a, line);

    return text ? arena_printf(a, "%s\n%s", text, own) : own;
}

static void read_say(struct arena *a, struct slice rest, struct stand_in_rules *rules)
{
    rules->say = add_line(a, rules->say, rest);
}

static void read_think(struct arena *a, struct slice rest, struct stand_in_rules *rules)
{
    rules->think = add_line(a, rules->think, rest);
}

static void read_call(struct arena *a, struct slice rest, struct stand_in_rules *rules)
{
    struct slice tool = take_word(&rest);

    if (rules->n_calls < LIMIT_STAND_IN_CALLS && (rest.n == 0 || rest.p[0] == '{'))
        rules->calls[rules->n_calls++] = (struct stand_in_call){ tool, rest };
}

static void read_slow(struct arena *a, struct slice rest, struct stand_in_rules *rules)
{
    int64_t ms = take_number(&rest);

    if (ms >= 0 && rest.n == 0)
        rules->slow_ms = MIN(ms, (int64_t)LIMIT_STAND_IN_WAIT_MS);
}

static void read_cut(struct arena *a, struct slice rest, struct stand_in_rules *rules)
{
    int64_t n = take_number(&rest);

    if (n >= 0 && rest.n == 0)
        rules->n_before_cut = n;
}

static void read_fail(struct arena *a, struct slice rest, struct stand_in_rules *rules)
{
    int64_t status = take_number(&rest);
    bool has_time = rest.n > 0;
    int64_t retry_after_s = has_time ? take_number(&rest) : -1;

    if (status < 400 || status > 599 || rest.n > 0 || (has_time && retry_after_s < 0))
        return;
    rules->fail_status = (int)status;
    rules->fail_retry_after_s = MIN(retry_after_s, (int64_t)LIMIT_STAND_IN_RETRY_S);
}

static void read_line(struct arena *a, struct slice line, struct stand_in_rules *rules)
{
    static const struct {
        const char *word;
        void (*read)(struct arena *a, struct slice rest, struct stand_in_rules *rules);
    } readers[] = { { "say", read_say },   { "think", read_think }, { "call", read_call },
                    { "slow", read_slow }, { "cut", read_cut },     { "fail", read_fail } };
    struct slice rest = trim(line), word = take_word(&rest);

    for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
        if (rest.n > 0 && slice_eq_str(word, readers[i].word))
            readers[i].read(a, rest, rules);
}

/* Only the beginning of a long text is searched, and only short lines are rules. */
void stand_in_read_rules(struct arena *a, struct slice text, struct stand_in_rules *ret)
{
    *ret = (struct stand_in_rules){ .n_before_cut = -1, .fail_retry_after_s = -1 };
    text.n = MIN(text.n, (size_t)LIMIT_STAND_IN_BYTES);
    while (text.n > 0) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;

        read_line(a, (struct slice){ text.p, n }, ret);
        n += end ? 1 : 0;
        text = (struct slice){ text.p + n, text.n - n };
    }
}

/* ---- tokens ---- */

static bool is_space(char c)
{
    return is_blank(c) || c == '\n';
}

size_t stand_in_token(struct slice text)
{
    size_t n = 0;

    while (n < text.n && !is_space(text.p[n]) && n < TOKEN_BYTES)
        n += MAX(utf8_char_bytes((struct slice){ text.p + n, text.n - n }), (size_t)1);
    while (n < text.n && is_space(text.p[n]))
        n++;
    return n;
}

size_t stand_in_count_tokens(struct slice text)
{
    size_t n_tokens = 0, n;

    for (; (n = stand_in_token(text)) > 0; n_tokens++)
        text = (struct slice){ text.p + n, text.n - n };
    return n_tokens;
}

/* ---- answers ---- */

struct http_inside *stand_in_answer(struct arena *a, struct slice body)
{
    struct http_inside *answer = ARENA_NEW(a, struct http_inside);
    struct slice *piece = ARENA_NEW(a, struct slice);

    *piece = body;
    *answer = (struct http_inside){ .peer = "the stand-in", .status = 200, .pieces = piece, .n_pieces = 1 };
    return answer;
}

struct http_inside *stand_in_refuse(struct arena *a, int status, int64_t retry_after_s, const char *why)
{
    struct http_call_header *header = ARENA_NEW(a, struct http_call_header);
    struct http_inside *answer;
    struct json_writer w;
    struct buf body;

    buf_init(&body, REFUSAL_BYTES);
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_begin_object_as(&w, "error");
    json_add_string(&w, "message", why);
    json_add_string(&w, "type",
                    status == 429   ? "rate_limit_error"
                    : status >= 500 ? "server_error"
                                    : "invalid_request_error");
    json_add_string(&w, "code", status == 404 ? "model_not_found" : NULL);
    json_end(&w);
    json_end(&w);
    answer = stand_in_answer(a, slice_of(buf_to_arena(&body, a)));
    buf_clear(&body);
    answer->status = status;
    if (retry_after_s < 0)
        return answer;
    *header = (struct http_call_header){ "retry-after", arena_printf(a, "%lld", (long long)retry_after_s) };
    answer->headers = header;
    answer->n_headers = 1;
    return answer;
}

struct http_inside *stand_in_obey(struct arena *a, const struct stand_in_rules *rules)
{
    struct http_inside *answer;

    if (!rules->fail_status)
        return NULL;
    answer = stand_in_refuse(a, rules->fail_status, rules->fail_retry_after_s,
                             arena_printf(a, "the text asks for it by its line `fail %d`.", rules->fail_status));
    answer->piece_ms = rules->slow_ms;
    return answer;
}
