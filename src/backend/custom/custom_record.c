/* Records of an app's table as rows of the contract. */
#include "backend/custom/custom_private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "store/tables/tasks.h"

/* ---- values ---- */

const char *custom_text(struct arena *a, struct json_value record, const char *name)
{
    struct json_value v = json_get(record, name);

    if (json_is_absent(v))
        return NULL;
    return json_type(v) == JSON_STRING ? json_cstr(v) : json_to_str(a, v);
}

int64_t custom_time(struct json_value record, const char *name)
{
    int64_t ms = -1;

    return clock_parse(json_string(json_get(record, name)), &ms) == 0 ? ms : -1;
}

/* A key is one value, and a text without NUL. */
static const char *key_of(const struct custom_view *v, struct json_value record, struct arena *a)
{
    struct json_value key = json_get(record, v->facts.key);
    enum json_type type = json_type(key);
    const char *text = type == JSON_OBJECT || type == JSON_ARRAY ? NULL : custom_text(a, record, v->facts.key);

    return text && *text && strlen(text) <= LIMIT_CUSTOM_KEY ? text : NULL;
}

/* ---- rows ---- */

/* From the table alone nobody can tell whether a row that waits was inserted or changed so. For an app that does not
 * list INSERT, a row whose times say that it was changed is the work of an UPDATE. */
static enum backend_op op_of(const struct custom_view *v, struct json_value record)
{
    int64_t created_ms = custom_time(record, custom_column_names[CUSTOM_CREATED_AT]);

    if (!(v->events & BACKEND_INSERT) && created_ms >= 0 &&
        custom_time(record, custom_column_names[CUSTOM_UPDATED_AT]) > created_ms)
        return BACKEND_UPDATE;
    return BACKEND_INSERT;
}

static const char *text_of(const struct custom_view *v, struct json_value record, enum custom_column c, struct arena *a)
{
    return v->facts.has[c] ? arena_strdup(a, custom_text(a, record, custom_column_names[c])) : NULL;
}

/* jsonb is shown as JSON; in a column of another type the outcome is a JSON string. */
static const char *result_of(const struct custom_view *v, struct json_value record, struct arena *a)
{
    struct json_value value = json_get(record, custom_column_names[CUSTOM_RESULT]);

    return v->facts.has[CUSTOM_RESULT] && !json_is_absent(value) ? json_to_str(a, value) : NULL;
}

bool custom_record_read(const struct custom_view *v, struct json_value record, struct arena *a, struct backend_row *ret)
{
    const char *key = key_of(v, record, a), *status = text_of(v, record, CUSTOM_STATUS, a);
    int64_t locked_ms = custom_time(record, custom_column_names[CUSTOM_LOCKED_AT]);

    if (!key)
        return false;
    *ret = (struct backend_row){
        .table = arena_strdup(a, v->table),
        .id = arena_strdup(a, key),
        .app_id = arena_strdup(a, v->app_id),
        .user_id = text_of(v, record, CUSTOM_USER_ID, a),
        .raw_data = json_to_str(a, record),
        .status = status ? status : "",
        .locked_by = text_of(v, record, CUSTOM_LOCKED_BY, a),
        .locked_at = text_of(v, record, CUSTOM_LOCKED_AT, a),
        .completed_at = text_of(v, record, CUSTOM_COMPLETED_AT, a),
        .error_message = text_of(v, record, CUSTOM_ERROR_MESSAGE, a),
        .attempted_by = text_of(v, record, CUSTOM_ATTEMPTED_BY, a),
        .result = result_of(v, record, a),
        .created_at = text_of(v, record, CUSTOM_CREATED_AT, a),
        .retry_count = json_int(json_get(record, custom_column_names[CUSTOM_RETRY_COUNT])),
        .attempt = MAX(locked_ms, (int64_t)0),
        .event = op_of(v, record),
    };
    ret->created_at = ret->created_at ? ret->created_at : "";
    return true;
}

/* ---- comparing ---- */

static bool is_one_of(struct slice name, const enum custom_column *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq_str(name, custom_column_names[columns[i]]))
            return true;
    return false;
}

/* But for these columns. */
static bool are_same(struct json_value one, struct json_value other, const enum custom_column *columns, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_iter it = json_iter(one);
    struct json_value value;
    struct slice name;

    if (json_length(one) != json_length(other))
        return false;
    while (json_next(&it, &name, &value))
        if (!is_one_of(name, columns, n) && strcmp(json_to_str(a, value), json_to_str(a, json_get(other, name.p))) != 0)
            return false;
    return true;
}

