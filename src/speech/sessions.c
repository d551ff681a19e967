#include "speech/sessions.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct place {
    struct arena *arena; /* NULL: free */
    struct speech_session wanted;
    struct speech_ticket ticket;
    int64_t until_ms; /* clock_mono_ms() */
    uint64_t number;  /* in the order of creation */
    bool is_open;
};

struct speech_sessions {
    pthread_mutex_t lock;
    uint64_t n_created;
    struct place places[LIMIT_SPEECH_SESSIONS];
};

struct speech_sessions *speech_sessions_new(void)
{
    struct speech_sessions *s = xcalloc(1, sizeof(*s));

    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void free_place(struct place *p)
{
    arena_free(p->arena);
    *p = (struct place){ .arena = NULL };
}

struct speech_sessions *speech_sessions_free(struct speech_sessions *s)
{
    if (!s)
        return NULL;
    for (size_t i = 0; i < LIMIT_SPEECH_SESSIONS; i++)
        free_place(&s->places[i]);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

static struct speech_session copy(struct arena *a, const struct speech_session *from)
{
    struct speech_session to = *from;

    to.caller = arena_strdup(a, from->caller);
    to.app_id = from->app_id ? arena_strdup(a, from->app_id) : NULL;
    to.key_id = from->key_id ? arena_strdup(a, from->key_id) : NULL;
    to.provider = arena_strdup(a, from->provider);
    to.model = arena_strdup(a, from->model);
    to.language = arena_strdup(a, from->language);
    to.phrases = arena_strdup(a, from->phrases);
    return to;
}

/* What the caller has, and where a new session may be. */
struct look {
    size_t n_of_caller;
    struct place *free, *unopened; /* NULL: none; unopened: the caller's oldest */
};

/* Frees those that nobody opened in time. */
static struct look look_at_places(struct speech_sessions *s, const char *caller)
{
    struct look look = { 0, NULL, NULL };

    for (size_t i = 0; i < LIMIT_SPEECH_SESSIONS; i++) {
        struct place *p = &s->places[i];

        if (p->arena && !p->is_open && clock_mono_ms() >= p->until_ms)
            free_place(p);
        if (!p->arena) {
            look.free = p;
        } else if (strcmp(p->wanted.caller, caller) == 0) {
            look.n_of_caller++;
            if (!p->is_open && (!look.unopened || p->number < look.unopened->number))
                look.unopened = p;
        }
    }
    return look;
}

/* A caller with as many sessions as it may have loses the oldest that it has not opened. */
static struct place *find_place(struct speech_sessions *s, const char *caller)
{
    const struct look look = look_at_places(s, caller);
    struct place *p = look.n_of_caller < LIMIT_SPEECH_SESSIONS_OF_CALLER && look.free ? look.free : look.unopened;

    if (p)
        free_place(p);
    return p;
}

static void fill(struct place *p, const struct speech_session *wanted)
{
    p->arena = arena_new_sized(KIB(1));
    p->wanted = copy(p->arena, wanted);
    p->until_ms = clock_mono_ms() + LIMIT_SPEECH_SESSION_OPEN_MS;
    p->ticket.expires_ms = clock_wall_ms() + LIMIT_SPEECH_SESSION_OPEN_MS;
    uuid_v4(p->ticket.id);
    random_token(p->ticket.token, SPEECH_TOKEN_BYTES);
}

int speech_sessions_add(struct speech_sessions *s, const struct speech_session *wanted, struct speech_ticket *ret,
                        struct err *e)
{
    struct place *p;

    pthread_mutex_lock(&s->lock);
    p = find_place(s, wanted->caller);
    if (p) {
        fill(p, wanted);
        p->number = s->n_created++;
        *ret = p->ticket;
    }
    pthread_mutex_unlock(&s->lock);
    return p ? 0
             : err_set(e, -EBUSY, "TOO_MANY_SPEECH_SESSIONS",
                       "A caller may have %d sessions of speech, all callers together %d; end one first.",
                       LIMIT_SPEECH_SESSIONS_OF_CALLER, LIMIT_SPEECH_SESSIONS);
}

static struct place *find(struct speech_sessions *s, const char *id)
{
    for (size_t i = 0; i < LIMIT_SPEECH_SESSIONS; i++)
        if (s->places[i].arena && strcmp(s->places[i].ticket.id, id) == 0)
            return &s->places[i];
    return NULL;
}

static bool may_open(const struct place *p, const char *token)
{
    return p && !p->is_open && clock_mono_ms() < p->until_ms && strlen(token) == strlen(p->ticket.token) &&
           hash_equal(token, p->ticket.token, strlen(token));
}

bool speech_sessions_has(struct speech_sessions *s, const char *id, const char *token)
{
    bool has;

    pthread_mutex_lock(&s->lock);
    has = may_open(find(s, id), token);
    pthread_mutex_unlock(&s->lock);
    return has;
}

int speech_sessions_open(struct speech_sessions *s, const char *id, const char *token, struct arena *a,
                         struct speech_session *ret, struct err *e)
{
    struct place *p;
    bool is_opened;

    pthread_mutex_lock(&s->lock);
    p = find(s, id);
    is_opened = may_open(p, token);
    if (is_opened) {
        p->is_open = true;
        *ret = copy(a, &p->wanted);
    }
    pthread_mutex_unlock(&s->lock);
    return is_opened ? 0
                     : err_set(e, -ENOENT, "SPEECH_SESSION_NOT_FOUND",
                               "There is no such session, its token is another one, or it was opened before.");
}

void speech_sessions_remove(struct speech_sessions *s, const char *id)
{
    struct place *p;

    pthread_mutex_lock(&s->lock);
    p = find(s, id);
    if (p)
        free_place(p);
    pthread_mutex_unlock(&s->lock);
}

struct listening_request speech_session_request(const struct speech_session *opened, struct sound_source source,
                                                const atomic_bool *is_gone)
{
    return (struct listening_request){
        .ears = { .provider = opened->provider,
                  .model = opened->model,
                  .language = opened->language,
                  .phrases = opened->phrases,
                  .caller = opened->caller,
                  .is_gone = is_gone },
        .source = source,
        .rate = opened->rate,
        .max_ms = LIMIT_SPEECH_SESSION_MS,
        .wall_ms = LIMIT_SPEECH_SESSION_WALL_MS,
        .quiet_ms = LIMIT_SPEECH_SESSION_QUIET_MS,
        .guesses = opened->guesses,
    };
}

bool speech_session_is_end(struct slice message)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(KIB(1));
    struct json_value v;

    return message.n <= LIMIT_SPEECH_SESSION_MESSAGE && json_parse(a, message, &v, NULL) == 0 &&
           slice_eq_str(json_string(json_get(v, "type")), "end");
}
