#include "backend/hosted/hosted_presence.h"

#include "base/json_write.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MACHINE_ID, USER_EMAIL, HOSTNAME, APP_NAME, ONLINE_AT, INSTANCE, N_TEXTS, TEXT_BYTES = LIMIT_NAME_CHARS * 4 };

static const char *const names[N_TEXTS] = {
    "machine_id", "user_email", "hostname", "app_name", "online_at", "instance"
};

struct record {
    char *key, *ref;      /* owned */
    char *texts[N_TEXTS]; /* owned; NULL: not given */
};

struct hosted_presence {
    struct record *items; /* owned; LIMIT_LIST */
    size_t n;
};

struct hosted_presence *hosted_presence_new(void)
{
    struct hosted_presence *p = xcalloc(1, sizeof(*p));

    p->items = xcalloc(LIMIT_LIST, sizeof(*p->items));
    return p;
}

static void record_clear(struct record *r)
{
    free(r->key);
    free(r->ref);
    for (size_t i = 0; i < N_TEXTS; i++)
        free(r->texts[i]);
    *r = (struct record){ 0 };
}

void hosted_presence_clear(struct hosted_presence *p)
{
    while (p->n > 0)
        record_clear(&p->items[--p->n]);
}

struct hosted_presence *hosted_presence_free(struct hosted_presence *p)
{
    if (!p)
        return NULL;
    hosted_presence_clear(p);
    free(p->items);
    free(p);
    return NULL;
}

/* ---- reading ---- */

/* NULL for what is no text. */
static char *text_of(struct json_value v)
{
    struct slice text = json_string(v);
    char *copy;

    if (json_type(v) != JSON_STRING || memchr(text.p, '\0', text.n))
        return NULL;
    text = utf8_head(text, TEXT_BYTES);
    copy = xcalloc(1, text.n + 1);
    memcpy(copy, text.p, text.n);
    return copy;
}

static void add(struct hosted_presence *p, struct slice key, struct json_value meta)
{
    struct record r = { 0 };

    if (p->n == LIMIT_LIST)
        return;
    key = utf8_head(key, TEXT_BYTES);
    r.key = xcalloc(1, key.n + 1);
    memcpy(r.key, key.p, key.n);
    r.ref = text_of(json_get(meta, "phx_ref"));
    for (size_t i = 0; i < N_TEXTS; i++)
        r.texts[i] = text_of(json_get(meta, names[i]));
    if (!r.texts[MACHINE_ID])
        r.texts[MACHINE_ID] = xstrdup(r.key);
    p->items[p->n++] = r;
}

static void leave(struct hosted_presence *p, struct slice key, struct json_value meta)
{
    struct slice ref = utf8_head(json_string(json_get(meta, "phx_ref")), TEXT_BYTES);

    key = utf8_head(key, TEXT_BYTES);
    for (size_t i = 0; i < p->n; i++)
        if (p->items[i].ref && slice_eq_str(ref, p->items[i].ref) && slice_eq_str(key, p->items[i].key)) {
            record_clear(&p->items[i]);
            p->items[i] = p->items[--p->n];
            p->items[p->n] = (struct record){ 0 };
            return;
        }
}

/* {"<key>":{"metas":[...]}}; returns how many records were read. */
static size_t each(struct hosted_presence *p, struct json_value members,
                   void (*fn)(struct hosted_presence *p, struct slice key, struct json_value meta))
{
    struct json_value member, meta;
    struct slice key, none;
    size_t n = 0;

    if (json_type(members) != JSON_OBJECT)
        return 0;
    for (struct json_iter it = json_iter(members); n < LIMIT_LIST && json_next(&it, &key, &member);) {
        struct json_value metas = json_get(member, "metas");

        if (json_type(metas) != JSON_ARRAY)
            continue;
        for (struct json_iter of = json_iter(metas); n < LIMIT_LIST && json_next(&of, &none, &meta); n++)
            fn(p, key, meta);
    }
    return n;
}

bool hosted_presence_state(struct hosted_presence *p, struct json_value payload)
{
    if (json_type(payload) != JSON_OBJECT)
        return false;
    hosted_presence_clear(p);
    each(p, payload, add);
    return true;
}

/* A record that is tracked anew leaves and joins in one message: the leaves are of the time before. */
bool hosted_presence_diff(struct hosted_presence *p, struct json_value payload)
{
    struct json_value joins = json_get(payload, "joins"), leaves = json_get(payload, "leaves");
    size_t n = each(p, leaves, leave);

    n += each(p, joins, leave); /* a message that came twice adds nothing */
    return each(p, joins, add) + n > 0;
}

/* ---- the list ---- */

static int compare_texts(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int compare(const void *a, const void *b)
{
    const struct backend_presence *x = a, *y = b;
    int r = compare_texts(x->online_at, y->online_at);

    return r ? r : compare_texts(x->machine_id, y->machine_id);
}

void hosted_presence_list(const struct hosted_presence *p, struct arena *a, struct backend_presences *ret)
{
    ret->items = arena_array(a, p->n, sizeof(*ret->items));
    ret->n = p->n;
    for (size_t i = 0; i < p->n; i++) {
        char *const *texts = p->items[i].texts;

        ret->items[i] = (struct backend_presence){
            .machine_id = arena_strdup(a, texts[MACHINE_ID]),
            .user_email = arena_strdup(a, texts[USER_EMAIL]),
            .hostname = arena_strdup(a, texts[HOSTNAME]),
            .app_name = arena_strdup(a, texts[APP_NAME]),
            .online_at = arena_strdup(a, texts[ONLINE_AT]),
            .instance = arena_strdup(a, texts[INSTANCE]),
        };
    }
    if (ret->n > 0)
        qsort(ret->items, ret->n, sizeof(*ret->items), compare);
}

char *hosted_presence_record(const struct backend_presence *p)
{
    const char *const texts[N_TEXTS] = { p->machine_id, p->user_email, p->hostname,
                                         p->app_name,   p->online_at,  p->instance };
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_PRESENCE_BYTES);
    json_write_init(&w, &out);
    json_begin_object(&w);
    for (size_t i = 0; i < N_TEXTS; i++)
        if (texts[i])
            json_add_string(&w, names[i], texts[i]);
    json_end(&w);
    if (out.overflowed) {
        buf_clear(&out);
        return NULL;
    }
    return buf_take(&out);
}
