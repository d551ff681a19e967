/* Speaks one sentence of a plan: out of the cache, by a worker of an engine, or by a provider, whose sound passes
 * through a worker of sound whole or while it arrives. */
#include "speech/flow.h"
#include "speech/remote.h"
#include "speech/resample.h"
#include "speech/speech_private.h"

struct saying {
    struct speech *s;
    const struct speech_plan *plan;
    size_t i;                     /* the sentence */
    const struct speech_tap *tap; /* NULL: the audio is wanted whole */
    struct buf audio;             /* of the sentence so far */
    size_t n_tapped;              /* bytes of it that the tap has had */
    struct speech_flow *flow;     /* of a provider's sound that arrives; NULL: none has come */
    struct buf samples;           /* of a provider's sound that is wanted whole */
    uint32_t rate;                /* of the provider's sound */
};

/* ---- the cache ---- */

size_t speech_cache_bytes(const struct speech *s)
{
    return (size_t)settings_int(s->config.settings, SETTING_SPEECH_CACHE_MB) << 20;
}

/* Of a provider the address and the model stand for the version. */
static void cache_key(const struct saying *n, unsigned char key[HASH_BYTES])
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct speech_plan *plan = n->plan;
    char version[SPEECH_VERSION_SIZE] = "";
    struct speech_cache_what what = {
        plan->sentences.items[n->i], plan->caller, plan->provider, version, plan->voice, plan->speed, plan->format
    };

    if (plan->account)
        what.version = arena_printf(a, "%s %s %s", plan->account->base_url, plan->model, plan->language);
    else
        speech_pool_version(speech_state_of(n->s, slice_of(plan->provider))->pool, version);
    speech_cache_key(&what, key);
}

/* ---- the tap ---- */

/* The rate is changed at the end of a sentence. */
static bool changes_rate(const struct speech_plan *plan, uint32_t rate)
{
    return plan->rate > 0 && plan->format != SPEECH_MP3 && plan->rate != rate;
}

static int tap_more(struct saying *n, uint32_t rate)
{
    const struct slice more = { n->audio.p + n->n_tapped, n->audio.n - n->n_tapped };

    if (more.n == 0 || changes_rate(n->plan, rate))
        return 0;
    n->n_tapped = n->audio.n;
    return n->tap->take(n->tap->arg, rate, more);
}

/* ---- a provider ---- */

/* What the provider itself does of the speed; the rest is for the worker of sound. */
static double own_speed(const struct speech_plan *plan)
{
    const struct speech_service *service = plan->account->service;

    return plan->speed >= service->min_speed && plan->speed <= service->max_speed ? plan->speed : 1;
}

static void level_key(const struct speech_plan *plan, unsigned char key[HASH_BYTES])
{
    speech_levels_key(plan->account->base_url, plan->model, plan->voice, key);
}

static void note_level(struct saying *n, const struct speech_frame_done *done)
{
    unsigned char key[HASH_BYTES];

    level_key(n->plan, key);
    speech_levels_note(n->s->levels, key, done->loudness, (double)done->n_samples / done->rate);
}

static int begin_flow(struct saying *n, uint32_t rate, struct err *e)
{
    const struct speech_plan *plan = n->plan;
    struct speech_frame_begin begin = { plan->format, (uint32_t)(plan->speed / own_speed(plan) * 1000 + 0.5), rate, 0 };
    unsigned char key[HASH_BYTES];

    n->rate = rate;
    level_key(plan, key);
    begin.loudness = speech_levels_find(n->s->levels, key);
    return speech_flow_begin(n->s->sound, &begin, plan->caller, plan->is_gone, &n->audio, &n->flow, e);
}

static int take_live(void *arg, const struct speech_pcm *piece, struct err *e)
{
    struct saying *n = arg;
    int r = n->flow ? 0 : begin_flow(n, piece->rate, e);

    if (r == 0)
        r = speech_flow_pass(n->flow, piece->samples, e);
    return r < 0 ? r : tap_more(n, piece->rate);
}

static int take_whole(void *arg, const struct speech_pcm *piece, struct err *e)
{
    struct saying *n = arg;

    n->rate = piece->rate;
    buf_add_slice(&n->samples, piece->samples);
    return buf_check(&n->samples, e);
}

static int request_sound(struct saying *n, struct arena *a, struct slice *ret_file, struct err *e)
{
    const struct speech_plan *plan = n->plan;
    const struct net_wait turn = net_wait_of(LIMIT_LONG_DEADLINE_MS, plan->is_gone, n->s->config.is_leaving);
    const struct net_wait wait = net_wait_of(LIMIT_SPEECH_REPLY_MS, plan->is_gone, n->s->config.is_leaving);
    const struct speech_sink sink = { n->tap ? take_live : take_whole, n, n->tap != NULL };
    const struct speech_say say = { plan->sentences.items[n->i], plan->voice, plan->model, plan->language,
                                    own_speed(plan) };
    int r = speech_turns_take(&n->s->turns, plan->caller, &turn, e);

    if (r < 0)
        return r;
    r = speech_remote_say(plan->account, &say, &sink, &wait, a, ret_file, e);
    speech_turns_give(&n->s->turns);
    return r;
}

