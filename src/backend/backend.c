#include "backend/backend_columns.h"
#include "base/json_write.h"
#include "base/limits.h"

static const struct {
    enum backend_op op;
    const char *name;
} op_names[] = {
    { BACKEND_INSERT, "INSERT" },
    { BACKEND_UPDATE, "UPDATE" },
    { BACKEND_DELETE, "DELETE" },
};

const char *backend_op_name(enum backend_op op)
{
    for (size_t i = 0; i < ARRAY_SIZE(op_names); i++)
        if (op_names[i].op == op)
            return op_names[i].name;
    return "UNKNOWN";
}

enum backend_op backend_op_of_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(op_names); i++)
        if (name && strcmp(op_names[i].name, name) == 0)
            return op_names[i].op;
    return BACKEND_INSERT;
}

bool backend_error_passes(int r)
{
    return r == -EAGAIN || r == -EBUSY || r == -ETIMEDOUT;
}

size_t backend_count_machines(const char *attempted_by, const char *machine_id, bool *ret_has)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value list = { 0 }, item;
    size_t n = 0;

    *ret_has = false;
    if (!attempted_by || json_parse(a, slice_of(attempted_by), &list, NULL) < 0)
        return 0;
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item); n++)
        *ret_has = *ret_has || slice_eq_str(json_string(item), machine_id);
    return n;
}

const char *backend_add_machine(struct arena *a, const char *attempted_by, const char *machine_id)
{
    struct json_value list = { 0 }, item;
    struct json_iter it;
    struct json_writer w;
    struct slice key;
    struct buf out;
    bool has = false;

    if (!attempted_by || json_parse(a, slice_of(attempted_by), &list, NULL) < 0)
        list = (struct json_value){ 0 };
    backend_count_machines(attempted_by, machine_id, &has);
    buf_init(&out, LIMIT_BACKEND_JSON_BYTES);
    json_write_init(&w, &out);
    json_begin_array(&w);
    for (it = json_iter(list); json_next(&it, &key, &item);)
        json_add_value(&w, NULL, item);
    if (!has)
        json_add_string(&w, NULL, machine_id);
    json_end(&w);
    return buf_to_arena(&out, a);
}

int64_t backend_max_machines(const struct backend_claim *claim)
{
    return claim->max_machines > 0 ? claim->max_machines : LIMIT_ATTEMPT_MACHINES;
}

int backend_heartbeats(struct backend *b, const struct backend_lease *leases, size_t n, int *ret, struct err *e)
{
    if (n > 0 && b->ops->heartbeats)
        return b->ops->heartbeats(b, leases, n, ret, e);
    for (size_t i = 0; i < n; i++)
        ret[i] = backend_heartbeat(b, &leases[i], e);
    return 0;
}
