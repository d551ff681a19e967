#include "identity/contacts.h"

#include "base/clock.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/thread.h"
#include "identity/launch_list.h"
#include "identity/state.h"
#include "os/peer_process.h"
#include "store/tables/app_contacts.h"

#include <stdlib.h>
#include <string.h>

enum { WAITING_CONTACTS = 64, LOOKED_AT = 64, LOOK_EVERY_MS = 1000 };

struct contact {
    char app_id[UUID_SIZE];
    uint64_t inode;
};

struct contacts {
    struct identity *identity; /* borrowed */
    struct queue *waiting;     /* of struct contact */
    pthread_t thread;
    struct {
        uint64_t app;
        int64_t at_ms;
    } looked[LOOKED_AT]; /* by hash of the app's id; used by the thread only */
};

/* ---- on the thread ---- */

static bool is_due(struct contacts *c, const char *app_id)
{
    uint64_t app = hash_fast(slice_of(app_id));
    size_t place = app % LOOKED_AT;
    int64_t now_ms = clock_mono_ms();

    if (c->looked[place].app == app && now_ms - c->looked[place].at_ms < LOOK_EVERY_MS)
        return false;
    c->looked[place].app = app;
    c->looked[place].at_ms = now_ms;
    return true;
}

/* Is the caller a program other than the app's own? */
static bool find_stranger(struct contacts *c, const struct contact *contact, struct peer_process *ret)
{
    struct launch_pids pids;

    launches_find_pids(c->identity, &(struct launch_what){ .app_id = contact->app_id }, true, &pids);
    return peer_process_find(contact->inode, pids.pids, pids.n, ret) > 0 && !ret->root && ret->path[0];
}

static void notify(struct identity *id, const char *app_id, const char *program)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct cached_app_name app;

    if (id->on_contact && credential_cache_find_app(&id->cache, app_id, a, &app))
        id->on_contact(id->on_contact_arg, app_id, app.name, program);
}

static int keep(struct identity *id, const char *app_id, const char *program, bool *ret_is_new, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct audit_row entry = { .actor = "service", .action = "app.contact", .subject = app_id };
    struct json_writer w;
    struct buf detail;

    buf_init(&detail, KIB(32));
    json_write_init(&w, &detail);
    json_begin_object(&w);
    json_add_string(&w, "program", program);
    json_end(&w);
    entry.detail = buf_to_arena(&detail, a);
    return store_app_contacts_add(id->store, app_id, program, &entry, ret_is_new, e);
}

static void handle(struct contacts *c, const struct contact *contact)
{
    struct peer_process found;
    struct err e = { 0 };
    bool is_new = false;
    int r;

    if (!is_due(c, contact->app_id) || !find_stranger(c, contact, &found))
        return;
    r = keep(c->identity, contact->app_id, found.path, &is_new, &e);
    if (r < 0)
        log_debug("identity", NULL, "a caller was not noted: %s", e.text);
    if (is_new)
        notify(c->identity, contact->app_id, found.path);
}

static void *work(void *arg)
{
    struct contacts *c = arg;
    void *item;

    while (queue_pop(c->waiting, -1, &item) == 0) {
        handle(c, item);
        free(item);
    }
    store_thread_end(c->identity->store);
    return NULL;
}

/* ---- interface ---- */

struct contacts *contacts_start(struct identity *id)
{
    struct contacts *c = xcalloc(1, sizeof(*c));

    c->identity = id;
    c->waiting = queue_new(WAITING_CONTACTS);
    if (thread_start(&c->thread, "contacts", work, c) == 0)
        return c;
    queue_free(c->waiting);
    free(c);
    return NULL;
}

struct contacts *contacts_stop(struct contacts *c)
{
    if (!c)
        return NULL;
    queue_close(c->waiting);
    pthread_join(c->thread, NULL);
    queue_free(c->waiting);
    free(c);
    return NULL;
}

void contacts_note(struct contacts *c, const char *app_id, uint64_t inode)
{
    struct contact *contact = xcalloc(1, sizeof(*contact));

    snprintf(contact->app_id, sizeof(contact->app_id), "%s", app_id);
    contact->inode = inode;
    if (queue_push(c->waiting, contact) < 0)
        free(contact);
}
