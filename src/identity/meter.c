#include "identity/meter.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/metrics.h"
#include "identity/ledger.h"
#include "identity/window.h"
#include <pthread.h>
#include <stdlib.h>

enum { N_BUCKETS = 256, RETRY_UNDER_WAY_MS = 1000 };

/* The most tokens that one request may report: sums of counts stay far below the maximum of int64_t. */
#define MAX_TOKENS (INT64_C(1) << 40)

const struct meter_rule meter_rules[N_RATES] = {
    [RATE_REQUESTS_A_MINUTE] = { "requests_a_minute", "requests a minute", SETTING_LIMITS_REQUESTS_A_MINUTE,
                                 WINDOW_REQUESTS },
    [RATE_TOKENS_A_MINUTE] = { "tokens_a_minute", "tokens a minute", SETTING_LIMITS_TOKENS_A_MINUTE, WINDOW_TOKENS },
    [RATE_REQUESTS_A_DAY] = { "requests_a_day", "requests a day", SETTING_LIMITS_REQUESTS_A_DAY, WINDOW_REQUESTS,
                              .is_day = true },
    [RATE_TOKENS_A_DAY] = { "tokens_a_day", "tokens a day", SETTING_LIMITS_TOKENS_A_DAY, WINDOW_TOKENS,
                            .is_day = true },
    [RATE_CHARACTERS_A_MINUTE] = { "characters_a_minute", "spoken characters a minute",
                                   SETTING_LIMITS_CHARACTERS_A_MINUTE, WINDOW_CHARACTERS },
    [RATE_CHARACTERS_A_DAY] = { "characters_a_day", "spoken characters a day", SETTING_LIMITS_CHARACTERS_A_DAY,
                                WINDOW_CHARACTERS, .is_day = true },
};

static const char *const subject_words[N_RATE_OF] = { [RATE_OF_APP] = "app", [RATE_OF_KEY] = "developer key" };

/* An app or a developer key. */
struct meter_subject {
    struct meter_subject *next;
    enum rate_of of;
    bool is_limited; /* own limits are stored */
    int64_t own[N_RATES];
    struct window window;
    int64_t n_running, held_tokens; /* admitted and not yet counted */
    char id[];
};

struct meter {
    struct store *store;       /* borrowed */
    struct settings *settings; /* borrowed */
    struct meter_clock clock;
    struct ledger *ledger; /* owned */
    struct metric *refused[N_RATES];
    pthread_mutex_t limiting; /* keeps the limits in the store and here in step; taken before lock */
    pthread_mutex_t lock;
    struct meter_subject *buckets[N_BUCKETS]; /* owned */
    int64_t day_number;                       /* when subjects were last dropped */
};

/* ---- subjects ---- */

static struct meter_subject **bucket_of(struct meter *m, enum rate_of of, const char *id)
{
    return &m->buckets[(hash_fast(slice_of(id)) + of) % N_BUCKETS];
}

static struct meter_subject *find_subject(struct meter *m, enum rate_of of, const char *id)
{
    struct meter_subject *s = *bucket_of(m, of, id);

    while (s && (s->of != of || strcmp(s->id, id) != 0))
        s = s->next;
    return s;
}

static void own_nothing(struct meter_subject *s)
{
    s->is_limited = false;
    for (int i = 0; i < N_RATES; i++)
        s->own[i] = RATE_BY_SETTING;
}

static struct meter_subject *subject_of(struct meter *m, enum rate_of of, const char *id)
{
    struct meter_subject *s = find_subject(m, of, id), **bucket = bucket_of(m, of, id);

    if (s)
        return s;
    s = xcalloc(1, sizeof(*s) + strlen(id) + 1);
    s->of = of;
    memcpy(s->id, id, strlen(id) + 1);
    own_nothing(s);
    s->next = *bucket;
    return *bucket = s;
}

static bool is_idle(const struct meter_subject *s, int64_t day_number)
{
    return !s->is_limited && s->n_running == 0 && s->window.day_number < day_number;
}

/* Once a day drops subjects that did nothing since yesterday: they have no state to keep. */
static void let_go(struct meter *m, struct window_now now)
{
    int64_t day_number = window_day_of(now.wall_ms);

    if (day_number == m->day_number)
        return;
    m->day_number = day_number;
    for (size_t i = 0; i < N_BUCKETS; i++) {
        for (struct meter_subject **at = &m->buckets[i], *s; (s = *at);) {
            if (!is_idle(s, day_number - 1)) {
                at = &s->next;
                continue;
            }
            *at = s->next;
            free(s);
        }
    }
}

/* ---- time and limits ---- */

