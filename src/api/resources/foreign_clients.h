/* Clients that use another product word than this service (decision D1): recognized by the webhook path they call, by
 * their headers, by the functions they call and by the tables and variables of an app's configuration.
 *
 * Each word is logged once and kept for `hearth doctor`; a bounded table, in memory only. Every refusal says which
 * setting to change. Owned by dispatch; any thread.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "settings/settings.h"

enum foreign_kind {
    FOREIGN_WEBHOOK,  /* POST /webhooks/<word> */
    FOREIGN_HEADER,   /* x-<word>-event-id */
    FOREIGN_FUNCTION, /* <word>_fn_claim_task */
    FOREIGN_APP,      /* a configuration with <word>_activities or <WORD>_APP_ID */
};

struct foreign_client {
    enum foreign_kind kind;
    const char *word;
    int64_t n_seen;
    const char *text;   /* what was seen, as a sentence */
    const char *advice; /* the command that makes this service answer */
};

struct foreign_clients;
struct foreign_clients *foreign_clients_new(struct settings *s);
struct foreign_clients *foreign_clients_free(struct foreign_clients *f);

/* For a path without a route: -ENOENT NOT_FOUND naming the setting when the path is a webhook with another word, else 0
 * and e is unchanged. */
int foreign_clients_refuse_path(struct foreign_clients *f, const char *path, const char *request_id,
                                struct err *e) MUST_CHECK;
/* The same for an unknown function of the backend: -ENOENT FUNCTION_NOT_FOUND naming the setting, or 0. */
int foreign_clients_refuse_function(struct foreign_clients *f, const char *function, const char *request_id,
                                    struct err *e) MUST_CHECK;
/* Notes such a word in a request that succeeds nevertheless. */
void foreign_clients_note(struct foreign_clients *f, enum foreign_kind kind, const char *word, const char *request_id);
/* The command that makes this service use the word, such as "hearth settings set identity.dialect realtimex". */
const char *foreign_clients_advice(const struct foreign_clients *f, struct arena *a, enum foreign_kind kind,
                                   const char *word);
/* Is `word` the abbreviation of a known dialect other than this service's? */
bool foreign_clients_is_abbr(const struct foreign_clients *f, const char *word);
size_t foreign_clients_list(struct foreign_clients *f, struct arena *a, struct foreign_client **ret);
