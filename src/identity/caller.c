#include "identity/identity.h"

struct caller *caller_copy(struct arena *a, const struct caller *from)
{
    struct caller *copy = ARENA_NEW(a, struct caller);

    *copy = (struct caller){ .kind = from->kind,
                             .key_id = arena_strdup(a, from->key_id),
                             .key_fingerprint = arena_strdup(a, from->key_fingerprint),
                             .app_id = arena_strdup(a, from->app_id),
                             .app_name = arena_strdup(a, from->app_name),
                             .scope = arena_strdup(a, from->scope),
                             .actor = arena_strdup(a, from->actor),
                             .session = arena_strdup(a, from->session),
                             .task_uuid = arena_strdup(a, from->task_uuid),
                             .attempt = from->attempt };
    return copy;
}