static int64_t machine_mono_ms(void *arg)
{
    return clock_mono_ms();
}

static int64_t machine_wall_ms(void *arg)
{
    return clock_wall_ms();
}

static struct window_now now_of(const struct meter *m)
{
    return (struct window_now){ m->clock.mono_ms(m->clock.arg), m->clock.wall_ms(m->clock.arg) };
}

static void read_defaults(struct meter *m, int64_t ret[N_RATES])
{
    for (int i = 0; i < N_RATES; i++)
        ret[i] = settings_int(m->settings, meter_rules[i].setting);
}

static int64_t limit_of(const struct meter_subject *s, const int64_t defaults[N_RATES], enum rate rate)
{
    return s->own[rate] == RATE_BY_SETTING ? defaults[rate] : s->own[rate];
}

static enum window_unit unit_of(enum rate rate)
{
    return meter_rules[rate].unit;
}

static int64_t used_of(const struct meter_subject *s, enum rate rate)
{
    return meter_rules[rate].is_day ? s->window.day[unit_of(rate)] : s->window.minute[unit_of(rate)];
}

/* ---- admission ---- */

struct refusal {
    const struct meter_subject *subject; /* NULL: there is room */
    enum rate rate;
    int64_t limit, wait_ms;
    bool is_held; /* running requests may use the rest up */
};

static void refuse(struct refusal *worst, const struct refusal *another)
{
    if (!worst->subject || another->wait_ms > worst->wait_ms)
        *worst = *another;
}

static void check_rate(const struct meter_subject *s, enum rate rate, int64_t limit, struct window_now now,
                       struct refusal *worst)
{
    struct refusal found = { .subject = s, .rate = rate, .limit = limit };

    if (limit == RATE_NONE)
        return;
    found.wait_ms = meter_rules[rate].is_day ? window_day_wait(&s->window, unit_of(rate), now, limit)
                                             : window_minute_wait(&s->window, unit_of(rate), now, limit);
    found.is_held = found.wait_ms == 0 && unit_of(rate) == WINDOW_TOKENS && used_of(s, rate) + s->held_tokens >= limit;
    if (found.is_held)
        found.wait_ms = RETRY_UNDER_WAY_MS;
    if (found.wait_ms > 0)
        refuse(worst, &found);
}

/* others: a bit for each unit that this work does not use. */
static void check_subject(struct meter_subject *s, const int64_t defaults[N_RATES], struct window_now now,
                          unsigned others, struct refusal *worst)
{
    window_move(&s->window, now);
    for (int rate = 0; rate < N_RATES; rate++)
        if (!(others & 1u << unit_of(rate)))
            check_rate(s, rate, limit_of(s, defaults, rate), now, worst);
}

static void charge(struct meter_subject *s, const struct meter_ticket *ticket)
{
    window_add(&s->window, WINDOW_REQUESTS, 1);
    window_add(&s->window, WINDOW_CHARACTERS, ticket->characters);
    s->n_running++;
    s->held_tokens += ticket->held_tokens;
}

static int err_refusal(struct meter *m, const struct refusal *why, int64_t *ret_retry_after_ms, struct err *e)
{
    const struct meter_rule *rule = &meter_rules[why->rate];
    const char *who = subject_words[why->subject->of];
    long long limit = why->limit, seconds = (why->wait_ms + 999) / 1000;
    int r;

    metric_add(m->refused[why->rate], 1);
    *ret_retry_after_ms = why->wait_ms;
    if (why->is_held)
        r = err_set(
            e, -EBUSY, "RATE_LIMIT",
            "The requests of this %s that are under way may use up its limit of %lld %s; try again in %lld second%s.",
            who, limit, rule->words, seconds, seconds == 1 ? "" : "s");
    else
        r = err_set(e, -EBUSY, "RATE_LIMIT", "This %s has reached its limit of %lld %s; try again in %lld second%s.",
                    who, limit, rule->words, seconds, seconds == 1 ? "" : "s");
    err_add_extra(e, "limit", rule->name);
    err_add_extra(e, "of", rate_of_names[why->subject->of]);
    return r;
}

