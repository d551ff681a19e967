#include "speech/ears_answer.h"

#include "base/utf8.h"

void ears_answer_init(struct ears_answer *a)
{
    *a = (struct ears_answer){ .is_open = false };
    buf_init(&a->bytes, LIMIT_SPEECH_FRAME * 2 + sizeof(struct speech_frame));
}

void ears_answer_clear(struct ears_answer *a)
{
    buf_clear(&a->bytes);
}

void ears_answer_feed(struct ears_answer *a, struct slice bytes)
{
    buf_add_slice(&a->bytes, bytes);
}

static int refuse(struct err *e)
{
    return err_set(e, -EIO, "SPEECH_FAILED", "The worker that hears broke its protocol.");
}

/* Words and segments follow each other. */
static int take_times(struct ears_answer *a, uint32_t start_ms, uint32_t end_ms, struct ears_event *ret)
{
    ret->start_ms = start_ms;
    ret->end_ms = end_ms;
    return a->is_open && start_ms <= end_ms && end_ms <= (LIMIT_SPEECH_RECORDING_S + EARS_SEGMENT_S) * 1000;
}

static bool is_text(struct slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] <= ' ')
            return false;
    return text.n > 0 && text.n <= LIMIT_SPEECH_PHRASE && utf8_is_valid(text);
}

static int take_word(struct ears_answer *a, struct slice bytes, struct ears_event *ret, struct err *e)
{
    struct ears_frame_word head;

    if (bytes.n < sizeof(head))
        return refuse(e);
    memcpy(&head, bytes.p, sizeof(head));
    ret->kind = EARS_WORD;
    ret->word = (struct slice){ bytes.p + sizeof(head), bytes.n - sizeof(head) };
    ret->confidence = head.confidence_permille / 1000.0;
    a->n_text += ret->word.n + 1;
    if (!take_times(a, head.start_ms, head.end_ms, ret) || head.start_ms < a->last_ms || !is_text(ret->word) ||
        head.confidence_permille > 1000)
        return refuse(e);
    a->last_ms = head.end_ms;
    return a->n_text <= LIMIT_SPEECH_TRANSCRIPT
               ? 1
               : err_set(e, -EFBIG, "AUDIO_TOO_LONG", "The transcript is longer than %d bytes.",
                         LIMIT_SPEECH_TRANSCRIPT);
}

static int take_segment(struct ears_answer *a, struct slice bytes, struct ears_event *ret, struct err *e)
{
    struct ears_frame_segment segment;

    if (bytes.n != sizeof(segment))
        return refuse(e);
    memcpy(&segment, bytes.p, sizeof(segment));
    ret->kind = EARS_SEGMENT;
    return take_times(a, segment.start_ms, segment.end_ms, ret) ? 1 : refuse(e);
}

static int take_opened(struct ears_answer *a, struct slice bytes, struct ears_event *ret, struct err *e)
{
    if (a->is_open || bytes.n != sizeof(struct ears_frame_opened))
        return refuse(e);
    ret->kind = EARS_OPENED;
    a->is_open = true;
    return 1;
}

static int take_sound(const struct ears_answer *a, struct slice samples, struct ears_event *ret, struct err *e)
{
    ret->kind = EARS_SOUND;
    ret->word = samples;
    return a->is_open && samples.n > 0 && samples.n % sizeof(int16_t) == 0 ? 1 : refuse(e);
}

static bool is_line(struct slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ')
            return false;
    return text.n <= LIMIT_SPEECH_GUESS && utf8_is_valid(text);
}

static int take_guess(const struct ears_answer *a, struct slice text, struct ears_event *ret, struct err *e)
{
    ret->kind = EARS_GUESS;
    ret->word = text;
    return a->is_open && is_line(text) ? 1 : refuse(e);
}

static int take_done(struct ears_answer *a, struct slice bytes, struct ears_event *ret, struct err *e)
{
    struct ears_frame_done done;

    if (!a->is_open || bytes.n != sizeof(done))
        return refuse(e);
    memcpy(&done, bytes.p, sizeof(done));
    ret->kind = EARS_DONE;
    ret->end_ms = done.duration_ms;
    a->is_done = true;
    return 1;
}

static int take_refusal(struct slice bytes, struct err *e)
{
    struct ears_frame_refused refused;
    struct slice text;

    if (bytes.n < sizeof(refused))
        return refuse(e);
    memcpy(&refused, bytes.p, sizeof(refused));
    text = (struct slice){ bytes.p + sizeof(refused), bytes.n - sizeof(refused) };
    if (refused.why >= N_EARS_REFUSALS || !utf8_is_valid(text))
        return refuse(e);
    text = utf8_head(text, 180);
    if (refused.why == EARS_BAD_PHRASES)
        return err_add_field(e, "phrases", "%.*s", (int)text.n, text.p);
    if (refused.why == EARS_NO_DEVICE)
        return err_set(e, -ENODEV, "NO_AUDIO_DEVICE", "There is no microphone that can be used: %.*s", (int)text.n,
                       text.p);
    return refused.why == EARS_TOO_LONG
               ? err_set(e, -EFBIG, "AUDIO_TOO_LONG", "The recording %.*s", (int)text.n, text.p)
               : err_set(e, -EINVAL, "AUDIO_UNREADABLE", "The recording %.*s", (int)text.n, text.p);
}

static int take_failure(struct slice words, struct err *e)
{
    if (!utf8_is_valid(words))
        return refuse(e);
    return err_set(e, -EIO, "SPEECH_FAILED", "%.*s", (int)utf8_head(words, 300).n, words.p);
}

static int take_frame(struct ears_answer *a, uint32_t kind, struct slice bytes, struct ears_event *ret, struct err *e)
{
    if (a->is_done)
        return refuse(e);
    switch (kind) {
    case EARS_FRAME_OPENED:
        return take_opened(a, bytes, ret, e);
    case EARS_FRAME_WORD:
        return take_word(a, bytes, ret, e);
    case EARS_FRAME_SEGMENT:
        return take_segment(a, bytes, ret, e);
    case EARS_FRAME_DONE:
        return take_done(a, bytes, ret, e);
    case EARS_FRAME_SOUND:
        return take_sound(a, bytes, ret, e);
    case EARS_FRAME_GUESS:
        return take_guess(a, bytes, ret, e);
    case EARS_FRAME_REFUSED:
        return take_refusal(bytes, e);
    case SPEECH_FRAME_FAILED:
        return take_failure(bytes, e);
    default:
        return refuse(e);
    }
}

int ears_answer_next(struct ears_answer *a, struct ears_event *ret, struct err *e)
{
    struct speech_frame frame;

    buf_consume(&a->bytes, a->n_consumed);
    a->n_consumed = 0;
    if (a->bytes.n < sizeof(frame))
        return 0;
    memcpy(&frame, a->bytes.p, sizeof(frame));
    if (frame.n_bytes > LIMIT_SPEECH_FRAME)
        return refuse(e);
    if (a->bytes.n - sizeof(frame) < frame.n_bytes)
        return 0;
    *ret = (struct ears_event){ .kind = EARS_OPENED };
    a->n_consumed = sizeof(frame) + frame.n_bytes;
    return take_frame(a, frame.kind, (struct slice){ a->bytes.p + sizeof(frame), frame.n_bytes }, ret, e);
}
