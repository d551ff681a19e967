/* The first byte chooses: a form (multipart/form-data), the answer of the worker that hears, phrases, or samples that
 * are cut into segments, or a text of a push-to-talk session. Parts of a form lie within the body; pieces do not change
 * what is read; no segment is too long. */
#include "api/form.h"
#include "speech/ears_answer.h"
#include "speech/ears_phrases.h"
#include "speech/segments.h"
#include "speech/sessions.h"

#include <assert.h>
#include <stdlib.h>

struct values {
    const char *text;
    int64_t number;
};

static const struct field values_fields[] = { FIELD_STRING(struct values, text, "text", .max = 100),
                                              FIELD_INT(struct values, number, "n", .max = 9), FIELD_END };

static void read_form(struct slice body)
{
    struct arena *a = arena_new();
    struct form form;
    struct values values = { .number = 0 };

    if (form_read("multipart/form-data; boundary=b", body, &form, NULL) == 0) {
        for (size_t i = 0; i < form.n; i++)
            assert(form.parts[i].name.p >= body.p && form.parts[i].data.p >= body.p &&
                   form.parts[i].data.p + form.parts[i].data.n <= body.p + body.n && form.parts[i].name.n > 0);
        (void)!form_fields(&form, values_fields, &values, a, NULL);
    }
    arena_free(a);
}

/* The type of the body comes from outside, too. */
static void read_type(struct slice text)
{
    struct arena *a = arena_new();
    struct form form;

    if (!memchr(text.p, '\0', text.n))
        (void)!form_read(arena_slicedup(a, text), SLICE_LIT("--b\r\n\r\n--b--"), &form, NULL);
    arena_free(a);
}

static void read_answer(struct slice bytes, size_t piece)
{
    struct ears_answer answer;
    struct ears_event event;
    int r = 0;

    ears_answer_init(&answer);
    for (size_t at = 0; r == 0 && at < bytes.n; at += piece) {
        ears_answer_feed(&answer, (struct slice){ bytes.p + at, MIN(piece, bytes.n - at) });
        while ((r = ears_answer_next(&answer, &event, NULL)) == 1)
            assert(event.start_ms <= event.end_ms || event.kind == EARS_DONE);
    }
    ears_answer_clear(&answer);
}

static void read_phrases(struct slice text)
{
    struct arena *a = arena_new();
    enum ears_phrases kind;
    struct slice lines;

    if (!memchr(text.p, '\0', text.n) && ears_phrases_read(a, arena_slicedup(a, text), &kind, &lines, NULL) == 0)
        assert(kind == EARS_GRAMMAR || !memchr(lines.p, ',', lines.n));
    arena_free(a);
}

static int check_segment(void *arg, const int16_t *samples, size_t n, uint64_t first)
{
    uint64_t *next = arg;

    assert(n <= SEGMENT_SAMPLES && first >= *next);
    *next = first + n;
    return 0;
}

static int check_growth(void *arg, const int16_t *samples, size_t n)
{
    assert(n > 0 && n < SEGMENT_SAMPLES);
    return 0;
}

static void cut(struct slice bytes)
{
    struct segments *s = malloc(sizeof(*s));
    uint64_t next = 0;
    int16_t samples[64];

    assert(s);
    segments_init(s, check_segment, &next);
    s->grows = bytes.n % 2 ? check_growth : NULL;
    for (size_t round = 0; round < 300; round++)
        for (size_t at = 0; at + sizeof(samples) <= bytes.n; at += sizeof(samples)) {
            memcpy(samples, bytes.p + at, sizeof(samples));
            assert(segments_add(s, samples, ARRAY_SIZE(samples)) == 0);
        }
    assert(segments_end(s) == 0);
    free(s);
}

/* A text message of a push-to-talk session. */
static void read_message(struct slice text)
{
    static const struct slice end = SLICE_LIT("{\"type\":\"end\"}");

    assert(speech_session_is_end(text) || text.n != end.n || memcmp(text.p, end.p, end.n) != 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    struct slice rest = { (const char *)data + 1, n - 1 };

    if (n < 1 || n > 4096)
        return 0;
    if (data[0] & 0x80) {
        read_message(rest);
        return 0;
    }
    switch (data[0] % 5) {
    case 0:
        read_form(rest);
        break;
    case 1:
        read_type(rest);
        break;
    case 2:
        read_answer(rest, 1 + data[0] % 32);
        break;
    case 3:
        read_phrases(rest);
        break;
    default:
        cut(rest);
    }
    return 0;
}
