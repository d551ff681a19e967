#include "backend/functions.h"
#include "backend/functions_shape.h"
#include "backend/status.h"
#include "base/clock.h"
#include "base/fields.h"
#include "base/limits.h"

#include <strings.h>

enum { STALE_AFTER_MS = 5 * 60 * 1000 }; /* specification, Limits: stale lock timeout */

struct call_args {
    const char *task_id, *target_task_id, *table_name, *machine_id, *error, *error_msg;
    int64_t attempt;
    struct json_value result, result_data;
};

static const struct field call_fields[] = {
    FIELD_STRING(struct call_args, task_id, "task_id", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct call_args, target_task_id, "target_task_id", .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct call_args, machine_id, "machine_id", FIELD_REQUIRED, .max = LIMIT_NAME_CHARS),
    FIELD_STRING(struct call_args, table_name, "table_name", .max = LIMIT_TABLE_NAME),
    FIELD_STRING(struct call_args, error, "error"),
    FIELD_STRING(struct call_args, error_msg, "error_msg"),
    FIELD_INT(struct call_args, attempt, "attempt", .min = 1, .def = BACKEND_ANY_ATTEMPT),
    FIELD_ANY(struct call_args, result, "result"),
    FIELD_ANY(struct call_args, result_data, "result_data"),
    FIELD_END
};

/* Clients of this interface use either of two names for each argument. */
static int read_args(struct json_value arguments, struct arena *a, struct call_args *ret, struct err *e)
{
    struct call_args args = { 0 };
    int r = fields_read(call_fields, arguments, &args, a, "", e);

    if (!args.task_id)
        args.task_id = args.target_task_id;
    if (!args.error)
        args.error = args.error_msg;
    if (json_is_absent(args.result))
        args.result = args.result_data;
    if (!args.task_id)
        r = err_add_field(e, "task_id", "is required");
    *ret = args;
    return r;
}

struct call {
    struct backend *backend;
    struct call_args args;
    struct backend_lease lease;
    const char *only_user;
    struct arena *arena;
};

static char *print(struct arena *a, void (*write)(struct json_writer *w, void *arg), void *arg)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    write(&w, arg);
    return buf_to_arena(&out, a);
}

/* --- claim, complete and fail --- */

static void write_claimed(struct json_writer *w, void *arg)
{
    const struct backend_row *row = arg;

    json_begin_object(w);
    json_add_bool(w, "success", true);
    json_add_string(w, "task_id", row->id);
    json_add_string(w, "status", row->status);
    json_add_string(w, "locked_by", row->locked_by);
    json_add_string(w, "locked_at", row->locked_at);
    json_add_int(w, "attempt", row->attempt);
    json_add_raw(w, "raw_data", row->raw_data);
    json_end(w);
}

static int call_claim(struct call *c, char **ret_json, struct err *e)
{
    struct backend_claim claim = { c->lease.table, c->lease.row_id, c->lease.machine_id, STALE_AFTER_MS,
                                   LIMIT_ATTEMPT_MACHINES };
    struct backend_lease lease;
    struct backend_row row;
    int r = backend_claim(c->backend, &claim, c->arena, &row, &lease, e);

    if (r == 0)
        *ret_json = print(c->arena, write_claimed, &row);
    return r;
}

struct ended {
    const char *task_id, *status;
};

static void write_ended(struct json_writer *w, void *arg)
{
    const struct ended *ended = arg;

    json_begin_object(w);
    json_add_bool(w, "success", true);
    json_add_string(w, "task_id", ended->task_id);
    json_add_string(w, "status", ended->status);
    json_end(w);
}

static int call_complete(struct call *c, char **ret_json, struct err *e)
{
    const char *result = json_is_absent(c->args.result) ? NULL : json_to_str(c->arena, c->args.result);
    int r = backend_complete(c->backend, &c->lease, result, e);

    if (r == 0)
        *ret_json = print(c->arena, write_ended, &(struct ended){ c->lease.row_id, STATUS_COMPLETED });
    return r;
}

