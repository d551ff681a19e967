#include "api/resources/foreign_clients.h"

#include "base/limits.h"
#include "base/log.h"
#include "settings/dialect.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words of known dialects always have room, however many unknown words were seen. */
enum { KEPT_UNKNOWN = LIMIT_FOREIGN_WORDS, KEPT = LIMIT_FOREIGN_WORDS + 16 };

struct seen_word {
    enum foreign_kind kind;
    char word[DIALECT_WORD_CHARS + 1];
    int64_t n_seen;
};

struct foreign_clients {
    struct arena *arena;                /* owned; of the words below */
    const char *dialect, *token, *abbr; /* this service's own */
    pthread_mutex_t mutex;              /* guards what follows */
    struct seen_word words[KEPT];
    size_t n;
};

struct foreign_clients *foreign_clients_new(struct settings *s)
{
    struct foreign_clients *f = xcalloc(1, sizeof(*f));

    f->arena = arena_new();
    f->dialect = settings_string(s, f->arena, SETTING_IDENTITY_DIALECT);
    f->token = settings_string(s, f->arena, SETTING_IDENTITY_TOKEN);
    f->abbr = settings_string(s, f->arena, SETTING_IDENTITY_ABBR);
    pthread_mutex_init(&f->mutex, NULL);
    return f;
}

struct foreign_clients *foreign_clients_free(struct foreign_clients *f)
{
    if (!f)
        return NULL;
    pthread_mutex_destroy(&f->mutex);
    arena_free(f->arena);
    free(f);
    return NULL;
}

/* ---- what a word means ---- */

static const struct dialect *dialect_of(enum foreign_kind kind, const char *word)
{
    for (const struct dialect *d = dialects; d->name; d++)
        if (strcmp(kind == FOREIGN_WEBHOOK ? d->token : d->abbr, word) == 0)
            return d;
    return NULL;
}

bool foreign_clients_is_abbr(const struct foreign_clients *f, const char *word)
{
    return strcmp(word, f->abbr) != 0 && dialect_of(FOREIGN_APP, word);
}

const char *foreign_clients_advice(const struct foreign_clients *f, struct arena *a, enum foreign_kind kind,
                                   const char *word)
{
    const struct dialect *d = dialect_of(kind, word);

    if (d && strcmp(d->name, f->dialect) != 0)
        return arena_printf(a, "hearth settings set identity.dialect %s", d->name);
    return arena_printf(a, "hearth settings set identity.%s %s", kind == FOREIGN_WEBHOOK ? "token" : "abbr", word);
}

static const char *seen_text(const struct foreign_clients *f, struct arena *a, enum foreign_kind kind, const char *word)
{
    switch (kind) {
    case FOREIGN_WEBHOOK:
        return arena_printf(a, "a client calls /webhooks/%s; this service answers at /webhooks/%s", word, f->token);
    case FOREIGN_HEADER:
        return arena_printf(a, "a client sends the header x-%s-event-id; the word of this service is %s", word,
                            f->abbr);
    case FOREIGN_FUNCTION:
        return arena_printf(a, "a client calls functions named %s_fn_...; those of this service are named %s_fn_...",
                            word, f->abbr);
    case FOREIGN_APP:
        return arena_printf(
            a, "the configuration of an app uses the word %s for tables or variables; the word of this service is %s",
            word, f->abbr);
    }
    return "";
}

/* ---- each word is noted once ---- */

/* Call with the mutex locked. */
static struct seen_word *find_word(struct foreign_clients *f, enum foreign_kind kind, const char *word)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->words[i].kind == kind && strcmp(f->words[i].word, word) == 0)
            return &f->words[i];
    return NULL;
}

/* True when the word is new and was added. */
static bool keep_word(struct foreign_clients *f, enum foreign_kind kind, const char *word)
{
    struct seen_word *known;
    bool is_new = false;

    pthread_mutex_lock(&f->mutex);
    known = find_word(f, kind, word);
    if (!known && f->n < (dialect_of(kind, word) ? (size_t)KEPT : (size_t)KEPT_UNKNOWN)) {
        known = &f->words[f->n++];
        known->kind = kind;
        snprintf(known->word, sizeof(known->word), "%s", word);
        is_new = true;
    }
    if (known)
        known->n_seen++;
    pthread_mutex_unlock(&f->mutex);
    return is_new;
}

void foreign_clients_note(struct foreign_clients *f, enum foreign_kind kind, const char *word, const char *request_id)
{
    AUTO(arena_freep) struct arena *a = NULL;

    if (!dialect_is_word(word) || !keep_word(f, kind, word))
        return;
    a = arena_new();
    log_warn("api", request_id, "%s: `%s`, then start it again", seen_text(f, a, kind, word),
             foreign_clients_advice(f, a, kind, word));
}

size_t foreign_clients_list(struct foreign_clients *f, struct arena *a, struct foreign_client **ret)
{
    struct foreign_client *list = arena_array(a, KEPT, sizeof(*list));
    size_t n;

    pthread_mutex_lock(&f->mutex);
    for (n = 0; n < f->n; n++)
        list[n] = (struct foreign_client){ .kind = f->words[n].kind,
                                           .word = arena_strdup(a, f->words[n].word),
                                           .n_seen = f->words[n].n_seen };
    pthread_mutex_unlock(&f->mutex);
    for (size_t i = 0; i < n; i++) {
        list[i].text = seen_text(f, a, list[i].kind, list[i].word);
        list[i].advice = foreign_clients_advice(f, a, list[i].kind, list[i].word);
    }
    *ret = list;
    return n;
}

/* ---- refusals ---- */

static int refuse(struct foreign_clients *f, enum foreign_kind kind, const char *word, const char *code,
                  const char *what, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *advice = foreign_clients_advice(f, a, kind, word);

    err_set(e, -ENOENT, code, "%s: %s. `%s` makes it answer, after a restart.", what, seen_text(f, a, kind, word),
            advice);
    err_add_extra(e, "setting", advice + strlen("hearth settings set "));
    return -ENOENT;
}

int foreign_clients_refuse_path(struct foreign_clients *f, const char *path, const char *request_id, struct err *e)
{
    const char *at = strncmp(path, "/api/", 5) == 0 ? path + 4 : path, *word = at + strlen("/webhooks/");

    if (strncmp(at, "/webhooks/", strlen("/webhooks/")) != 0 || !dialect_is_word(word))
        return 0;
    foreign_clients_note(f, FOREIGN_WEBHOOK, word, request_id);
    return refuse(f, FOREIGN_WEBHOOK, word, "NOT_FOUND", "Not Found", e);
}

int foreign_clients_refuse_function(struct foreign_clients *f, const char *function, const char *request_id,
                                    struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    static const char *const names[] = { "_fn_claim_task", "_fn_complete_task", "_fn_fail_task" };
    size_t n = strlen(function);

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char word[DIALECT_WORD_CHARS + 1] = "";
        size_t n_word = n - MIN(n, strlen(names[i]));

        if (n_word == 0 || n_word >= sizeof(word) || strcmp(function + n_word, names[i]) != 0)
            continue;
        memcpy(word, function, n_word);
        if (!dialect_is_word(word))
            return 0;
        foreign_clients_note(f, FOREIGN_FUNCTION, word, request_id);
        return refuse(f, FOREIGN_FUNCTION, word, "FUNCTION_NOT_FOUND",
                      arena_printf(a, "There is no function %.60s", function), e);
    }
    return 0;
}
