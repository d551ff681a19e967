#include "identity/decision.h"

#include "base/clock.h"

enum { DENIALS_THAT_STOP_REQUESTS = 2, NOTE_EVERY_MS = 60000 };

static bool has_scope(const struct grant_row *row, enum consent_scope scope)
{
    return strcmp(row->scope, consent_scope_name(scope)) == 0;
}

static bool is_allow(const struct grant_row *row)
{
    return strcmp(row->decision, "allow") == 0;
}

/* An end time that cannot be read counts as past. */
static bool is_expired(const struct grant_row *row, int64_t wall_ms)
{
    int64_t end_ms;

    if (!has_scope(row, CONSENT_UNTIL_DATE))
        return false;
    return !row->expires_at || clock_parse(slice_of(row->expires_at), &end_ms) < 0 || end_ms <= wall_ms;
}

bool decision_is_single(const struct grant_row *row)
{
    return is_allow(row) && has_scope(row, CONSENT_ONCE);
}

bool decision_is_outdated(const struct grant_row *row)
{
    return is_allow(row) && row->command && !(row->app_command && strcmp(row->command, row->app_command) == 0);
}

enum decision decision_now(const struct grant_row *row, int64_t wall_ms)
{
    if (!row || is_expired(row, wall_ms) || (decision_is_single(row) && row->is_used) || decision_is_outdated(row))
        return DECISION_NONE;
    return is_allow(row) ? DECISION_ALLOWED : DECISION_DENIED;
}

bool decision_is_final(const struct grant_row *row)
{
    return row && !is_allow(row) && row->n_denials >= DENIALS_THAT_STOP_REQUESTS;
}

bool decision_is_noted(const struct grant_row *row, int64_t wall_ms)
{
    int64_t used_ms;

    if (!row->last_used_at || clock_parse(slice_of(row->last_used_at), &used_ms) < 0)
        return false;
    return wall_ms - used_ms < NOTE_EVERY_MS && used_ms <= wall_ms;
}
