#include "identity/consent.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "identity/audit.h"
#include "identity/change.h"
#include "identity/decision.h"
#include "identity/permissions.h"
#include "identity/state.h"

const char *consent_scope_name(enum consent_scope s)
{
    static const char *const names[] = {
        [CONSENT_ONCE] = "once",
        [CONSENT_UNTIL_STOP] = "until_stop",
        [CONSENT_UNTIL_DATE] = "until_date",
        [CONSENT_ALWAYS] = "always",
    };

    return names[s];
}

static int find_app(struct identity *id, const char *app_id, struct arena *a, const char **ret_name, struct err *e)
{
    struct cached_app_name found;

    if (!credential_cache_find_app(&id->cache, app_id, a, &found))
        return err_set(e, -ENOENT, "APP_NOT_FOUND", "There is no app with the id %.100s.", app_id);
    *ret_name = found.name;
    return 0;
}

int consent_check_name(const char *permission, struct err *e)
{
    struct slice name = slice_of(permission);

    size_t max = permission_find(permission) ? LIMIT_PERMISSION_CHARS : LIMIT_NAME_CHARS;

    if (name.n == 0 || !utf8_is_valid(name) || utf8_length(name) > max)
        return err_add_field(e, "permission", "must be a name of 1 to %zu characters", max);
    return 0;
}

/* Sets the answer from the stored decision; with `may_request_again` a first denial leaves it open. */
static int fill_answer(struct identity *id, const char *app_id, bool may_request_again, struct consent_answer *answer,
                       struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    enum decision decision;
    struct grant_row row;
    int r;

    r = store_grants_get(id->store, a, app_id, answer->permission, &row, NULL);
    if (r < 0 && r != -ENOENT)
        return err_set(e, r, err_code_of(r, "STORE_ERROR"), "The grants could not be read.");
    decision = decision_now(r == 0 ? &row : NULL, clock_wall_ms());
    answer->is_granted = decision == DECISION_ALLOWED;
    answer->is_denied = (r == 0 && decision_is_final(&row)) || (decision == DECISION_DENIED && !may_request_again);
    return 0;
}

pthread_mutex_t *identity_order(struct identity *id, const char *app_id)
{
    return &id->order[hash_fast(slice_of(app_id)) % CONSENT_LOCKS];
}

/* Reads the decisions and asks about the rest, without a lock over both: when a decision was reported to the queue
 * meanwhile, both are done again, so no answer is missed in between. */
static int read_and_request(struct identity *id, struct consent_waiter *w, const char *app_name, bool may_request_again,
                            struct err *e)
{
    bool is_new = false;
    int r;

    do {
        w->seen_changes = consent_queue_changes(&id->queue);
        r = 0;
        for (size_t i = 0; r == 0 && i < w->n; i++)
            r = fill_answer(id, w->app_id, may_request_again, &w->answers[i], e);
        if (r == 0)
            r = consent_queue_request(&id->queue, w, app_name, &is_new, e);
    } while (r == -ESTALE);
    if (is_new)
        consent_queue_notify(&id->queue);
    return r;
}

static int request_answers(struct identity *id, const struct consent_request *request, bool may_request_again,
                           struct consent_answer *answers, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct consent_waiter waiter = {
        .app_id = request->app_id, .answers = answers, .n = request->n, .is_patient = request->wait_ms > 0
    };
    const char *app_name = NULL;
    int r;

    for (size_t i = 0; i < request->n; i++)
        answers[i] = (struct consent_answer){ .permission = request->permissions[i] };
    r = find_app(id, request->app_id, a, &app_name, e);
    for (size_t i = 0; r == 0 && i < request->n; i++)
        r = consent_check_name(answers[i].permission, e);
    if (r == 0)
        r = read_and_request(id, &waiter, app_name, may_request_again, e);
    if (r < 0)
        return r;
    consent_queue_wait(&id->queue, &waiter, request->wait_ms, request->is_gone);
    return 0;
}

int consent_request(struct identity *id, const struct consent_request *request, struct consent_answer *answers,
                    struct err *e)
{
    if (request->n > LIMIT_PERMISSIONS_PER_APP)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "permissions must have at most %d elements.",
                       LIMIT_PERMISSIONS_PER_APP);
    return request_answers(id, request, true, answers, e);
}

int consent_app_misses(struct identity *id, const char *app_id, const char *permission, struct err *e)
{
    const struct consent_request request = { .app_id = app_id, .permissions = &permission, .n = 1 };
    struct consent_answer answer;

    return request_answers(id, &request, false, &answer, e);
}

