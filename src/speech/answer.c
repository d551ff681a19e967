#include "speech/answer.h"

#include "base/utf8.h"

void speech_answer_init(struct speech_answer *a, struct buf *out, size_t n_max)
{
    *a = (struct speech_answer){ .out = out, .n_max = n_max };
    buf_init(&a->frame, LIMIT_SPEECH_FRAME * 2 + sizeof(struct speech_frame));
}

void speech_answer_clear(struct speech_answer *a)
{
    buf_clear(&a->frame);
}

static int refuse(struct err *e)
{
    return err_set(e, -EIO, "SPEECH_FAILED", "The speech worker broke its protocol.");
}

static int take_output(struct speech_answer *a, struct slice bytes, struct err *e)
{
    if (bytes.n > a->n_max - a->n_out)
        return refuse(e);
    a->n_out += bytes.n;
    buf_add_slice(a->out, bytes);
    return 0;
}

static int take_hello(struct speech_answer *a, struct slice bytes, struct err *e)
{
    struct speech_frame_hello hello;

    if (bytes.n < sizeof(hello.version))
        return refuse(e);
    memcpy(&hello.version, bytes.p, sizeof(hello.version));
    if (hello.version != SPEECH_FRAMES_VERSION)
        return err_set(e, -EIO, "SPEECH_FAILED", "The speech worker belongs to another version of hearth.");
    if (bytes.n != sizeof(hello) || !memchr(bytes.p + sizeof(hello.version), '\0', sizeof(hello.engine)))
        return refuse(e);
    memcpy(&a->hello, bytes.p, sizeof(a->hello));
    return 1;
}

static int take_done(struct speech_answer *a, struct slice bytes, struct err *e)
{
    if (bytes.n != sizeof(a->done))
        return refuse(e);
    memcpy(&a->done, bytes.p, sizeof(a->done));
    if (a->done.rate < SPEECH_RATE_MIN || a->done.rate > SPEECH_RATE_MAX)
        return refuse(e);
    return 1;
}

static int take_failure(struct slice words, struct err *e)
{
    if (!utf8_is_valid(words))
        return refuse(e);
    return err_set(e, -EIO, "SPEECH_FAILED", "%.*s", (int)utf8_head(words, 300).n, words.p);
}

static int take_frame(struct speech_answer *a, uint32_t kind, struct slice bytes, struct err *e)
{
    if (kind == SPEECH_FRAME_FAILED)
        return take_failure(bytes, e);
    if (a->is_start)
        return kind == SPEECH_FRAME_HELLO ? take_hello(a, bytes, e) : refuse(e);
    if (kind == SPEECH_FRAME_TAKEN)
        return a->is_flow && bytes.n == 0 ? 1 : refuse(e);
    if (kind == SPEECH_FRAME_AUDIO || kind == SPEECH_FRAME_VOICES)
        return take_output(a, bytes, e);
    return kind == SPEECH_FRAME_DONE ? take_done(a, bytes, e) : refuse(e);
}

/* Takes the first frame when it is complete: 1 taken and the answer goes on, 0 incomplete, 2 taken and the end. */
static int step(struct speech_answer *a, struct err *e)
{
    struct speech_frame frame;
    int r;

    if (a->frame.n < sizeof(frame))
        return 0;
    memcpy(&frame, a->frame.p, sizeof(frame));
    if (frame.n_bytes > LIMIT_SPEECH_FRAME)
        return refuse(e);
    if (a->frame.n - sizeof(frame) < frame.n_bytes)
        return 0;
    r = take_frame(a, frame.kind, (struct slice){ a->frame.p + sizeof(frame), frame.n_bytes }, e);
    buf_consume(&a->frame, sizeof(frame) + frame.n_bytes);
    return r < 0 ? r : r + 1;
}

int speech_answer_feed(struct speech_answer *a, struct slice bytes, struct err *e)
{
    int r = 1;

    while (r == 1 && bytes.n > 0) {
        size_t n = MIN(bytes.n, (size_t)LIMIT_SPEECH_FRAME);

        buf_add(&a->frame, bytes.p, n);
        bytes = (struct slice){ bytes.p + n, bytes.n - n };
        while ((r = step(a, e)) == 1)
            ;
        r = r == 0 ? 1 : r;
    }
    if (r == 2 && (a->frame.n > 0 || bytes.n > 0))
        return refuse(e); /* nothing may follow the end of an answer */
    return r < 0 ? r : r == 2;
}

static bool is_voice(struct slice name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!memchr("-_", name.p[i], 2) && !(name.p[i] >= '0' && name.p[i] <= '9') &&
            !((name.p[i] | 0x20) >= 'a' && (name.p[i] | 0x20) <= 'z'))
            return false;
    return name.n > 0 && name.n <= LIMIT_SPEECH_VOICE;
}

struct speech_voices speech_answer_voices(struct arena *arena, struct slice list)
{
    const char **items = arena_array(arena, list.n / 2 + 2, sizeof(*items));
    struct speech_voices voices = { items, 0 };

    while (list.n > 0) {
        const char *end = memchr(list.p, '\n', list.n);
        struct slice name = { list.p, end ? (size_t)(end - list.p) : list.n };
        size_t n = MIN(name.n + 1, list.n);

        if (is_voice(name) && !speech_voices_find(&voices, name))
            items[voices.n++] = arena_slicedup(arena, name);
        list = (struct slice){ list.p + n, list.n - n };
    }
    return voices;
}