static int call_fail(struct call *c, char **ret_json, struct err *e)
{
    int r = backend_fail(c->backend, &c->lease, c->args.error ? c->args.error : "", e);

    if (r == 0)
        *ret_json = print(c->arena, write_ended, &(struct ended){ c->lease.row_id, STATUS_FAILED });
    return r;
}

/* --- refusals --- */

static void write_refused(struct json_writer *w, void *arg)
{
    const struct err *why = arg;
    char reason[sizeof(why->code)];
    size_t i;

    for (i = 0; why->code[i]; i++)
        reason[i] = why->code[i] >= 'A' && why->code[i] <= 'Z' ? (char)(why->code[i] - 'A' + 'a') : why->code[i];
    reason[i] = '\0';
    json_begin_object(w);
    json_add_bool(w, "success", false);
    json_add_string(w, "reason", reason);
    json_add_string(w, "error", why->text);
    for (i = 0; i < MIN(why->n_extras, (unsigned)ERR_MAX_EXTRAS); i++)
        json_add_string(w, why->extras[i].key, why->extras[i].value);
    json_end(w);
}

static bool is_refusal(int r)
{
    return r == -ENOENT || r == -EBUSY || r == -EPERM || r == -EDQUOT || r == -ESTALE;
}

static int check_owner(const struct call *c, struct err *e)
{
    struct backend_row row;
    int r;

    if (!c->only_user)
        return 0;
    r = backend_get(c->backend, c->lease.table, c->lease.row_id, NULL, c->arena, &row, e);
    if (r == 0 && (!row.user_id || strcasecmp(row.user_id, c->only_user) != 0))
        return err_set(e, -ENOENT, "NOT_FOUND", "Activity not found");
    return r;
}

/* Reads the arguments and runs fn with the lease that they name. */
static int call_lease(struct call *c, int (*fn)(struct call *c, char **ret_json, struct err *e),
                      struct json_value arguments, char **ret_json, struct err *e)
{
    char *table = NULL;
    struct err why = { 0 };
    int r;

    r = read_args(arguments, c->arena, &c->args, e);
    if (r == 0 && !c->args.table_name)
        c->args.table_name = arena_printf(c->arena, "%s_activities", c->backend->abbr);
    if (r == 0)
        r = backend_table_name(c->arena, c->args.table_name, &table, e);
    if (r < 0)
        return r;
    c->lease = (struct backend_lease){ table, c->args.task_id, c->args.machine_id, c->args.attempt };
    r = check_owner(c, &why);
    if (r == 0)
        r = fn(c, ret_json, &why);
    if (r == 0)
        return 0;
    if (!is_refusal(r) || strncmp(why.code, "STORE_", 6) == 0) {
        if (e)
            *e = why;
        return r;
    }
    *ret_json = print(c->arena, write_refused, &why);
    return 0;
}

/* --- get_publications_full (specification, Custom table) --- */

static void write_table(struct json_writer *w, const char *name)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct table_parts parts = backend_table_parts(a, name);

    json_begin_object(w);
    json_add_string(w, "schema", parts.schema);
    json_add_string(w, "table", parts.table);
    json_end(w);
}

static void write_publication(struct json_writer *w, const struct backend_publication *p, size_t number)
{
    json_begin_object(w);
    json_add_string(w, "pubname", p->name);
    json_add_int(w, "system_id", (int64_t)number);
    json_add_bool(w, "pubinsert", p->ops & BACKEND_INSERT);
    json_add_bool(w, "pubupdate", p->ops & BACKEND_UPDATE);
    json_add_bool(w, "pubdelete", p->ops & BACKEND_DELETE);
    json_add_bool(w, "pubtruncate", false); /* no backend reports it */
    json_begin_array_as(w, "tables");
    for (size_t i = 0; i < p->n_tables; i++)
        write_table(w, p->tables[i]);
    json_end(w);
    json_end(w);
}