/* ret: the amounts are set; the subjects are found here. */
static int admit(struct meter *m, const struct caller *c, unsigned others, struct meter_ticket *ret,
                 int64_t *ret_retry_after_ms, struct err *e)
{
    const char *const ids[N_RATE_OF] = { [RATE_OF_APP] = c->app_id, [RATE_OF_KEY] = c->key_id };
    struct meter_ticket ticket = *ret;
    struct window_now now = now_of(m);
    struct refusal worst = { 0 };
    int64_t defaults[N_RATES];
    int r = 0;

    read_defaults(m, defaults);
    pthread_mutex_lock(&m->lock);
    let_go(m, now);
    for (int of = 0; of < N_RATE_OF; of++) {
        ticket.of[of] = ids[of] ? subject_of(m, of, ids[of]) : NULL;
        if (ticket.of[of])
            check_subject(ticket.of[of], defaults, now, others, &worst);
    }
    for (int of = 0; !worst.subject && of < N_RATE_OF; of++)
        if (ticket.of[of])
            charge(ticket.of[of], &ticket);
    if (worst.subject)
        r = err_refusal(m, &worst, ret_retry_after_ms, e);
    pthread_mutex_unlock(&m->lock);
    if (r == 0)
        *ret = ticket;
    return r;
}

int meter_admit(struct meter *m, const struct caller *c, int64_t expected_tokens, struct meter_ticket *ret,
                int64_t *ret_retry_after_ms, struct err *e)
{
    struct meter_ticket ticket = { .held_tokens = MIN(MAX(expected_tokens, 0), MAX_TOKENS), .is_open = true };
    int r = admit(m, c, 1u << WINDOW_CHARACTERS, &ticket, ret_retry_after_ms, e);

    if (r == 0)
        *ret = ticket;
    return r;
}

int meter_admit_speech(struct meter *m, const struct caller *c, int64_t characters, struct meter_ticket *ret,
                       int64_t *ret_retry_after_ms, struct err *e)
{
    struct meter_ticket ticket = { .characters = MIN(MAX(characters, 0), MAX_TOKENS), .is_open = true };
    int r = admit(m, c, 1u << WINDOW_TOKENS, &ticket, ret_retry_after_ms, e);

    if (r == 0)
        *ret = ticket;
    return r;
}

int meter_admit_hearing(struct meter *m, const struct caller *c, struct meter_ticket *ret, int64_t *ret_retry_after_ms,
                        struct err *e)
{
    struct meter_ticket ticket = { .is_open = true };
    int r = admit(m, c, 1u << WINDOW_TOKENS | 1u << WINDOW_CHARACTERS, &ticket, ret_retry_after_ms, e);

    if (r == 0)
        *ret = ticket;
    return r;
}

/* ---- counting ---- */

static void settle(struct meter_subject *s, int64_t held_tokens, int64_t used_tokens, struct window_now now)
{
    window_move(&s->window, now);
    window_add(&s->window, WINDOW_TOKENS, used_tokens);
    s->held_tokens -= held_tokens;
    s->n_running--;
}

void meter_count(struct meter *m, struct meter_ticket *ticket, const struct meter_use *use)
{
    const struct meter_subject *app = ticket->of[RATE_OF_APP], *key = ticket->of[RATE_OF_KEY];
    struct window_now now = now_of(m);
    struct meter_use counted = *use;

    if (!ticket->is_open)
        return;
    counted.prompt_tokens = MIN(MAX(use->prompt_tokens, 0), MAX_TOKENS);
    counted.completion_tokens = MIN(MAX(use->completion_tokens, 0), MAX_TOKENS);
    counted.characters = ticket->characters;
    counted.audio_ms = MIN(MAX(use->audio_ms, 0), MAX_TOKENS);
    ledger_add(m->ledger, now.wall_ms, app ? app->id : NULL, key ? key->id : NULL, &counted);
    pthread_mutex_lock(&m->lock);
    for (int of = 0; of < N_RATE_OF; of++)
        if (ticket->of[of])
            settle(ticket->of[of], ticket->held_tokens, counted.prompt_tokens + counted.completion_tokens, now);
    pthread_mutex_unlock(&m->lock);
    ticket->is_open = false;
}

void meter_give_back(struct meter *m, struct meter_ticket *ticket)
{
    struct window_now now = now_of(m);

    if (!ticket->is_open)
        return;
    pthread_mutex_lock(&m->lock);
    for (int of = 0; of < N_RATE_OF; of++)
        if (ticket->of[of]) {
            settle(ticket->of[of], ticket->held_tokens, 0, now);
            window_take_back(&ticket->of[of]->window, WINDOW_REQUESTS, 1);
            window_take_back(&ticket->of[of]->window, WINDOW_CHARACTERS, ticket->characters);
        }
    pthread_mutex_unlock(&m->lock);
    ticket->is_open = false;
}

int meter_flush(struct meter *m, struct err *e)
{
    return ledger_flush(m->ledger, e);
}

/* ---- limits ---- */

