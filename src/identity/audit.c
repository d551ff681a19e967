#include "identity/audit.h"

#include "base/json_write.h"
#include "base/limits.h"
#include "identity/state.h"

int audit_append(struct identity *id, const char *actor, const char *action, const char *subject,
                 const char *detail_json, struct err *e)
{
    struct audit_row entry = { .actor = actor, .action = action, .subject = subject, .detail = detail_json };

    return store_audit_append(id->store, &entry, e);
}

int audit_append_permission(struct identity *id, const char *actor, const char *action, const char *app_id,
                            const char *permission, const char *scope, struct err *e)
{
    struct json_writer w;
    struct buf detail;
    int r;

    buf_init(&detail, LIMIT_TEXT_CHARS);
    json_write_init(&w, &detail);
    json_begin_object(&w);
    json_add_string(&w, "permission", permission);
    if (scope)
        json_add_string(&w, "scope", scope);
    json_end(&w);
    r = audit_append(id, actor, action, app_id, buf_str(&detail), e);
    buf_clear(&detail);
    return r;
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
