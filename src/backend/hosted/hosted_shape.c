/* The columns of a project's tables, as its function <abbr>_fn_shape tells them; kept for half a minute, and until a
 * query says that the table has changed. */
#include "backend/hosted/hosted_pieces.h"
#include "backend/hosted/hosted_query.h"
#include "backend/refusals.h"
#include "base/clock.h"
#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

struct hosted_own {
    struct hosted_own *next;
    char *name, *text; /* owned; text: the function's answer */
    int64_t read_ms;   /* 0: the table has changed since */
    bool is_followed;  /* served although the project does not list it */
};

/* ---- the answer ---- */

static const char *text_of(struct json_value v, const char *name, struct arena *a)
{
    return arena_strdup(a, json_cstr(json_get(v, name)));
}

static int read_column(struct json_value v, struct arena *a, struct table_column *ret, struct err *e)
{
    const char *default_text = text_of(v, "default", a);

    *ret = (struct table_column){ .name = text_of(v, "name", a),
                                  .type = TABLE_OTHER,
                                  .type_name = text_of(v, "type", a),
                                  .is_nullable = json_bool(json_get(v, "nullable")),
                                  .is_key = json_bool(json_get(v, "key")),
                                  .is_unique = json_bool(json_get(v, "unique")),
                                  .default_text = default_text };
    if (!ret->name || !ret->type_name)
        return hosted_fault(e, "a column has no name or no type");
    table_type_of(slice_of(ret->type_name), &ret->type);
    if (default_text && strstr(default_text, "auth.uid()"))
        ret->default_text = TABLE_DEFAULT_USER;
    return 0;
}

int hosted_shape_parse(const char *name, const char *text, struct arena *a, struct table_shape *ret,
                       bool *ret_is_listed, struct err *e)
{
    struct json_value answer = { 0 }, column;
    struct json_iter it;
    int r = json_parse(a, slice_of(text), &answer, e);

    if (r < 0)
        return r;
    it = json_iter(json_get(answer, "columns"));
    *ret = (struct table_shape){ .table = arena_strdup(a, name),
                                 .has_own_columns = !json_bool(json_get(answer, "is_work")),
                                 .is_published = json_bool(json_get(answer, "is_published")),
                                 .has_full_identity = json_bool(json_get(answer, "has_full_identity")) };
    *ret_is_listed = json_bool(json_get(answer, "is_declared"));
    if (json_length(json_get(answer, "columns")) > LIMIT_HOSTED_COLUMNS)
        return hosted_fault(e, "a table has too many columns");
    ret->columns = arena_array(a, json_length(json_get(answer, "columns")) + 1, sizeof(*ret->columns));
    while (r == 0 && json_next(&it, NULL, &column))
        r = read_column(column, a, &ret->columns[ret->n_columns++], e);
    return r;
}

/* ---- the request ---- */

static int request_shape(struct hosted *h, const char *name, struct arena *a, const char **ret, struct err *e)
{
    const struct table_parts parts = backend_table_parts(a, name);
    struct hosted_reply reply = { 0 };
    struct json_writer w;
    struct err why = { 0 };
    struct buf body;
    int r;

    buf_init(&body, KIB(4));
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_string(&w, "schema_name", parts.schema);
    json_add_string(&w, "table_name", parts.table);
    json_end(&w);
    r = hosted_send_function(h, &(struct hosted_function_call){ .name = "shape", .body = &body, .is_repeatable = true },
                             a, &reply, &why);
    buf_clear(&body);
    if (r == 0 && json_type(reply.body) != JSON_OBJECT)
        r = hosted_fault(&why, "the function shape does not tell a table's columns");
    if (r == 0)
        *ret = arena_slicedup(a, reply.text);
    if (r == -ENOENT && strcmp(why.code, "FUNCTION_NOT_FOUND") == 0)
        return err_set(
            e, -ENOSYS, "SCHEMA_MISSING",
            "The project lacks the function %s_fn_shape, which tells the columns of a table: `hearth backend "
            "setup`",
            h->abbr);
    if (r < 0 && e)
        *e = why;
    return r;
}

int hosted_shape_any(struct hosted *h, const char *name, struct arena *a, struct table_shape *ret, bool *ret_is_listed,
                     struct err *e)
{
    const char *text = NULL;
    int r = request_shape(h, name, a, &text, e);

    return r < 0 ? r : hosted_shape_parse(name, text, a, ret, ret_is_listed, e);
}

/* ---- what is kept ---- */

static struct hosted_own *look_up(struct hosted *h, const char *name)
{
    struct hosted_own *own = h->shapes;

    while (own && strcmp(own->name, name) != 0)
        own = own->next;
    return own;
}

void hosted_shapes_free(struct hosted *h)
{
    while (h->shapes) {
        struct hosted_own *next = h->shapes->next;

        free(h->shapes->name);
        free(h->shapes->text);
        free(h->shapes);
        h->shapes = next;
    }
}

static void keep(struct hosted *h, const char *name, const char *text, bool is_followed)
{
    struct hosted_own *own;

    pthread_mutex_lock(&h->lock);
    own = look_up(h, name);
    if (!own && h->n_shapes < LIMIT_HOSTED_SHAPES) {
        own = xcalloc(1, sizeof(*own));
        own->name = xstrdup(name);
        own->next = h->shapes;
        h->shapes = own;
        h->n_shapes++;
    }
    if (own) {
        free(own->text);
        own->text = xstrdup(text);
        own->read_ms = clock_mono_ms();
        own->is_followed |= is_followed;
    }
    pthread_mutex_unlock(&h->lock);
}

static bool is_followed(struct hosted *h, const char *name)
{
    struct hosted_own *own;
    bool is;

    pthread_mutex_lock(&h->lock);
    own = look_up(h, name);
    is = own && own->is_followed;
    pthread_mutex_unlock(&h->lock);
    return is;
}

