#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/pattern_private.h"

#include "base/limits.h"

#include <pcre2.h>
#include <stdio.h>

enum { BYTES_A_STEP = 64, CHARACTERS_A_STEP = 16, FRAME_BYTES_A_STEP = 2048 };

struct pattern {
    struct slice source; /* borrowed from whoever made it */
    pcre2_code *code;    /* owned */
    size_t weight;       /* steps of one callout: what may happen until the next one */
    bool has_references; /* \1 compares without a callout */
};

struct search {
    const struct pattern *pattern;
    size_t *n_steps, max_steps;
    size_t at; /* of the callout before */
};

static void free_code(void *code)
{
    pcre2_code_free(code);
}

static pcre2_code *compile(const struct pattern_text *text, char why[PATTERN_WHY_SIZE])
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_MATCH_UNSET_BACKREF | PCRE2_ALLOW_EMPTY_CLASS |
                             PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT;
    pcre2_code *code;
    size_t at;
    int error;

    pcre2_set_parens_nest_limit(context, LIMIT_PATTERN_GROUPS);
    pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALLOW_SURROGATE_ESCAPES);
    code = pcre2_compile((PCRE2_SPTR)buf_str(&text->out), text->out.n, options, &error, &at, context);
    if (!code) {
        unsigned char reason[PATTERN_WHY_SIZE] = "";

        pcre2_get_error_message(error, reason, sizeof(reason));
        snprintf(why, PATTERN_WHY_SIZE, "cannot be used: %s", (const char *)reason);
    }
    pcre2_compile_context_free(context);
    return code;
}

/* An item may compare each of its least repeats with a long class, and copies the groups matched so far. */
static size_t weigh(const pcre2_code *code, const struct pattern_text *text)
{
    size_t frame = 0;

    pcre2_pattern_info(code, PCRE2_INFO_FRAMESIZE, &frame);
    return (1 + text->longest_class / BYTES_A_STEP) * (1 + text->largest_least / BYTES_A_STEP) *
           (1 + frame / FRAME_BYTES_A_STEP);
}

const struct pattern *pattern_new(struct arena *a, struct slice source, char why[PATTERN_WHY_SIZE])
{
    struct pattern *p = ARENA_NEW(a, struct pattern);
    struct pattern_text text;
    uint32_t n_references = 0;

    pattern_translate(source, &text);
    if (*text.why)
        snprintf(why, PATTERN_WHY_SIZE, "%s", text.why);
    else
        p->code = compile(&text, why);
    buf_clear(&text.out);
    if (!p->code)
        return NULL;
    arena_defer(a, free_code, p->code);
    pcre2_pattern_info(p->code, PCRE2_INFO_BACKREFMAX, &n_references);
    p->source = source;
    p->has_references = n_references > 0;
    p->weight = weigh(p->code, &text);
    return p;
}

struct slice pattern_source(const struct pattern *p)
{
    return p->source;
}

/* PCRE2 calls this before each item of the expression that it tries. Its own limit counts neither the places where a
 * match may start nor the characters that one item takes. */
static int count_steps(pcre2_callout_block *block, void *arg)
{
    struct search *s = arg;
    size_t at = block->current_position, n = MAX(at, s->at) - MIN(at, s->at);

    if (s->pattern->has_references)
        n += block->subject_length - at;
    s->at = at;
    *s->n_steps += (1 + n / CHARACTERS_A_STEP) * s->pattern->weight;
    return *s->n_steps > s->max_steps ? PCRE2_ERROR_CALLOUT : 0;
}

static int search(struct search *s, struct slice text)
{
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(s->pattern->code, NULL);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    int r;

    pcre2_set_callout(context, count_steps, s);
    pcre2_set_match_limit(context, LIMIT_SCHEMA_STEPS);
    pcre2_set_depth_limit(context, LIMIT_SCHEMA_STEPS);
    pcre2_set_heap_limit(context, LIMIT_PATTERN_HEAP >> 10);
    r = pcre2_match(s->pattern->code, (PCRE2_SPTR)(text.p ? text.p : ""), text.n, 0, 0, data, context);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
    return r;
}

int pattern_search(const struct pattern *p, struct slice text, size_t *n_steps, size_t max_steps)
{
    struct search s = { .pattern = p, .n_steps = n_steps, .max_steps = max_steps };
    int r;

    *n_steps += 1 + text.n / BYTES_A_STEP;
    if (*n_steps > max_steps)
        return -E2BIG;
    r = search(&s, text);
    if (r >= 0 || r == PCRE2_ERROR_NOMATCH)
        return r >= 0;
    if (r != PCRE2_ERROR_CALLOUT && r != PCRE2_ERROR_MATCHLIMIT && r != PCRE2_ERROR_DEPTHLIMIT)
        return -ENOMEM;
    *n_steps = max_steps + 1;
    return -E2BIG;
}