/* Gives the whole sound its speed, loudness and format. rate 0: a file. */
static int finish_whole(struct saying *n, struct slice sound, uint32_t rate, struct speech_frame_done *ret,
                        struct err *e)
{
    const struct speech_plan *plan = n->plan;
    char text[16];
    struct speech_worker_job job = { plan->format, plan->speed / own_speed(plan), plan->voice, { NULL, 0 }, sound };
    int r;

    snprintf(text, sizeof(text), "%u", rate);
    job.text = slice_of(text);
    r = speech_pool_say(n->s->sound, &job, plan->caller, plan->is_gone, &n->audio, ret, e);
    return r == -EIO && rate == 0 ? speech_remote_blame(plan->account, r, e) : r;
}

static int say_by_provider(struct saying *n, struct speech_frame_done *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice file;
    int r = request_sound(n, a, &file, e);

    if (r == 0 && n->flow)
        r = speech_flow_end(n->flow, ret, e);
    else if (r == 0)
        r = finish_whole(n, file.n > 0 ? file : buf_slice(&n->samples), n->rate, ret, e);
    n->flow = speech_flow_free(n->flow);
    if (r == 0)
        note_level(n, ret);
    return r;
}

/* ---- a sentence ---- */

static int say_anew(struct saying *n, struct speech_frame_done *ret, struct err *e)
{
    const struct speech_plan *plan = n->plan;
    const struct speech_worker_job job = {
        plan->format, plan->speed, plan->voice, plan->sentences.items[n->i], { NULL, 0 }
    };

    if (plan->account)
        return say_by_provider(n, ret, e);
    return speech_pool_say(speech_state_of(n->s, slice_of(plan->provider))->pool, &job, plan->caller, plan->is_gone,
                           &n->audio, ret, e);
}

/* Only a sentence that ended whole is kept. */
static int say_sentence(struct saying *n, struct speech_frame_done *ret, struct err *e)
{
    const size_t max_bytes = speech_cache_bytes(n->s);
    unsigned char key[HASH_BYTES];
    int r;

    if (max_bytes == 0)
        return say_anew(n, ret, e);
    cache_key(n, key);
    if (speech_cache_find(n->s->cache, key, &n->audio, ret))
        return buf_check(&n->audio, e);
    r = say_anew(n, ret, e);
    if (r == 0)
        speech_cache_keep(n->s->cache, key, buf_slice(&n->audio), ret, max_bytes);
    return r;
}

static void begin_saying(struct saying *n, struct speech *s, const struct speech_plan *plan, size_t i,
                         const struct speech_tap *tap)
{
    *n = (struct saying){ .s = s, .plan = plan, .i = i, .tap = tap };
    buf_init(&n->audio, LIMIT_SPEECH_AUDIO);
    buf_init(&n->samples, LIMIT_SPEECH_REPLY);
}

static void end_saying(struct saying *n)
{
    buf_clear(&n->audio);
    buf_clear(&n->samples);
}

/* Appends the sentence at the rate of the plan. */
static int add_at_rate(struct saying *n, struct speech_frame_done *done, struct buf *audio, struct err *e)
{
    if (changes_rate(n->plan, done->rate)) {
        done->n_samples = (uint32_t)speech_resample(buf_slice(&n->audio), done->rate, n->plan->rate, audio);
        done->rate = n->plan->rate;
    } else {
        buf_add_slice(audio, buf_slice(&n->audio));
    }
    return buf_check(audio, e);
}

int speech_say(struct speech *s, const struct speech_plan *plan, size_t i, struct buf *audio,
               struct speech_frame_done *ret, struct err *e)
{
    struct saying n;
    int r;

    begin_saying(&n, s, plan, i, NULL);
    r = say_sentence(&n, ret, e);
    if (r == 0)
        r = add_at_rate(&n, ret, audio, e);
    end_saying(&n);
    return r;
}

static int tap_at_rate(struct saying *n, struct speech_frame_done *done, struct err *e)
{
    struct buf audio;
    int r;

    buf_init(&audio, LIMIT_SPEECH_AUDIO);
    r = add_at_rate(n, done, &audio, e);
    if (r == 0)
        r = n->tap->take(n->tap->arg, done->rate, buf_slice(&audio));
    buf_clear(&audio);
    return r;
}

int speech_say_live(struct speech *s, const struct speech_plan *plan, size_t i, const struct speech_tap *tap,
                    struct speech_frame_done *ret, struct err *e)
{
    struct saying n;
    int r;

    begin_saying(&n, s, plan, i, tap);
    r = say_sentence(&n, ret, e);
    if (r == 0)
        r = changes_rate(plan, ret->rate) ? tap_at_rate(&n, ret, e) : tap_more(&n, ret->rate);
    end_saying(&n);
    return r;
}
