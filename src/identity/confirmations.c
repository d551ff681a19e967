#include "identity/confirmations.h"

#include "identity/sessions.h"

#include <ctype.h>

void confirmations_init(struct confirmations *c)
{
    memset(c->items, 0, sizeof(c->items));
    pthread_mutex_init(&c->mutex, NULL);
}

void confirmations_clear(struct confirmations *c)
{
    pthread_mutex_destroy(&c->mutex);
}

static int64_t ends_ms(const struct confirmation *item)
{
    return MAX(item->code_until_ms, item->until_ms);
}

/* NULL: the session has none. */
static struct confirmation *find(struct confirmations *c, const char *session)
{
    for (size_t i = 0; i < LIMIT_CONFIRMATIONS; i++)
        if (strcmp(c->items[i].session, session) == 0)
            return &c->items[i];
    return NULL;
}

/* The session's own place, or else the place that ends first. A free place ends at 0, so free places are taken first.
 */
static struct confirmation *place_of(struct confirmations *c, const char *session)
{
    struct confirmation *place = find(c, session);

    if (place)
        return place;
    place = &c->items[0];
    for (size_t i = 1; i < LIMIT_CONFIRMATIONS; i++)
        if (ends_ms(&c->items[i]) < ends_ms(place))
            place = &c->items[i];
    *place = (struct confirmation){ 0 };
    snprintf(place->session, sizeof(place->session), "%s", session);
    return place;
}

/* 40 random bits as letters and digits that cannot be confused with each other. */
static void make_code(char out[CONFIRM_CODE_SIZE])
{
    static const char alphabet[32] = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
    unsigned char random[CONFIRM_CODE_SIZE];

    random_bytes(random, sizeof(random));
    for (size_t i = 0; i < CONFIRM_CODE_SIZE - 1; i++)
        out[i] = alphabet[random[i] % sizeof(alphabet)];
    out[4] = '-';
    out[CONFIRM_CODE_SIZE - 1] = '\0';
}

int64_t confirmations_left_ms(struct confirmations *c, const char *session, int64_t now_ms)
{
    const struct confirmation *item;
    int64_t left = 0;

    pthread_mutex_lock(&c->mutex);
    item = find(c, session);
    if (item)
        left = MAX(item->until_ms - now_ms, (int64_t)0);
    pthread_mutex_unlock(&c->mutex);
    return left;
}

void confirmations_request(struct confirmations *c, const char *session, const char *what, int64_t now_ms,
                           char ret_code[CONFIRM_CODE_SIZE])
{
    struct confirmation *item;

    pthread_mutex_lock(&c->mutex);
    item = place_of(c, session);
    if (item->code_until_ms <= now_ms) {
        make_code(item->code);
        item->code_until_ms = now_ms + CONFIRM_S * 1000;
    }
    snprintf(item->what, sizeof(item->what), "%s", what);
    memcpy(ret_code, item->code, sizeof(item->code));
    pthread_mutex_unlock(&c->mutex);
}

/* Case, dash and blanks of the typed code do not matter: "k7qf2m9d". */
static bool is_same_code(const char *typed, const char *code)
{
    for (;; typed++) {
        if (*typed == ' ' || *typed == '-')
            continue;
        code += *code == '-';
        if (toupper((unsigned char)*typed) != *code)
            return false;
        if (!*code++)
            return true;
    }
}

bool confirmations_give(struct confirmations *c, const char *code, int64_t now_ms, char ret_what[CONFIRM_WHAT_SIZE])
{
    bool found = false;

    pthread_mutex_lock(&c->mutex);
    for (size_t i = 0; i < LIMIT_CONFIRMATIONS && !found; i++) {
        struct confirmation *item = &c->items[i];

        found = item->code_until_ms > now_ms && is_same_code(code, item->code);
        if (!found)
            continue;
        item->code_until_ms = 0;
        item->until_ms = now_ms + CONFIRM_S * 1000;
        memcpy(ret_what, item->what, sizeof(item->what));
    }
    pthread_mutex_unlock(&c->mutex);
    return found;
}

void confirmations_forget(struct confirmations *c, const char *session)
{
    struct confirmation *item;

    pthread_mutex_lock(&c->mutex);
    item = find(c, session);
    if (item)
        *item = (struct confirmation){ 0 };
    pthread_mutex_unlock(&c->mutex);
}
