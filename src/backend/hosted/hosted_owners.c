/* Waiting rows by their owner. The REST interface of a hosted project sums nothing up, so the rows' owners are read and
 * counted here: the oldest LIMIT_HOSTED_SCAN_ROWS of a table. */
#include "backend/hosted/hosted.h"
#include "backend/status.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PAGE_ROWS = 1000 };
#define OURS "pending,claimed,processing,completed,failed,canceled"

struct count {
    struct hosted *h;
    struct hosted_table *table;
    const char *name; /* of the table, in the arena */
    struct arena *arena;
    int64_t max_machines;
    struct backend_owners list;
};

/* " Pending" for pending: nobody claims it. */
static bool is_misspelt(const char *status)
{
    const char *word;
    size_t n;

    while (*status == ' ')
        status++;
    for (n = strlen(status); n && status[n - 1] == ' ';)
        n--;
    for (size_t i = 0; (word = status_word(STATUSES_ALL, i)) != NULL; i++)
        if (strlen(word) == n && strncasecmp(word, status, n) == 0)
            return true;
    return false;
}

static bool is_ours(const char *status)
{
    const char *word;

    for (size_t i = 0; (word = status_word(STATUSES_ALL, i)) != NULL; i++)
        if (strcmp(word, status) == 0)
            return true;
    return false;
}

static bool is_same_text(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static void add(struct count *c, const struct backend_owner *of)
{
    for (size_t i = 0; i < c->list.n; i++) {
        struct backend_owner *o = &c->list.items[i];

        if (o->table == of->table && o->stuck == of->stuck && is_same_text(o->app_id, of->app_id) &&
            is_same_text(o->status, of->status)) {
            o->n_waiting++;
            return;
        }
    }
    if (c->list.n < LIMIT_LIST)
        c->list.items[c->list.n++] = *of;
}

static void take(struct count *c, struct json_value item)
{
    const char *status = json_cstr(json_get(item, "status")), *app_id = json_cstr(json_get(item, "app_id"));
    bool is_full = (int64_t)json_length(json_get(item, "attempted_by")) >= c->max_machines;
    struct backend_owner of = { .table = c->name, .app_id = arena_strdup(c->arena, app_id), .n_waiting = 1 };

    if (!status || (strcmp(status, STATUS_FAILED) == 0 && !is_full) || (!is_ours(status) && !is_misspelt(status)))
        return;
    of.status = arena_strdup(c->arena, status);
    of.stuck = !status_is_claimable(status) ? BACKEND_STUCK_STATUS
               : is_full                    ? BACKEND_STUCK_ATTEMPTS
                                            : BACKEND_NOT_STUCK;
    add(c, &of);
}

static int read_page(struct count *c, int64_t offset, size_t *ret_n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    bool has_app = hosted_has(c->table, HOSTED_APP_ID);
    struct hosted_path path;
    const struct hosted_call call = { .method = "GET", .path = &path, .is_repeatable = true };
    struct hosted_reply reply = { 0 };
    struct json_iter it;
    struct json_value item;
    struct slice key;
    int r;

    hosted_path_init(&path, c->name);
    hosted_path_add(&path, "select", has_app ? "id,app_id,status,attempted_by" : "id,status,attempted_by");
    hosted_path_add(&path, "or", "(status.in.(pending,failed),status.not.in.(" OURS "))");
    hosted_path_add(&path, "order", "created_at.asc,id.asc");
    hosted_path_number(&path, "limit", PAGE_ROWS);
    hosted_path_number(&path, "offset", offset);
    r = hosted_rest_call(c->h->rest, &call, a, &reply, e);
    hosted_path_clear(&path);
    *ret_n = r == 0 ? json_length(reply.body) : 0;
    if (*ret_n > PAGE_ROWS)
        return hosted_fault(e, "it has more rows than were asked for");
    for (it = json_iter(reply.body); r == 0 && json_next(&it, &key, &item);)
        take(c, item);
    return r;
}

static int count_table(struct count *c, struct err *e)
{
    size_t n = PAGE_ROWS;
    int r = hosted_find_table(c->h, c->name, &c->table, e);

    for (int64_t offset = 0; r == 0 && n == PAGE_ROWS && offset < LIMIT_HOSTED_SCAN_ROWS; offset += PAGE_ROWS)
        r = read_page(c, offset, &n, e);
    return r;
}

static int by_number(const void *one, const void *other)
{
    int64_t a = ((const struct backend_owner *)one)->n_waiting, b = ((const struct backend_owner *)other)->n_waiting;

    return (a < b) - (a > b);
}

int hosted_owners(struct backend *b, int64_t max_machines, struct arena *a, struct backend_owners *ret, struct err *e)
{
    struct count c = { .h = hosted_of(b), .arena = a, .max_machines = max_machines };
    const char **names = NULL;
    size_t n = 0;
    int r = hosted_table_names(c.h, false, a, &names, &n, e);

    c.list.items = arena_array(a, LIMIT_LIST, sizeof(*c.list.items));
    for (size_t i = 0; r == 0 && i < n; i++) {
        c.name = names[i];
        r = count_table(&c, e);
    }
    if (r < 0)
        return r;
    qsort(c.list.items, c.list.n, sizeof(*c.list.items), by_number);
    *ret = c.list;
    return 0;
}
