#include "identity/last_used.h"

#include "base/log.h"
#include "base/queue.h"
#include "base/thread.h"
#include "store/tables/grants.h"
#include "store/tables/keys.h"

enum { WAITING_NOTES = 4096 };

struct last_used {
    struct store *store; /* borrowed */
    struct queue *notes; /* of struct note */
    pthread_t thread;
};

struct note {
    char *key_id;              /* owned; or */
    char *app_id, *permission; /* owned */
};

static struct note *note_free(struct note *n)
{
    free(n->key_id);
    free(n->app_id);
    free(n->permission);
    free(n);
    return NULL;
}

static void write_note(struct last_used *c, const struct note *n)
{
    struct err e = { 0 };
    int r;

    if (n->key_id)
        r = store_keys_touch(c->store, n->key_id, &e);
    else
        r = store_grants_touch(c->store, n->app_id, n->permission, &e);
    if (r < 0 && r != -ENOENT) /* -ENOENT: revoked in the meantime */
        log_debug("identity", NULL, "a use was not noted: %s", e.text);
}

static void *write_notes(void *arg)
{
    struct last_used *c = arg;
    void *item;

    while (queue_pop(c->notes, -1, &item) == 0) {
        write_note(c, item);
        note_free(item);
    }
    store_thread_end(c->store);
    return NULL;
}

struct last_used *last_used_start(struct store *s)
{
    struct last_used *c = xcalloc(1, sizeof(*c));

    c->store = s;
    c->notes = queue_new(WAITING_NOTES);
    if (thread_start(&c->thread, "last-used", write_notes, c) == 0)
        return c;
    queue_free(c->notes);
    free(c);
    return NULL;
}

struct last_used *last_used_stop(struct last_used *c)
{
    if (!c)
        return NULL;
    queue_close(c->notes);
    pthread_join(c->thread, NULL);
    queue_free(c->notes);
    free(c);
    return NULL;
}

static void add_note(struct last_used *c, const struct note *content)
{
    struct note *n = xcalloc(1, sizeof(*n));

    *n = *content;
    if (queue_push(c->notes, n) < 0)
        note_free(n);
}

void last_used_note_key(struct last_used *c, const char *key_id)
{
    add_note(c, &(struct note){ .key_id = xstrdup(key_id) });
}

void last_used_note_grant(struct last_used *c, const char *app_id, const char *permission)
{
    add_note(c, &(struct note){ .app_id = xstrdup(app_id), .permission = xstrdup(permission) });
}
