/* How much each developer key and each app asks of models: limits before the work, counts after it (docs/usage.md).
 *
 * A request with key and app counts against both and needs room in both; a local administrator is counted and not limited. Requests
 * are counted when admitted. Tokens are known afterwards: until then the expected ones are held back, so that many requests at a time
 * cannot overrun a limit by more than the last of them. A minute is the last 60 seconds, a day is that of UTC and outlives a restart.
 * Memory only under one short lock; a thread of its own writes counts to the table usage within METER_FLUSH_MS. Any thread.
 *
 *     r = meter_admit(meter, req->caller, expected_tokens, &ticket, &retry_after_ms, e);      -EBUSY RATE_LIMIT
 *     ...the work...
 *     meter_count(meter, &ticket, &(struct meter_use){ .provider = "openai", .model = "gpt-4o", .prompt_tokens = 12, ... });
 */
#pragma once

#include "identity/identity.h"
#include "store/rates.h"
#include "store/usage.h"

/* What kill -9 may lose of acknowledged answers' usage. */
enum { METER_FLUSH_MS = 2000 };

struct meter;
struct meter_subject;

enum meter_work { METER_CHAT, METER_EMBED };

struct meter_use {
    enum meter_work work;
    const char *provider, *model;       /* model NULL: none is known */
    int64_t prompt_tokens, completion_tokens;
    bool is_estimated, is_failed;       /* failed: no whole answer; its tokens count all the same */
};

/* One admitted request; a plain value: no memory, may be copied, counted once. {0} is nobody's and counts nothing. */
struct meter_ticket {
    struct meter_subject *of[N_RATE_OF];        /* NULL: not named */
    int64_t held_tokens;
    bool is_open;
};

struct meter_clock {                    /* of tests */
    int64_t (*mono_ms)(void *arg), (*wall_ms)(void *arg);
    void *arg;
};

struct meter_config {
    struct store *store;
    struct settings *settings;
    const struct meter_clock *clock;    /* NULL: the machine's */
    bool is_serving;                    /* false: no thread; counts are written by meter_flush() and meter_close() */
};

/* Reads limits and today's counts. */
int meter_open(const struct meter_config *c, struct meter **ret, struct err *e) MUST_CHECK;
/* Writes what is not written. When nobody uses it any more. */
struct meter *meter_close(struct meter *m);

/* -EBUSY RATE_LIMIT: the text names the limit and the time; *ret_retry_after_ms is when it has room. expected_tokens: of prompt and answer. */
int meter_admit(struct meter *m, const struct caller *c, int64_t expected_tokens, struct meter_ticket *ret, int64_t *ret_retry_after_ms,
                struct err *e) MUST_CHECK;
/* One of the two, exactly once for each admitted request, however it ended; closes the ticket. */
void meter_count(struct meter *m, struct meter_ticket *ticket, const struct meter_use *use);
void meter_give_back(struct meter *m, struct meter_ticket *ticket);     /* it came to no provider: as if it had not been admitted */
/* Everything counted so far is in the table usage afterwards. */
int meter_flush(struct meter *m, struct err *e) MUST_CHECK;

/* ---- limits ---- */

struct meter_rule { const char *name, *words; enum setting_id setting; bool is_tokens, is_day; };
extern const struct meter_rule meter_rules[N_RATES];    /* "requests_a_minute", ... */

struct meter_state {
    int64_t own[N_RATES];               /* of this app or key; RATE_BY_SETTING: as the settings say */
    int64_t max[N_RATES];               /* what counts; RATE_NONE: no limit */
    int64_t used[N_RATES];              /* now */
};

void meter_show(struct meter *m, enum rate_of of, const char *id, struct meter_state *ret);
/* Stored, then in force at once. */
int meter_limit(struct meter *m, const struct rate_row *row, struct err *e) MUST_CHECK;
int meter_unlimit(struct meter *m, enum rate_of of, const char *id, struct err *e) MUST_CHECK;