bool custom_record_is_same_data(struct json_value one, struct json_value other)
{
    static const enum custom_column columns[] = { CUSTOM_STATUS,       CUSTOM_LOCKED_BY,     CUSTOM_LOCKED_AT,
                                                  CUSTOM_COMPLETED_AT, CUSTOM_ERROR_MESSAGE, CUSTOM_RESULT,
                                                  CUSTOM_RETRY_COUNT,  CUSTOM_ATTEMPTED_BY,  CUSTOM_UPDATED_AT };

    return are_same(one, other, columns, ARRAY_SIZE(columns));
}

bool custom_record_is_beat(struct json_value one, struct json_value other)
{
    static const enum custom_column columns[] = { CUSTOM_LOCKED_AT, CUSTOM_UPDATED_AT };

    return are_same(one, other, columns, ARRAY_SIZE(columns));
}

/* ---- what the table does not say ---- */

/* The stored end counts from the moment it is on disk, though the table shows it only once the app has it. */
static void show_end(struct custom *c, struct backend_row *row, const struct task_row *task,
                     const struct custom_lease_note *note)
{
    if (!status_is_leased(row->status) || custom_delivery_is_open(c->deliveries, row->table, row->id, NULL) != 1)
        return;
    row->status = note->ended                                ? note->ended
                  : strcmp(task->status, STATUS_FAILED) == 0 ? STATUS_FAILED
                                                             : STATUS_COMPLETED;
}

/* False: another thread has put a note since. */
static bool learn_attempt(struct custom *c, const struct backend_row *row, struct custom_lease_note *note)
{
    const struct custom_lease_note seen = *note;

    snprintf(note->machine, sizeof(note->machine), "%s", row->locked_by);
    note->attempt = row->attempt;
    note->ended = NULL;
    return custom_memory_replace(c->memory, row->table, row->id, &seen, note);
}

static bool is_known(const struct backend_row *row, const struct custom_lease_note *note)
{
    return !status_is_leased(row->status) || !row->locked_by ||
           (note->attempt && strcmp(note->machine, row->locked_by) == 0);
}

/* A lease keeps the number under which it was first seen, though each heartbeat changes locked_at. */
static void show_attempt(struct custom *c, struct backend_row *row, struct custom_lease_note *note)
{
    while (!is_known(row, note) && !learn_attempt(c, row, note))
        custom_memory_get(c->memory, row->table, row->id, note);
    row->attempt = note->attempt;
}

/* A table without the column attempted_by: who has failed the row is known from the tasks of this service, as far as it
 * saw them. A row that waits is free for every machine. */
static void show_machines(struct backend_row *row, const struct task_row *task, const struct custom_lease_note *note,
                          struct arena *a)
{
    const char *last = row->locked_by ? row->locked_by : note->machine;

    if (row->attempted_by)
        return;
    row->attempted_by = "[]";
    if (strcmp(row->status, STATUS_PENDING) == 0)
        return;
    if (task->attempted_by)
        row->attempted_by = arena_strdup(a, task->attempted_by);
    if (strcmp(row->status, STATUS_FAILED) == 0 && *last)
        row->attempted_by = backend_add_machine(a, row->attempted_by, last);
}

static bool is_data_changed(const struct backend_row *row, const struct task_row *task)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value now, before;

    return task->raw_data && json_parse(a, slice_of(row->raw_data), &now, NULL) == 0 &&
           json_parse(a, slice_of(task->raw_data), &before, NULL) == 0 && !custom_record_is_same_data(now, before);
}

/* A row that waits although its task here has ended was changed since: whoever reads the row before the event of the
 * change comes, or after it was lost, learns so from the task. */
static void show_event(struct backend_row *row, const struct task_row *task, struct arena *a)
{
    bool has_ended = strcmp(task->status, STATUS_COMPLETED) == 0 || strcmp(task->status, STATUS_CANCELED) == 0;

    if (strcmp(row->status, STATUS_PENDING) != 0 || row->old_data)
        return;
    if (!has_ended && (strcmp(task->status, STATUS_FAILED) != 0 || !is_data_changed(row, task)))
        return;
    row->event = BACKEND_UPDATE;
    row->old_data = arena_strdup(a, task->raw_data);
}

void custom_row_complete(struct custom *c, struct arena *a, struct backend_row *row)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct task_row task = { .status = "" };
    struct custom_lease_note note;

    custom_memory_get(c->memory, row->table, row->id, &note);
    if (store_tasks_get_by_row(c->config.store, scratch, row->table, row->id, &task, NULL) < 0)
        task = (struct task_row){ .status = "" };
    show_event(row, &task, a);
    show_end(c, row, &task, &note);
    show_attempt(c, row, &note);
    show_machines(row, &task, &note, a);
}
