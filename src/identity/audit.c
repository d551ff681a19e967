#include "identity/audit.h"

#include "base/json_write.h"
#include "base/limits.h"
#include "base/log.h"
#include "identity/state.h"

struct audit_use {
    struct identity *id; /* borrowed */
    struct audit_row entry;
    struct writer_job job;
    struct err error; /* of the job */
    bool is_ended;    /* the job is */
    int r;            /* of the ended job */
};

int audit_append(struct identity *id, const char *actor, const char *action, const char *subject,
                 const char *detail_json, struct err *e)
{
    struct audit_row entry = { .actor = actor, .action = action, .subject = subject, .detail = detail_json };

    return store_audit_append(id->store, &entry, e);
}

static const char *permission_detail(struct arena *a, const char *permission, const char *scope)
{
    struct json_writer w;
    struct buf detail;

    buf_init(&detail, LIMIT_TEXT_CHARS);
    json_write_init(&w, &detail);
    json_begin_object(&w);
    json_add_string(&w, "permission", permission);
    if (scope)
        json_add_string(&w, "scope", scope);
    json_end(&w);
    return buf_to_arena(&detail, a);
}

int audit_append_permission(struct identity *id, const char *actor, const char *action, const char *app_id,
                            const char *permission, const char *scope, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);

    return audit_append(id, actor, action, app_id, permission_detail(a, permission, scope), e);
}

/* ---- uses of permissions ---- */

/* A use that waits at once has nothing left to wait for at its end. */
static int wait_at_once(struct audit_use **use, struct err *e)
{
    int r = audit_end_use(*use, e);

    *use = NULL;
    return r;
}

int audit_begin_use(struct identity *id, const struct caller *c, const char *permission, struct arena *a,
                    struct audit_use **ret, struct err *e)
{
    struct audit_use *use = ARENA_NEW(a, struct audit_use);
    int r;

    use->id = id;
    use->entry = (struct audit_row){ .actor = arena_strdup(a, c->actor),
                                     .action = "permission.use",
                                     .subject = arena_strdup(a, c->app_id),
                                     .detail = permission_detail(a, permission, NULL) };
    err_init(&use->error);
    r = store_audit_begin(id->store, &use->entry, &use->job, &use->error);
    if (r < 0)
        return err_set(e, r, use->error.code, "%s", use->error.text);
    *ret = use;
    return atomic_load(&id->is_audit_failing) ? wait_at_once(ret, e) : 0;
}

static void end_job(struct audit_use *use)
{
    if (use->is_ended)
        return;
    use->r = writer_end(&use->job);
    use->is_ended = true;
    atomic_store(&use->id->is_audit_failing, use->r < 0);
}

void audit_meanwhile(void *arg, bool is_free)
{
    struct audit_use *use = arg;

    if (use && is_free)
        end_job(use);
    else if (use && !use->is_ended)
        writer_hasten(&use->job);
}

int audit_end_use(struct audit_use *use, struct err *e)
{
    if (!use)
        return 0;
    end_job(use);
    if (use->r == 0)
        return 0;
    log_error("identity", NULL, "an entry of the audit log is not stored: %s by %s: %s", use->entry.detail,
              use->entry.actor, use->error.text);
    return err_set(e, use->r, use->error.code, "%s", use->error.text);
}

int audit_list(struct identity *id, struct arena *a, int64_t before, int64_t limit, struct audit_row **ret,
               size_t *ret_n, struct err *e)
{
    return store_audit_list(id->store, a, before, limit, ret, ret_n, e);
}

int audit_verify(struct identity *id, struct audit_verdict *ret, struct err *e)
{
    return store_audit_verify(id->store, ret, e);
}
