#include "speech/wav.h"

#include "base/limits.h"
#include "speech/worker_frames.h"

#include <math.h>
#include <string.h>

enum { CHUNK_HEAD = 8, FORMAT_BYTES = 16, OPEN_LENGTH = 0x7fff0000, MAX_CHANNELS = 8 };
enum { FORMAT_PCM = 1, FORMAT_FLOAT = 3, FORMAT_EXTENSIBLE = 0xfffe };

struct format {
    uint32_t kind, n_channels, rate, bits;
};

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

static int read_format(struct slice chunk, struct format *ret, struct err *e)
{
    if (chunk.n < FORMAT_BYTES)
        return refuse(e, "sent a WAV whose format is cut off");
    *ret = (struct format){ read_le(chunk.p, 2), read_le(chunk.p + 2, 2), read_le(chunk.p + 4, 4),
                            read_le(chunk.p + 14, 2) };
    if (ret->kind == FORMAT_EXTENSIBLE && chunk.n >= FORMAT_BYTES + 10)
        ret->kind = read_le(chunk.p + FORMAT_BYTES + 8, 2);
    if (ret->n_channels < 1 || ret->n_channels > MAX_CHANNELS)
        return refuse(e, "sent a WAV that has not 1 to 8 channels");
    if (ret->rate < SPEECH_RATE_MIN || ret->rate > SPEECH_RATE_MAX)
        return refuse(e, "sent a WAV that has not 8,000 to 48,000 samples a second");
    if (!(ret->kind == FORMAT_PCM && ret->bits == 16) && !(ret->kind == FORMAT_FLOAT && ret->bits == 32))
        return refuse(e, "sent a WAV whose samples are neither of 16 bits nor floating-point numbers");
    return 0;
}

static double sample_at(const struct format *f, const char *at)
{
    uint32_t bits = read_le(at, f->bits / 8);
    float value;

    if (f->kind == FORMAT_PCM)
        return (int16_t)bits;
    memcpy(&value, &bits, sizeof(value));
    return isfinite(value) ? MAX(-1.0, MIN(1.0, (double)value)) * 32767 : 0;
}

/* One channel of 16 bits. */
static struct slice mixed(const struct format *f, struct slice data, struct arena *a)
{
    size_t n_frame = f->n_channels * f->bits / 8, n = data.n / n_frame;
    char *out = arena_array(a, n + 1, 2);

    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        int16_t value;

        for (uint32_t c = 0; c < f->n_channels; c++)
            sum += sample_at(f, data.p + i * n_frame + c * (f->bits / 8));
        value = (int16_t)(sum / f->n_channels + (sum < 0 ? -0.5 : 0.5));
        out[2 * i] = (char)(value & 0xff);
        out[2 * i + 1] = (char)((value >> 8) & 0xff);
    }
    return (struct slice){ out, 2 * n };
}

/* The chunk of samples, from its head on. */
static int read_data(const struct format *f, struct slice at, struct arena *a, struct speech_pcm *ret, struct err *e)
{
    uint32_t n = read_le(at.p + 4, 4);
    struct slice data = rest_of(at, CHUNK_HEAD);

    if (f->kind == 0)
        return refuse(e, "sent a WAV without a format");
    if (n > 0 && n < OPEN_LENGTH && n > data.n)
        return refuse(e, "sent a WAV that breaks off");
    if (n > 0 && n < data.n)
        data.n = n;
    if (data.n < f->n_channels * f->bits / 8)
        return refuse(e, "sent a WAV without sound");
    ret->rate = f->rate;
    if (f->kind == FORMAT_PCM && f->n_channels == 1)
        ret->samples = (struct slice){ data.p, data.n & ~(size_t)1 };
    else
        ret->samples = mixed(f, data, a);
    return 0;
}

int speech_wav_read(struct slice bytes, struct arena *a, struct speech_pcm *ret, struct err *e)
{
    struct format f = { 0 };
    int r = 0;

    if (bytes.n < 12 || memcmp(bytes.p, "RIFF", 4) != 0 || memcmp(bytes.p + 8, "WAVE", 4) != 0)
        return refuse(e, bytes.n == 0 ? "sent nothing" : "sent something that is no WAV");
    for (struct slice at = rest_of(bytes, 12); r == 0 && at.n >= CHUNK_HEAD;) {
        size_t n = read_le(at.p + 4, 4), n_left = at.n - CHUNK_HEAD;

        if (memcmp(at.p, "data", 4) == 0)
            return read_data(&f, at, a, ret, e);
        if (n > n_left)
            return refuse(e, "sent a WAV that breaks off");
        if (memcmp(at.p, "fmt ", 4) == 0)
            r = read_format((struct slice){ at.p + CHUNK_HEAD, n }, &f, e);
        at = rest_of(at, CHUNK_HEAD + (n + (n & 1) > n_left ? n_left : n + (n & 1)));
    }
    return r < 0 ? r : refuse(e, "sent a WAV without sound");
}

int speech_pcm_read(struct slice bytes, uint32_t rate, struct speech_pcm *ret, struct err *e)
{
    if (bytes.n == 0)
        return refuse(e, "sent nothing");
    if (bytes.n & 1)
        return refuse(e, "sent half a sample: the sound breaks off");
    *ret = (struct speech_pcm){ bytes, rate };
    return 0;
}