/* is_any_age: also what may have changed since. NULL: not known. */
static const char *kept(struct hosted *h, const char *name, bool is_any_age, struct arena *a)
{
    const char *text = NULL;
    struct hosted_own *own;

    pthread_mutex_lock(&h->lock);
    own = look_up(h, name);
    if (own && (is_any_age || (own->read_ms && clock_mono_ms() - own->read_ms < LIMIT_HOSTED_SHAPE_MS)))
        text = arena_strdup(a, own->text);
    pthread_mutex_unlock(&h->lock);
    return text;
}

void hosted_shape_forget(struct hosted *h, const char *name)
{
    struct hosted_own *own;

    pthread_mutex_lock(&h->lock);
    own = look_up(h, name);
    if (own)
        own->read_ms = 0;
    pthread_mutex_unlock(&h->lock);
}

/* ---- the shape of a table ---- */

static void set_activity_columns(struct arena *a, struct table_shape *shape)
{
    shape->has_own_columns = false;
    shape->n_columns = TABLE_N_ACTIVITY_COLUMNS;
    shape->columns = arena_array(a, TABLE_N_ACTIVITY_COLUMNS, sizeof(*shape->columns));
    memcpy(shape->columns, table_activity_columns, sizeof(table_activity_columns));
}

/* What was read for the service is no answer to a user. */
static int find_shape(struct hosted *h, const char *name, struct arena *a, struct table_shape *ret, struct err *e)
{
    const char *text = h->whole == h ? kept(h, name, false, a) : NULL;
    bool is_listed = false;
    int r = text ? 0 : request_shape(h, name, a, &text, e);

    if (r == 0)
        r = hosted_shape_parse(name, text, a, ret, &is_listed, e);
    if (r < 0)
        return r;
    if (ret->n_columns == 0 || (ret->has_own_columns && !is_listed && !is_followed(h->whole, name)))
        return refusals_no_table(name, e);
    if (h->whole == h)
        keep(h, name, text, false);
    if (!ret->has_own_columns)
        set_activity_columns(a, ret);
    return 0;
}

int hosted_shape(struct backend *b, const char *table, struct arena *a, struct table_shape *ret, struct err *e)
{
    struct hosted *h = hosted_of(b);
    char *name = NULL;

    if (backend_table_name(a, table, &name, NULL) < 0 || name[0] == '_' || strcmp(name, h->deletions) == 0)
        return refusals_no_table(table, e);
    return find_shape(h, name, a, ret, e);
}

/* ---- tables that others have made ---- */

int hosted_probe(struct backend *b, const char *table, struct arena *a, struct table_probe *ret, struct err *e)
{
    struct table_probe probe = { .is_sql = true };
    struct hosted *h = hosted_of(b);
    bool is_listed = false;
    char *name = NULL;
    int r = backend_table_name(a, table, &name, e);

    if (r == 0)
        r = hosted_shape_any(h, name, a, &probe.shape, &is_listed, e);
    if (r < 0)
        return r;
    if (probe.shape.n_columns)
        probe.publish = hosted_publish_sql(h->abbr, name, a);
    *ret = probe;
    return 0;
}

int hosted_follow(struct backend *b, const char *table, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct hosted *h = hosted_of(b);
    struct table_shape shape = { 0 };
    const char *text = NULL;
    bool is_listed = false;
    char *name = NULL;
    int r = backend_table_name(a, table, &name, e);

    if (r == 0)
        r = request_shape(h, name, a, &text, e);
    if (r == 0)
        r = hosted_shape_parse(name, text, a, &shape, &is_listed, e);
    if (r == 0 && shape.n_columns == 0)
        r = refusals_no_table(name, e);
    if (r < 0)
        return r;
    keep(h, name, text, true);
    return hosted_events_watch(h, name, e);
}

/* ---- records ---- */

static const char *value_of(struct json_value v, struct arena *a)
{
    return json_is_absent(v) ? NULL : json_cstr(v) ? arena_strdup(a, json_cstr(v)) : json_to_str(a, v);
}

/* The key's text; of several columns, a JSON array. */
static const char *id_of(const struct table_shape *shape, struct json_value record, struct arena *a)
{
    struct json_value v = { 0 };
    struct json_writer w;
    size_t n_key = 0;
    struct buf out;

    buf_init(&out, LIMIT_BACKEND_ROW_BYTES);
    json_write_init(&w, &out);
    json_begin_array(&w);
    for (size_t i = 0; i < shape->n_columns; i++)
        if (shape->columns[i].is_key) {
            v = json_get(record, shape->columns[i].name);
            json_add_value(&w, NULL, v);
            n_key++;
        }
    json_end(&w);
    if (n_key > 1)
        return buf_to_arena(&out, a);
    buf_clear(&out);
    return value_of(v, a);
}

bool hosted_shape_read(struct hosted *h, const char *table, struct json_value record, struct arena *a,
                       struct backend_row *ret)
{
    const char *text = kept(h, table, true, a), *status = json_cstr(json_get(record, "status"));
    struct table_shape shape = { 0 };
    bool is_listed = false;

    if (!text || hosted_shape_parse(table, text, a, &shape, &is_listed, NULL) < 0 || !shape.has_own_columns)
        return false;
    *ret = (struct backend_row){ .table = shape.table,
                                 .id = id_of(&shape, record, a),
                                 .user_id = value_of(json_get(record, "user_id"), a),
                                 .locked_by = value_of(json_get(record, "locked_by"), a),
                                 .status = status ? arena_strdup(a, status) : "",
                                 .raw_data = json_to_str(a, record) };
    return true;
}