static bool has_name(const char *const *names, size_t n, const char *permission)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], permission) == 0)
            return true;
    return false;
}

/* Appends the permissions that were allowed for a command other than the current one. */
static int add_outdated(struct identity *id, const char *app_id, struct arena *a, const char **names, size_t *n,
                        struct err *e)
{
    struct grant_row *rows;
    size_t n_rows;
    int r = store_grants_list(id->store, a, app_id, &rows, &n_rows, e);

    for (size_t i = 0; r == 0 && i < n_rows && *n < LIMIT_PERMISSIONS_PER_APP; i++)
        if (decision_is_outdated(&rows[i]) && !has_name(names, *n, rows[i].permission))
            names[(*n)++] = rows[i].permission;
    return r;
}

int consent_app_declares(struct identity *id, const char *app_id, const char *const *declared, size_t n, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char **names;
    struct consent_request request;
    int r;

    r = identity_reload_apps(id, e);
    if (r < 0)
        return r;
    if (n > LIMIT_PERMISSIONS_PER_APP)
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "permissions must have at most %d elements.",
                       LIMIT_PERMISSIONS_PER_APP);
    names = arena_array(a, LIMIT_PERMISSIONS_PER_APP, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = declared[i];
    r = add_outdated(id, app_id, a, names, &n, e);
    if (r < 0)
        return r;
    request = (struct consent_request){ .app_id = app_id, .permissions = names, .n = n };
    return request_answers(id, &request, false, arena_array(a, n + 1, sizeof(struct consent_answer)), e);
}

/* A question is over when the app has the command again that the permission was granted for. */
static int describe_change(struct identity *id, struct arena *a, struct consent_question *q, bool *ret_is_over,
                           struct err *e)
{
    struct grant_row row;
    int r = store_grants_get(id->store, a, q->app_id, q->permission, &row, NULL);

    if (r == 0 && decision_is_outdated(&row))
        q->change = command_change(a, row.command, row.app_command);
    *ret_is_over = r == 0 && decision_now(&row, clock_wall_ms()) == DECISION_ALLOWED;
    return r == 0 || r == -ENOENT ? 0 : err_set(e, r, err_code_of(r, "STORE_ERROR"), "The grants could not be read.");
}

int consent_pending(struct identity *id, struct arena *a, struct consent_questions *ret, struct err *e)
{
    struct consent_questions all;
    bool is_over = false;
    int r = 0;

    consent_queue_list(&id->queue, a, &all);
    *ret = (struct consent_questions){ .items = all.items };
    for (size_t i = 0; r == 0 && i < all.n; i++) {
        r = describe_change(id, a, &all.items[i], &is_over, e);
        if (!is_over)
            ret->items[ret->n++] = all.items[i];
    }
    return r;
}

static int check_until(const struct consent_decision *d, struct err *e)
{
    int64_t until_ms;

    if (d->scope != CONSENT_UNTIL_DATE)
        return 0;
    if (!d->until || clock_parse(slice_of(d->until), &until_ms) < 0)
        return err_add_field(e, "until", "must be a date or a time in ISO 8601 form when scope is until_date");
    if (until_ms <= clock_wall_ms())
        return err_add_field(e, "until", "must be in the future");
    return 0;
}

/* Two windows may deny the same question: the second denial answers no question and changes nothing. Called with the
 * lock of the app held. */
static bool is_reported_again(struct identity *id, const struct consent_decision *d)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct grant_row row;

    if (d->is_allowed || consent_queue_has(&id->queue, d->app_id, d->permission))
        return false;
    return store_grants_get(id->store, a, d->app_id, d->permission, &row, NULL) == 0 &&
           decision_now(&row, clock_wall_ms()) == DECISION_DENIED;
}

static int store_decision(struct identity *id, const struct consent_decision *d, struct err *e)
{
    struct grant_row row = {
        .app_id = d->app_id,
        .permission = d->permission,
        .decision = d->is_allowed ? "allow" : "deny",
        .scope = consent_scope_name(d->scope),
        .expires_at = d->scope == CONSENT_UNTIL_DATE ? d->until : NULL,
    };
    int r;

    r = audit_append_permission(id, d->actor, d->is_allowed ? "permission.allow" : "permission.deny", d->app_id,
                                d->permission, row.scope, e);
    if (r < 0)
        return r;
    return is_reported_again(id, d) ? store_grants_deny_again(id->store, &row, e)
                                    : store_grants_set(id->store, &row, e);
}

