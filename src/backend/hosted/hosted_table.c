#include "backend/hosted/hosted.h"
#include "backend/refusals.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                                        \
    "id,user_id,raw_data,old_data,status,locked_by,locked_at,completed_at,error_message,attempted_by,retry_count,"     \
    "result,created_at"

static const struct {
    const char *name;
    unsigned column;
} optional[] = {
    { "app_id", HOSTED_APP_ID },
    { "attempt", HOSTED_ATTEMPT },
    { "event_type", HOSTED_EVENT_TYPE },
    { "source_table", HOSTED_SOURCE_TABLE },
    { "is_dirty", HOSTED_IS_DIRTY },
    { "claimed_by", HOSTED_CLAIMED_BY },
    { "revision", HOSTED_REVISION },
    { "handled_revision", HOSTED_HANDLED_REVISION },
    { "seq", HOSTED_SEQ },
};
enum { ALL_OPTIONAL = (1 << ARRAY_SIZE(optional)) - 1 };

static const char *columns_of(unsigned has, struct arena *a)
{
    struct buf out;

    buf_init(&out, LIMIT_HOSTED_PATH);
    buf_add_str(&out, COLUMNS);
    for (size_t i = 0; i < ARRAY_SIZE(optional); i++)
        if (has & optional[i].column)
            buf_printf(&out, ",%s", optional[i].name);
    return buf_to_arena(&out, a);
}

const char *hosted_columns(struct hosted_table *t, struct arena *a)
{
    return columns_of(atomic_load(&t->has), a);
}

/* ---- which columns a table has ---- */

static bool is_part_of_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool names(const char *text, const char *word)
{
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !is_part_of_word(at[-1])) && !is_part_of_word(at[strlen(word)]))
            return true;
    return false;
}

/* The columns that the refusal says are missing. */
static unsigned missing_of(const struct err *why, unsigned has)
{
    unsigned missing = 0;

    for (size_t i = 0; i < ARRAY_SIZE(optional); i++)
        if ((has & optional[i].column) && names(why->text, optional[i].name))
            missing |= optional[i].column;
    return missing;
}

static int request_columns(struct hosted *h, const char *table, unsigned has, struct arena *a, struct err *e)
{
    struct hosted_path path;
    struct hosted_reply reply;
    const struct hosted_call call = { .method = "GET", .path = &path, .is_repeatable = true };
    int r;

    hosted_path_init(&path, table);
    hosted_path_add(&path, "select", columns_of(has, a));
    hosted_path_number(&path, "limit", 0);
    r = hosted_rest_call(h->rest, &call, a, &reply, e);
    hosted_path_clear(&path);
    return r;
}

/* A request for all columns is refused with the name of one that is missing, until none is. */
static int read_columns(struct hosted *h, const char *table, unsigned *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    unsigned has = ALL_OPTIONAL, missing = 0;
    int r = 0;

    do {
        struct err why = { 0 };

        has &= ~missing;
        r = request_columns(h, table, has, a, &why);
        missing = r == -EINVAL ? missing_of(&why, has) : 0;
        if (r < 0 && !missing && e)
            *e = why;
    } while (missing);
    *ret = has;
    return r;
}

/* ---- the tables that are known ---- */

static struct hosted_table *look_up(struct hosted *h, const char *name)
{
    struct hosted_table *t = h->tables;

    while (t && strcmp(t->name, name) != 0)
        t = t->next;
    return t;
}

static struct hosted_table *keep(struct hosted *h, const char *name, unsigned has)
{
    struct hosted_table *t;

    pthread_mutex_lock(&h->lock);
    t = look_up(h, name);
    if (!t) {
        t = xcalloc(1, sizeof(*t));
        t->name = xstrdup(name);
        t->next = h->tables;
        h->tables = t;
    }
    atomic_store(&t->has, has);
    atomic_store(&t->is_read, true);
    pthread_mutex_unlock(&h->lock);
    return t;
}

static bool is_name(const char *name)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *plain;

    return backend_table_name(a, name, &plain, NULL) == 0 && strcmp(plain, name) == 0;
}

int hosted_find_table(struct hosted *h, const char *name, struct hosted_table **ret, struct err *e)
{
    struct hosted_table *t;
    unsigned has = 0;
    int r;

    h = h->whole;
    if (!is_name(name))
        return refusals_no_table(name, e);
    pthread_mutex_lock(&h->lock);
    t = look_up(h, name);
    pthread_mutex_unlock(&h->lock);
    r = t && atomic_load(&t->is_read) ? 0 : read_columns(h, name, &has, e);
    if (r < 0)
        return r;
    *ret = t && atomic_load(&t->is_read) ? t : keep(h, name, has);
    return 0;
}

void hosted_tables_free(struct hosted *h)
{
    while (h->tables) {
        struct hosted_table *next = h->tables->next;

        free(h->tables->name);
        free(h->tables);
        h->tables = next;
    }
}

/* ---- names ---- */

struct names {
    struct arena *arena;
    const char **items;
    size_t n;
};

static void add_name(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->items[i], name) == 0)
            return;
    if (names->n < LIMIT_ITEMS_DEFAULT)
        names->items[names->n++] = arena_strdup(names->arena, name);
}

/* A list that the set-up keeps. A project that has none has the tables that were asked for here. */
static int add_listed(struct hosted *h, const char *list, struct names *names, struct err *e)
{
    struct hosted_path path;
    struct hosted_reply reply = { 0 };
    const struct hosted_call call = { .method = "GET", .path = &path, .is_repeatable = true };
    struct err why = { 0 };
    struct json_iter it;
    struct json_value item;
    struct slice key;
    int r;

    hosted_path_init(&path, arena_printf(names->arena, "%s_%s", h->abbr, list));
    hosted_path_add(&path, "select", "name");
    hosted_path_number(&path, "limit", LIMIT_ITEMS_DEFAULT);
    r = hosted_rest_call(h->rest, &call, names->arena, &reply, &why);
    hosted_path_clear(&path);
    it = json_iter(reply.body);
    while (r == 0 && json_next(&it, &key, &item))
        if (json_cstr(json_get(item, "name")) && is_name(json_cstr(json_get(item, "name"))))
            add_name(names, json_cstr(json_get(item, "name")));
    if (r == -ENOENT || r == -EACCES || r == -EPERM || r == -EINVAL)
        r = 0;
    if (r < 0 && e)
        *e = why;
    return r;
}

static int by_name(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

int hosted_table_names(struct hosted *h, bool with_declared, struct arena *a, const char ***ret, size_t *ret_n,
                       struct err *e)
{
    struct names names = { .arena = a, .items = arena_array(a, LIMIT_ITEMS_DEFAULT, sizeof(*names.items)) };
    int r;

    add_name(&names, h->activities);
    pthread_mutex_lock(&h->whole->lock);
    for (struct hosted_table *t = h->whole->tables; t; t = t->next)
        if (atomic_load(&t->is_read) && strcmp(t->name, h->deletions) != 0)
            add_name(&names, t->name);
    pthread_mutex_unlock(&h->whole->lock);
    r = add_listed(h, "tables", &names, e);
    if (r == 0 && with_declared)
        r = add_listed(h, "declared", &names, e);
    qsort(names.items, names.n, sizeof(*names.items), by_name);
    *ret = names.items;
    *ret_n = names.n;
    return r;
}
