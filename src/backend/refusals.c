#include "backend/refusals.h"
#include "backend/status.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/uuid.h"

/* --- what a caller hands in --- */

/* A database refuses the same texts, but not in words for a person. */
static int check_json(const char *text, const char *field, bool is_object, size_t max, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value value;
    struct err why = { 0 };
    int r;

    if (strlen(text) > max)
        return err_set(e, -E2BIG, "TOO_LARGE", "%s must be at most %zu bytes", field, max);
    r = json_parse(a, slice_of(text), &value, &why);
    if (r == -ENOMEM)
        return memory_refuse(e);
    if (r < 0)
        return err_add_field(e, field, "must be JSON: %s", why.text);
    if (is_object && json_type(value) != JSON_OBJECT)
        return err_add_field(e, field, "must be an object");
    return 0;
}

static int check_raw_data(const char *raw_data, struct err *e)
{
    return check_json(raw_data, "raw_data", true, LIMIT_BODY_ACTIVITY, e);
}

int refusals_check_new_row(const struct backend_new_row *in, struct err *e)
{
    if (in->id && !uuid_is_valid(slice_of(in->id)))
        return err_add_field(e, "id", "must be a UUID");
    return check_raw_data(in->raw_data, e);
}

int refusals_check_patch(const struct backend_patch *patch, struct err *e)
{
    int r = patch->raw_data ? check_raw_data(patch->raw_data, e) : 0;

    return r < 0 ? r : refusals_check_result(patch->result, e);
}

int refusals_check_result(const char *result_json, struct err *e)
{
    return result_json ? check_json(result_json, "result", false, LIMIT_RESULT_BYTES, e) : 0;
}

int refusals_check_abbr(const char *abbr, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char *name;

    if (strchr(abbr, '.') || backend_table_name(a, arena_printf(a, "%s_activities", abbr), &name, NULL) < 0)
        return err_set(
            e, -EINVAL, "VALIDATION_ERROR",
            "identity.abbr must be letters, digits and underscores, not beginning with a digit, at most %d of them",
            LIMIT_TABLE_NAME_PART - (int)strlen("_activities"));
    return 0;
}

/* --- refusals --- */

int refusals_no_row(struct err *e)
{
    return err_set(e, -ENOENT, "NOT_FOUND", "Activity not found");
}

int refusals_list_too_large(struct err *e)
{
    return err_set(e, -E2BIG, "TOO_LARGE", "These rows are larger than %d MiB together: ask for fewer with limit",
                   LIMIT_REPLY >> 20);
}

int refusals_no_table(const char *table, struct err *e)
{
    return err_set(e, -ENOENT, "UNKNOWN_TABLE", "There is no table %.*s", 130, table);
}

int refusals_lease_lost(const struct backend_lease *lease, struct err *e)
{
    return err_set(e, -ESTALE, "LEASE_LOST", "Machine %s does not hold this row in attempt %lld any more",
                   lease->machine_id, (long long)lease->attempt);
}

int refusals_not_dirty(struct err *e)
{
    return err_set(e, -ESTALE, "NOT_DIRTY", "The row holds nothing new to work on");
}

static int already_locked(const struct backend_row *row, const char *what, struct err *e)
{
    err_add_extra(e, "locked_by", row->locked_by ? row->locked_by : "");
    return err_set(e, -EBUSY, "ALREADY_LOCKED", "The row is %s by %s", what,
                   row->locked_by ? row->locked_by : "nobody known");
}

int refusals_replay(const struct backend_row *row, struct err *e)
{
    return already_locked(row, "being worked on", e);
}

int refusals_claim(const struct backend_claim *claim, const struct backend_row *row, struct err *e)
{
    int64_t max_machines = backend_max_machines(claim), n;
    bool has_attempted;

    if (status_is_leased(row->status))
        return already_locked(row, "held", e);
    if (!status_is_claimable(row->status))
        return err_set(e, -EBUSY, "NOT_CLAIMABLE", "The row is %s", row->status);
    n = (int64_t)backend_count_machines(row->attempted_by, claim->machine_id, &has_attempted);
    if (n >= max_machines)
        return err_set(e, -EDQUOT, "QUARANTINED", "%lld machines failed this row: it waits for a person", (long long)n);
    if (has_attempted)
        return err_set(e, -EPERM, "ALREADY_ATTEMPTED", "Machine %s has failed this row before", claim->machine_id);
    return err_set(e, -EBUSY, "NOT_CLAIMABLE", "The row cannot be claimed now");
}

int refusals_machine_taken(const char *machine_id, const char *hostname, struct err *e)
{
    return err_set(
        e, -EADDRINUSE, "MACHINE_ID_TAKEN",
        "Another service, on %.100s, works on this backend with the machine id %.100s; give this one an id of its own: "
        "`hearth settings set identity.machine_id NAME`",
        hostname ? hostname : "a host", machine_id);
}
