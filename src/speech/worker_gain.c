#include "speech/worker_gain.h"

#include "speech/worker_frames.h"
#include "speech/worker_output.h"

#include <ebur128.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Blocks of 10 ms. A voice that is not known is held back for a second, and for as long as nothing of it can be
 * measured up to three. */
enum { BLOCKS_A_SECOND = 100, HELD_BLOCKS = 100, MOST_HELD_BLOCKS = 300, LOOK_AHEAD = 2, MEASURE_EVERY = 10 };

static const double ceiling = 0.89 * 32768, most_gain = 100;            /* -1 dB, +40 dB */
static const double rise = 1.00693, fall = 0.97724, recovery = 1.01158; /* a block: 6, -20 and 10 dB a second */

struct worker_gain {
    ebur128_state *meter;
    size_t block;                  /* samples */
    struct worker_samples waiting; /* from the first block that was not sent on */
    double *peaks;                 /* of the whole blocks that wait */
    size_t n_blocks, n_allocated;
    size_t n_measured; /* blocks of the sentence so far */
    bool is_decided;
    double wanted, target; /* the gain that follows the loudness, and where it goes */
    double last;           /* the gain at the end of the block before */
    bool has_begun;
};

static double gain_for(double lufs)
{
    return fmin(most_gain, pow(10, (WORKER_LOUDNESS_LUFS - lufs) / 20));
}

struct worker_gain *worker_gain_free(struct worker_gain *g)
{
    if (g && g->meter)
        ebur128_destroy(&g->meter);
    if (g)
        free(g->peaks);
    if (g)
        free(g->waiting.items);
    free(g);
    return NULL;
}

struct worker_gain *worker_gain_new(int rate, int32_t known)
{
    struct worker_gain *g = calloc(1, sizeof(*g));

    if (g)
        g->meter =
            ebur128_init(1, (unsigned long)rate, EBUR128_MODE_I | EBUR128_MODE_TRUE_PEAK | EBUR128_MODE_HISTOGRAM);
    if (!g || !g->meter)
        return worker_gain_free(g);
    g->block = (size_t)rate / BLOCKS_A_SECOND;
    g->is_decided = known != SPEECH_LOUDNESS_UNKNOWN;
    g->wanted = g->target = g->is_decided ? gain_for(known / 100.0) : 1;
    return g;
}

/* ---- measuring ---- */

static bool measure(const struct worker_gain *g, double *ret_lufs)
{
    return ebur128_loudness_global(g->meter, ret_lufs) == EBUR128_SUCCESS && isfinite(*ret_lufs);
}

int32_t worker_gain_loudness(const struct worker_gain *g)
{
    double lufs;

    return measure(g, &lufs) ? worker_loudness(lufs) : SPEECH_LOUDNESS_UNKNOWN;
}

/* What the loudness so far asks for. */
static void follow(struct worker_gain *g, bool is_end)
{
    double lufs;

    if (!is_end && (g->n_measured < HELD_BLOCKS || g->n_measured % MEASURE_EVERY != 0))
        return;
    if (measure(g, &lufs)) {
        g->target = gain_for(lufs);
        g->wanted = g->is_decided ? g->wanted : g->target;
        g->is_decided = true;
    } else if (is_end || g->n_measured >= MOST_HELD_BLOCKS) {
        g->is_decided = true;
    }
}

static bool add_peak(struct worker_gain *g, double peak)
{
    if (g->n_blocks == g->n_allocated) {
        const size_t n_new = g->n_allocated * 2 + 64;
        double *grown = realloc(g->peaks, n_new * sizeof(*grown));

        if (!grown)
            return false;
        g->peaks = grown;
        g->n_allocated = n_new;
    }
    g->peaks[g->n_blocks++] = peak;
    return true;
}

/* The true peak of a block's last samples is reported with the next block, so the sample peak counts too. */
static bool measure_block(struct worker_gain *g, const int16_t *items, size_t n)
{
    double true_peak = 0, peak = 1;

    if (ebur128_add_frames_short(g->meter, items, n) != EBUR128_SUCCESS ||
        ebur128_prev_true_peak(g->meter, 0, &true_peak) != EBUR128_SUCCESS)
        return false;
    for (size_t i = 0; i < n; i++)
        peak = fmax(peak, abs(items[i]));
    g->n_measured++;
    return add_peak(g, fmax(peak, true_peak * 32768));
}

/* ---- changing ---- */

static double limit_of(const struct worker_gain *g, size_t at)
{
    double peak = 1;

    for (size_t i = at; i < at + 2 && i < g->n_blocks; i++)
        peak = fmax(peak, g->peaks[i]);
    return ceiling / peak;
}

/* From the gain of the block before to one that fits this block and the next. */
static void change_block(struct worker_gain *g, size_t at, int16_t *items, size_t n)
{
    double first, last;

    g->wanted = fmax(g->wanted * fall, fmin(g->wanted * rise, g->target));
    last = fmin(g->wanted, fmin(limit_of(g, at), limit_of(g, at + 1)));
    first = g->has_begun ? g->last : fmin(g->wanted, limit_of(g, at));
    last = g->has_begun ? fmin(last, g->last * recovery) : last;
    for (size_t i = 0; i < n; i++) {
        const double gain = first + (last - first) * (double)(i + 1) / (double)n;

        items[i] = (int16_t)lrint(fmax(INT16_MIN, fmin(INT16_MAX, items[i] * gain)));
    }
    g->last = last;
    g->has_begun = true;
}

/* Sends on all blocks but those that are looked at ahead. */
static bool release(struct worker_gain *g, bool is_end, struct worker_samples *out)
{
    size_t n_keep = is_end ? 0 : LOOK_AHEAD, n = 0, n_samples;

    if (!g->is_decided || g->n_blocks <= n_keep)
        return true;
    while (n < g->n_blocks - n_keep) {
        const size_t at = n * g->block, n_left = g->waiting.n - at;

        change_block(g, n, g->waiting.items + at, n_left < g->block ? n_left : g->block);
        n++;
    }
    n_samples = n * g->block < g->waiting.n ? n * g->block : g->waiting.n;
    if (!worker_samples_add(out, g->waiting.items, n_samples))
        return false;
    g->waiting.n -= n_samples;
    g->n_blocks -= n;
    memmove(g->waiting.items, g->waiting.items + n_samples, g->waiting.n * sizeof(*g->waiting.items));
    memmove(g->peaks, g->peaks + n, g->n_blocks * sizeof(*g->peaks));
    return true;
}

bool worker_gain_add(struct worker_gain *g, const int16_t *items, size_t n, struct worker_samples *out)
{
    if (!worker_samples_add(&g->waiting, items, n))
        return false;
    while (g->waiting.n - g->n_blocks * g->block >= g->block) {
        if (!measure_block(g, g->waiting.items + g->n_blocks * g->block, g->block))
            return false;
        follow(g, false);
        if (!release(g, false, out))
            return false;
    }
    return true;
}

bool worker_gain_end(struct worker_gain *g, struct worker_samples *out)
{
    const size_t n_rest = g->waiting.n - g->n_blocks * g->block;

    if (n_rest > 0 && !measure_block(g, g->waiting.items + g->n_blocks * g->block, n_rest))
        return false;
    follow(g, true);
    return release(g, true, out);
}