void meter_show(struct meter *m, enum rate_of of, const char *id, struct meter_state *ret)
{
    struct window_now now = now_of(m);
    int64_t defaults[N_RATES];
    struct meter_subject *s;

    read_defaults(m, defaults);
    pthread_mutex_lock(&m->lock);
    s = subject_of(m, of, id);
    window_move(&s->window, now);
    for (int rate = 0; rate < N_RATES; rate++) {
        ret->own[rate] = s->own[rate];
        ret->max[rate] = limit_of(s, defaults, rate);
        ret->used[rate] = used_of(s, rate);
    }
    pthread_mutex_unlock(&m->lock);
}

static void own_limits(struct meter *m, const struct rate_row *row)
{
    struct meter_subject *s;

    pthread_mutex_lock(&m->lock);
    s = subject_of(m, row->of, row->id);
    memcpy(s->own, row->max, sizeof(s->own));
    s->is_limited = true;
    pthread_mutex_unlock(&m->lock);
}

int meter_limit(struct meter *m, const struct rate_row *row, struct err *e)
{
    int r;

    pthread_mutex_lock(&m->limiting);
    r = store_rates_set(m->store, row, e);
    if (r == 0)
        own_limits(m, row);
    pthread_mutex_unlock(&m->limiting);
    return r;
}

int meter_unlimit(struct meter *m, enum rate_of of, const char *id, struct err *e)
{
    int r;

    pthread_mutex_lock(&m->limiting);
    r = store_rates_remove(m->store, of, id, e);
    if (r == 0) {
        pthread_mutex_lock(&m->lock);
        own_nothing(subject_of(m, of, id));
        pthread_mutex_unlock(&m->lock);
    }
    pthread_mutex_unlock(&m->limiting);
    return r;
}

/* ---- open and close ---- */

static int load_limits(struct meter *m, struct arena *a, struct err *e)
{
    struct rate_row *rows;
    size_t n;
    int r = store_rates_list(m->store, a, &rows, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++)
        own_limits(m, &rows[i]);
    return r;
}

/* Only today's counts, so that a restart does not reset the day. */
static int load_counts(struct meter *m, struct arena *a, enum rate_of of, struct err *e)
{
    enum usage_dimension dimension = of == RATE_OF_APP ? USAGE_APP : USAGE_KEY;
    struct window_now now = now_of(m);
    char day[USAGE_DAY_SIZE];
    struct usage_row *rows;
    size_t n;
    int r;

    usage_day_text(now.wall_ms, day);
    r = store_usage_of_day(m->store, a, day, dimension, &rows, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct usage_counts *counts = &rows[i].counts;
        struct meter_subject *s;

        if (*rows[i].of[dimension] == '\0')
            continue;
        s = subject_of(m, of, rows[i].of[dimension]);
        window_move(&s->window, now);
        s->window.day[WINDOW_REQUESTS] = counts->requests;
        s->window.day[WINDOW_TOKENS] = counts->prompt_tokens + counts->completion_tokens;
        s->window.day[WINDOW_CHARACTERS] = counts->characters;
    }
    return r;
}

static int load(struct meter *m, const struct meter_config *c, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int r = load_limits(m, a, e);

    for (int of = 0; r == 0 && of < N_RATE_OF; of++)
        r = load_counts(m, a, of, e);
    if (r < 0)
        return r;
    m->ledger = ledger_start(c->store, c->is_serving);
    return m->ledger ? 0 : err_set(e, -EAGAIN, "INTERNAL_ERROR", "A thread for usage could not be started.");
}

static void make_metrics(struct meter *m)
{
    char labels[64];

    for (int i = 0; i < N_RATES; i++) {
        snprintf(labels, sizeof(labels), "limit=\"%s\"", meter_rules[i].name);
        m->refused[i] = metric_counter("hearth_model_refused_total",
                                       "Requests to models refused by a limit of their app or key", labels);
    }
}

int meter_open(const struct meter_config *c, struct meter **ret, struct err *e)
{
    static const struct meter_clock machine = { machine_mono_ms, machine_wall_ms, NULL };
    struct meter *m = xcalloc(1, sizeof(*m));
    int r;

    m->store = c->store;
    m->settings = c->settings;
    m->clock = c->clock ? *c->clock : machine;
    m->day_number = window_day_of(now_of(m).wall_ms);
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->limiting, NULL);
    make_metrics(m);
    r = load(m, c, e);
    if (r < 0) {
        meter_close(m);
        return r;
    }
    *ret = m;
    return 0;
}

struct meter *meter_close(struct meter *m)
{
    if (!m)
        return NULL;
    ledger_stop(m->ledger);
    for (size_t i = 0; i < N_BUCKETS; i++) {
        for (struct meter_subject *s = m->buckets[i], *next; s; s = next) {
            next = s->next;
            free(s);
        }
    }
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->limiting);
    free(m);
    return NULL;
}
