/* How much each developer key and each app uses models: limits before the work, counts after it (docs/usage.md).
 *
 * A request with key and app counts against both and needs room in both; a local administrator is counted but not
 * limited. Requests are counted when admitted. Tokens are known only afterwards: until then the expected tokens are
 * held back, so that concurrent requests cannot exceed a limit by more than the last of them. A minute is the last 60
 * seconds; a day is a UTC day and survives a restart. Memory only under one short lock; a thread writes the counts to
 * the table usage within METER_FLUSH_MS. Any thread.
 *
 *     r = meter_admit(meter, req->caller, expected_tokens, &ticket, &retry_after_ms, e);      -EBUSY RATE_LIMIT
 *     ...the work...
 *     meter_count(meter, &ticket, &(struct meter_use){ .provider = "openai", .prompt_tokens = 12, ... });
 */
#pragma once

#include "identity/identity.h"
#include "identity/window.h"
#include "store/tables/rates.h"
#include "store/tables/usage.h"

/* How much usage of acknowledged answers kill -9 may lose. */
enum { METER_FLUSH_MS = 2000 };

struct meter;
struct meter_subject;

enum meter_work { METER_CHAT, METER_EMBED, METER_SPEECH, METER_HEARING, N_METER_WORKS };

struct meter_use {
    enum meter_work work;
    const char *provider, *model; /* model NULL: unknown */
    int64_t prompt_tokens, completion_tokens;
    int64_t characters, audio_ms; /* of speech; the characters are those of the admission; audio_ms of hearing too */
    bool is_estimated, is_failed; /* failed: no whole answer; its tokens count anyway */
};

/* One admitted request; a plain value: no memory, may be copied, counted once. {0} belongs to no subject and counts
 * nothing. */
struct meter_ticket {
    struct meter_subject *of[N_RATE_OF]; /* NULL: not named */
    int64_t held_tokens, characters;
    bool is_open;
};

struct meter_clock { /* for tests */
    int64_t (*mono_ms)(void *arg), (*wall_ms)(void *arg);
    void *arg;
};

struct meter_config {
    struct store *store;
    struct settings *settings;
    const struct meter_clock *clock; /* NULL: the machine's */
    bool is_serving;                 /* false: no thread; counts are written by meter_flush() and meter_close() */
};

/* Reads limits and today's counts. */
int meter_open(const struct meter_config *c, struct meter **ret, struct err *e) MUST_CHECK;
/* Writes the counts not yet written. To be called when the meter is not used any more. */
struct meter *meter_close(struct meter *m);

/* -EBUSY RATE_LIMIT: the text names the limit and the time; *ret_retry_after_ms is when the limit has room again.
 * expected_tokens: of prompt and answer. */
int meter_admit(struct meter *m, const struct caller *c, int64_t expected_tokens, struct meter_ticket *ret,
                int64_t *ret_retry_after_ms, struct err *e) MUST_CHECK;
/* A text to be spoken: its characters are known and count at once. No limit of tokens applies, and those of characters
 * apply to nothing else. */
int meter_admit_speech(struct meter *m, const struct caller *c, int64_t characters, struct meter_ticket *ret,
                       int64_t *ret_retry_after_ms, struct err *e) MUST_CHECK;
/* Sound to be heard: limits of requests alone apply to it. */
int meter_admit_hearing(struct meter *m, const struct caller *c, struct meter_ticket *ret, int64_t *ret_retry_after_ms,
                        struct err *e) MUST_CHECK;
/* Call one of the two, exactly once for each admitted request, however the request ended; closes the ticket.
 * meter_give_back(): the request reached no provider, so it counts as not admitted. */
void meter_count(struct meter *m, struct meter_ticket *ticket, const struct meter_use *use);
void meter_give_back(struct meter *m, struct meter_ticket *ticket);
/* Everything counted so far is in the table usage when this returns. */
int meter_flush(struct meter *m, struct err *e) MUST_CHECK;

/* ---- limits ---- */

struct meter_rule {
    const char *name, *words;
    enum setting_id setting;
    enum window_unit unit;
    bool is_day;
};
extern const struct meter_rule meter_rules[N_RATES]; /* "requests_a_minute", ... */

struct meter_state {
    int64_t own[N_RATES];  /* of this app or key; RATE_BY_SETTING: the limit of the settings */
    int64_t max[N_RATES];  /* the limit in force; RATE_NONE: no limit */
    int64_t used[N_RATES]; /* now */
};

void meter_show(struct meter *m, enum rate_of of, const char *id, struct meter_state *ret);
/* Stored, then in force immediately. */
int meter_limit(struct meter *m, const struct rate_row *row, struct err *e) MUST_CHECK;
int meter_unlimit(struct meter *m, enum rate_of of, const char *id, struct err *e) MUST_CHECK;