static int store_and_resolve(struct identity *id, const struct consent_decision *d, struct err *e)
{
    pthread_mutex_t *order = identity_order(id, d->app_id);
    int r;

    pthread_mutex_lock(order);
    r = store_decision(id, d, e);
    if (r == 0)
        consent_queue_resolve(&id->queue, d->app_id, d->permission, d->is_allowed);
    pthread_mutex_unlock(order);
    return r;
}

int consent_decide(struct identity *id, const struct consent_decision *d, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *app_name;
    int r;

    r = find_app(id, d->app_id, a, &app_name, e);
    if (r == 0)
        r = consent_check_name(d->permission, e);
    if (r == 0)
        r = check_until(d, e);
    if (r == 0)
        r = store_and_resolve(id, d, e);
    if (r == 0)
        consent_queue_notify(&id->queue);
    return r;
}

static int drop_grant(struct identity *id, const char *app_id, const char *permission, struct err *e)
{
    pthread_mutex_t *order = identity_order(id, app_id);
    int r;

    pthread_mutex_lock(order);
    r = store_grants_revoke(id->store, app_id, permission, e);
    if (r == 0)
        consent_queue_withdraw(&id->queue, app_id, permission);
    pthread_mutex_unlock(order);
    return r;
}

int consent_revoke(struct identity *id, const char *app_id, const char *permission, const char *actor, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *app_name;
    struct grant_row row;
    int r;

    r = find_app(id, app_id, a, &app_name, e);
    if (r < 0)
        return r;
    r = store_grants_get(id->store, a, app_id, permission, &row, NULL);
    if (r == -ENOENT)
        return err_set(e, r, "GRANT_NOT_FOUND", "Nothing was decided about the permission %.100s of this app.",
                       permission);
    if (r == 0)
        r = audit_append_permission(id, actor, "permission.revoke", app_id, permission, NULL, e);
    if (r == 0)
        r = drop_grant(id, app_id, permission, e);
    if (r == 0)
        consent_queue_notify(&id->queue);
    return r;
}

static bool is_allowed_part(const struct grant_row *row, const char *permission)
{
    const size_t n = strlen(permission);

    return strcmp(row->decision, "allow") == 0 && strncmp(row->permission, permission, n) == 0 &&
           (row->permission[n] == '\0' || row->permission[n] == '/');
}

int consent_revoke_part(struct identity *id, const char *permission, const char *actor, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct grant_row *rows;
    size_t n;
    int r = store_grants_list(id->store, a, NULL, &rows, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        if (!is_allowed_part(&rows[i], permission))
            continue;
        r = consent_revoke(id, rows[i].app_id, rows[i].permission, actor, e);
        if (r == -ENOENT) /* revoked meanwhile */
            r = 0;
    }
    return r;
}

static int drop_grants(struct identity *id, const char *app_id, struct err *e)
{
    pthread_mutex_t *order = identity_order(id, app_id);
    int64_t n;
    int r;

    pthread_mutex_lock(order);
    r = store_grants_reset(id->store, app_id, &n, e);
    if (r == 0)
        consent_queue_remove_app(&id->queue, app_id);
    pthread_mutex_unlock(order);
    return r;
}

int consent_reset(struct identity *id, const char *app_id, const char *actor, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *app_name;
    int r;

    r = find_app(id, app_id, a, &app_name, e);
    if (r == 0)
        r = audit_append(id, actor, "permission.reset", app_id, NULL, e);
    if (r == 0)
        r = drop_grants(id, app_id, e);
    if (r == 0)
        consent_queue_notify(&id->queue);
    return r;
}

int consent_app_stopped(struct identity *id, const char *app_id, struct err *e)
{
    return store_grants_clear_until_stop(id->store, app_id, e);
}

void consent_app_removed(struct identity *id, const char *app_id)
{
    struct err e = { 0 };

    if (identity_reload_apps(id, &e) < 0)
        log_debug("identity", NULL, "the removed app stays known until the next change: %s", e.text);
    consent_queue_remove_app(&id->queue, app_id);
    consent_queue_notify(&id->queue);
}

void consent_poke(struct identity *id)
{
    consent_queue_poke(&id->queue);
}

void consent_end_waits(struct identity *id)
{
    consent_queue_end_waits(&id->queue);
}

void consent_on_change(struct identity *id, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&id->queue.lock);
    id->queue.on_change = fn;
    id->queue.on_change_arg = arg;
    pthread_mutex_unlock(&id->queue.lock);
}
