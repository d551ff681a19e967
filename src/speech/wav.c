#include "speech/wav.h"

#include "base/limits.h"
#include "speech/worker_frames.h"

#include <math.h>
#include <string.h>

enum { CHUNK_HEAD = 8, FORMAT_BYTES = 16, OPEN_LENGTH = 0x7fff0000, MAX_CHANNELS = 8 };
enum { FORMAT_FLOAT = 3, FORMAT_EXTENSIBLE = 0xfffe };

static int refuse(struct err *e, const char *why)
{
    return err_set(e, -EBADMSG, "SPEECH_FAILED", "it %s.", why);
}

/* The caller has checked that the bytes are there. */
static uint32_t read_le(const char *at, size_t n)
{
    uint32_t value = 0;

    for (size_t i = 0; i < n; i++)
        value |= (uint32_t)(unsigned char)at[i] << (8 * i);
    return value;
}

static struct slice rest_of(struct slice s, size_t n)
{
    return (struct slice){ s.p + n, s.n - n };
}

static int read_format(struct slice chunk, struct speech_wav *ret, struct err *e)
{
    if (chunk.n < FORMAT_BYTES)
        return refuse(e, "sent a WAV whose format is cut off");
    *ret = (struct speech_wav){
        read_le(chunk.p, 2), read_le(chunk.p + 2, 2), read_le(chunk.p + 4, 4), read_le(chunk.p + 14, 2), 0, 0
    };
    if (ret->kind == FORMAT_EXTENSIBLE && chunk.n >= FORMAT_BYTES + 10)
        ret->kind = read_le(chunk.p + FORMAT_BYTES + 8, 2);
    if (ret->n_channels < 1 || ret->n_channels > MAX_CHANNELS)
        return refuse(e, "sent a WAV that has not 1 to 8 channels");
    if (ret->rate < SPEECH_RATE_MIN || ret->rate > SPEECH_RATE_MAX)
        return refuse(e, "sent a WAV that has not 8,000 to 48,000 samples a second");
    if (!(ret->kind == SPEECH_WAV_PCM && ret->bits == 16) && !(ret->kind == FORMAT_FLOAT && ret->bits == 32))
        return refuse(e, "sent a WAV whose samples are neither of 16 bits nor floating-point numbers");
    return 0;
}

static double sample_at(const struct speech_wav *f, const char *at)
{
    uint32_t bits = read_le(at, f->bits / 8);
    float value;

    if (f->kind == SPEECH_WAV_PCM)
        return (int16_t)bits;
    memcpy(&value, &bits, sizeof(value));
    return isfinite(value) ? MAX(-1.0, MIN(1.0, (double)value)) * 32767 : 0;
}

size_t speech_wav_frame(const struct speech_wav *wav)
{
    return wav->n_channels * wav->bits / 8;
}

static int16_t mean_at(const struct speech_wav *wav, const char *frame)
{
    double sum = 0;

    for (uint32_t c = 0; c < wav->n_channels; c++)
        sum += sample_at(wav, frame + c * (wav->bits / 8));
    return (int16_t)(sum / wav->n_channels + (sum < 0 ? -0.5 : 0.5));
}

size_t speech_wav_mix(const struct speech_wav *wav, struct slice bytes, struct buf *out)
{
    const size_t n_frame = speech_wav_frame(wav), n = n_frame > 0 ? bytes.n / n_frame * n_frame : 0;

    if (wav->kind == SPEECH_WAV_PCM && wav->n_channels == 1) {
        buf_add(out, bytes.p, n);
        return n;
    }
    for (size_t at = 0; at < n; at += n_frame) {
        const int16_t value = mean_at(wav, bytes.p + at);
        const char pair[] = { (char)(value & 0xff), (char)((value >> 8) & 0xff) };

        buf_add(out, pair, sizeof(pair));
    }
    return n;
}

/* A length of 0 or of nearly 4 GiB is not known yet. */
static int take_data(const char *head, size_t n_head, struct speech_wav *ret, struct err *e)
{
    uint32_t n = read_le(head + 4, 4);

    if (speech_wav_frame(ret) == 0)
        return refuse(e, "sent a WAV without a format");
    ret->n_head = n_head;
    ret->n_data = n > 0 && n < OPEN_LENGTH ? n : SIZE_MAX;
    return 1;
}

int speech_wav_head(struct slice bytes, struct speech_wav *ret, struct err *e)
{
    struct slice at;
    int r = 0;

    *ret = (struct speech_wav){ 0 };
    if (bytes.n < 12)
        return 0;
    if (memcmp(bytes.p, "RIFF", 4) != 0 || memcmp(bytes.p + 8, "WAVE", 4) != 0)
        return refuse(e, "sent something that is no WAV");
    for (at = rest_of(bytes, 12); r == 0 && at.n >= CHUNK_HEAD;) {
        size_t n = read_le(at.p + 4, 4), n_left = at.n - CHUNK_HEAD;

        if (memcmp(at.p, "data", 4) == 0)
            return take_data(at.p, bytes.n - n_left, ret, e);
        if (n > n_left)
            return 0;
        if (memcmp(at.p, "fmt ", 4) == 0)
            r = read_format((struct slice){ at.p + CHUNK_HEAD, n }, ret, e);
        at = rest_of(at, CHUNK_HEAD + MIN(n + (n & 1), n_left));
    }
    return r;
}

/* The bytes may be those of the reader's caller: they are copied only to be mixed. */
static struct slice samples_of(const struct speech_wav *wav, struct slice data, struct arena *a)
{
    struct buf out;
    size_t n;

    if (wav->kind == SPEECH_WAV_PCM && wav->n_channels == 1)
        return (struct slice){ data.p, data.n & ~(size_t)1 };
    buf_init(&out, data.n);
    speech_wav_mix(wav, data, &out);
    n = out.n;
    return (struct slice){ buf_to_arena(&out, a), n };
}

int speech_wav_read(struct slice bytes, struct arena *a, struct speech_pcm *ret, struct err *e)
{
    struct speech_wav wav;
    struct slice data;
    int r = speech_wav_head(bytes, &wav, e);

    if (r < 0)
        return r;
    if (r == 0)
        return refuse(e, bytes.n == 0 ? "sent nothing" : "sent a WAV without sound");
    data = rest_of(bytes, wav.n_head);
    if (wav.n_data != SIZE_MAX && wav.n_data > data.n)
        return refuse(e, "sent a WAV that breaks off");
    data.n = MIN(data.n, wav.n_data);
    if (data.n < speech_wav_frame(&wav))
        return refuse(e, "sent a WAV without sound");
    *ret = (struct speech_pcm){ samples_of(&wav, data, a), wav.rate };
    return 0;
}