static void write_publications(struct json_writer *w, void *arg)
{
    const struct backend_publications *list = arg;

    json_begin_array(w);
    for (size_t i = 0; i < list->n; i++)
        write_publication(w, &list->items[i], i + 1);
    json_end(w);
}

static int call_publications(struct backend *b, struct arena *a, char **ret_json, struct err *e)
{
    struct backend_publications list = { 0 };
    int r = b->ops->publications(b, a, &list, e);

    if (r == 0)
        *ret_json = print(a, write_publications, &list);
    return r;
}

/* --- the database's clock --- */

/* By a JSON text, as PostgreSQL gives a timestamptz. */
static int call_now(struct backend *b, struct arena *a, char **ret_json, struct err *e)
{
    int64_t now_ms = clock_wall_ms();
    int r = b->ops->clock ? b->ops->clock(b, &now_ms, e) : 0;
    char text[TIME_TEXT_SIZE];

    clock_format(now_ms, text);
    *ret_json = arena_printf(a, "\"%s\"", text);
    return r;
}

/* --- by name --- */

enum { MOST_ARGUMENTS = 8 };

static const struct function {
    const char *name; /* after <abbr>_fn_ */
    int (*fn)(struct call *c, char **ret_json, struct err *e);
    const char *arguments[MOST_ARGUMENTS];
} lease_functions[] = {
    { "claim_task", call_claim, { "task_id", "target_task_id", "machine_id", "table_name" } },
    { "complete_task",
      call_complete,
      { "task_id", "target_task_id", "machine_id", "table_name", "attempt", "result", "result_data" } },
    { "fail_task",
      call_fail,
      { "task_id", "target_task_id", "machine_id", "table_name", "attempt", "error", "error_msg" } },
};

typedef int plain_fn(struct backend *b, struct arena *a, char **ret_json, struct err *e);

/* Functions without arguments. */
static plain_fn *plain_function_of(const struct backend *b, const char *function)
{
    size_t n = strlen(b->abbr);

    if (strcmp(function, "get_publications_full") == 0)
        return call_publications;
    return strncmp(function, b->abbr, n) == 0 && strcmp(function + n, "_fn_now") == 0 ? call_now : NULL;
}

static const struct function *lease_function_of(const struct backend *b, const char *function)
{
    size_t n = strlen(b->abbr);

    if (strncmp(function, b->abbr, n) != 0 || strncmp(function + n, "_fn_", 4) != 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(lease_functions); i++)
        if (strcmp(function + n + 4, lease_functions[i].name) == 0)
            return &lease_functions[i];
    return NULL;
}

const char *const *functions_arguments(const struct backend *b, const char *function)
{
    static const char *const none[] = { NULL };
    const struct function *f = lease_function_of(b, function);

    if (functions_shape_is(b, function))
        return functions_shape_arguments;
    if (plain_function_of(b, function))
        return none;
    return f ? f->arguments : NULL;
}

bool functions_writes(const struct backend *b, const char *function)
{
    return lease_function_of(b, function) != NULL;
}

int functions_call(struct backend *b, const struct function_call *call, struct arena *a, char **ret_json, struct err *e)
{
    struct call c = { .backend = b, .arena = a, .only_user = call->only_user };
    const struct function *f = lease_function_of(b, call->function);

    if (functions_shape_is(b, call->function))
        return functions_shape_call(b, call->arguments, a, ret_json, e);
    if (plain_function_of(b, call->function))
        return plain_function_of(b, call->function)(b, a, ret_json, e);
    if (f)
        return call_lease(&c, f->fn, call->arguments, ret_json, e);
    return err_set(e, -ENOENT, "FUNCTION_NOT_FOUND", "There is no function %.*s", 100, call->function);
}
