#include "llm/protocols/stops.h"

#include "base/limits.h"

#include <string.h>

struct stops {
    struct llm_sink to;
    const struct field_strings *words;
    struct buf held; /* text that may begin a stop */
    bool ends_at_once, has_stopped, has_ended;
};

bool llm_takes_stops(const struct llm_account *acc, const char *model)
{
    enum llm_stops stops = acc->preset->protocol->stops;

    return stops == LLM_STOPS_ALL || (stops == LLM_STOPS_NOT_REASONING && !llm_model_is_reasoning(model));
}

static int put(struct stops *s, size_t n)
{
    int r = n > 0 ? s->to.on_text(s->to.arg, (struct slice){ s->held.p, n }) : 0;

    buf_consume(&s->held, n);
    return r;
}

static int end(struct stops *s, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    if (s->has_ended)
        return 0;
    s->has_ended = true;
    return s->to.on_end(s->to.arg, why, usage, model);
}

/* Where the first stop begins; the length of the held text: there is no stop. */
static size_t find_stop(const struct stops *s)
{
    size_t first = s->held.n;

    for (size_t i = 0; i < s->words->n; i++) {
        size_t n = strlen(s->words->items[i]);
        const char *at = n > 0 && s->held.n > 0 ? memmem(s->held.p, s->held.n, s->words->items[i], n) : NULL;

        if (at)
            first = MIN(first, (size_t)(at - s->held.p));
    }
    return first;
}

/* The number of bytes at the end that may begin a stop. */
static size_t begun_stop(const struct stops *s)
{
    size_t most = 0;

    for (size_t i = 0; i < s->words->n; i++) {
        const char *word = s->words->items[i];

        for (size_t n = MIN(strlen(word), s->held.n); n > most; n--)
            if (memcmp(s->held.p + s->held.n - n, word, n) == 0)
                most = n;
    }
    return most;
}

static int on_text(void *arg, struct slice text)
{
    struct stops *s = arg;
    size_t at;
    int r;

    if (s->has_stopped)
        return 0;
    buf_add_slice(&s->held, text);
    at = find_stop(s);
    if (at == s->held.n)
        return put(s, s->held.n - begun_stop(s));
    r = put(s, at);
    s->has_stopped = true;
    return r < 0 || !s->ends_at_once ? r : end(s, LLM_FINISH_STOP, NULL, NULL);
}

static int on_reasoning(void *arg, struct slice text)
{
    struct stops *s = arg;

    return s->has_stopped ? 0 : s->to.on_reasoning(s->to.arg, text);
}

static int on_tool(void *arg, size_t index, const char *id, const char *name, struct slice arguments)
{
    struct stops *s = arg;
    int r = s->has_stopped ? 0 : put(s, s->held.n);

    return r < 0 || s->has_stopped ? r : s->to.on_tool(s->to.arg, index, id, name, arguments);
}

static int on_signature(void *arg, bool is_hidden, struct slice signature)
{
    struct stops *s = arg;

    return s->has_stopped ? 0 : s->to.on_signature(s->to.arg, is_hidden, signature);
}

static int on_extra(void *arg, size_t index, struct slice extra)
{
    struct stops *s = arg;

    return s->has_stopped ? 0 : s->to.on_extra(s->to.arg, index, extra);
}

static int on_end(void *arg, enum llm_finish why, const struct llm_usage *usage, const char *model)
{
    struct stops *s = arg;
    int r = s->has_stopped ? 0 : put(s, s->held.n);

    return r < 0 ? r : end(s, s->has_stopped ? LLM_FINISH_STOP : why, usage, model);
}

static void clear_stops(void *arg)
{
    struct stops *s = arg;

    buf_clear(&s->held);
}

struct llm_sink llm_stops_sink(struct arena *a, const struct field_strings *stops, bool ends_at_once,
                               const struct llm_sink *to)
{
    struct stops *s = ARENA_NEW(a, struct stops);

    s->to = *to;
    s->words = stops;
    s->ends_at_once = ends_at_once;
    buf_init(&s->held, 2 * (size_t)LIMIT_LLM_ANSWER);
    arena_defer(a, clear_stops, s);
    return (struct llm_sink){ .on_text = on_text,
                              .on_reasoning = on_reasoning,
                              .on_tool = on_tool,
                              .on_signature = on_signature,
                              .on_extra = on_extra,
                              .on_end = on_end,
                              .arg = s };
}
