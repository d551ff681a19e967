/* Push-to-talk sessions that have been created and not yet ended: what each asks for, and the token that opens its
 * WebSocket once. In memory only. Any thread.
 *
 *     r = speech_sessions_add(s, &wanted, "app:7f3c", &ticket, e);
 *     r = speech_sessions_open(s, id, token, arena, &wanted, e);      its place stays taken
 *     speech_sessions_remove(s, id);
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/uuid.h"
#include "speech/listening.h"

struct speech_sessions;

struct speech_session {
    const char *caller;          /* its actor (identity/identity.h) */
    const char *app_id, *key_id; /* of the caller, or NULL: whose usage it is */
    const char *provider, *model, *language, *phrases;
    uint32_t rate;
    bool guesses;
};

enum { SPEECH_TOKEN_BYTES = 32, SPEECH_TOKEN_SIZE = 4 * SPEECH_TOKEN_BYTES / 3 + 3 };

struct speech_ticket {
    char id[UUID_SIZE], token[SPEECH_TOKEN_SIZE];
    int64_t expires_ms; /* clock_wall_ms(): until then the WebSocket must be opened */
};

struct speech_sessions *speech_sessions_new(void) MUST_CHECK;
struct speech_sessions *speech_sessions_free(struct speech_sessions *s);
/* At most LIMIT_SPEECH_SESSIONS in all and LIMIT_SPEECH_SESSIONS_OF_CALLER of one caller: a caller at its limit loses
 * the oldest that it has not opened. -EBUSY TOO_MANY_SPEECH_SESSIONS without one. */
int speech_sessions_add(struct speech_sessions *s, const struct speech_session *wanted, struct speech_ticket *ret,
                        struct err *e) MUST_CHECK;
bool speech_sessions_has(struct speech_sessions *s, const char *id, const char *token);
/* Once. -ENOENT SPEECH_SESSION_NOT_FOUND: unknown, another token, over, or opened already. Strings in the arena. */
int speech_sessions_open(struct speech_sessions *s, const char *id, const char *token, struct arena *a,
                         struct speech_session *ret, struct err *e) MUST_CHECK;
void speech_sessions_remove(struct speech_sessions *s, const char *id);

/* What an opened session asks of listening_start(), with the limits of sessions; the strings are borrowed. */
struct listening_request speech_session_request(const struct speech_session *opened, struct sound_source source,
                                                const atomic_bool *is_gone);

/* Whether a text message of the client is {"type": "end"}: everything has been said. Foreign bytes. */
bool speech_session_is_end(struct slice message);
