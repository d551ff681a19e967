#include "models/vector_space.h"

#include "base/budget.h"
#include "identity/permissions.h"
#include "store/vectors/vector_configs.h"
#include "vector/vector_check.h"

struct net_wait vector_wait_of(const struct models_call *call)
{
    const struct models *models = call->models;
    struct net_wait wait =
        net_wait_of(settings_ms(models->settings, SETTING_VECTORS_STORE_TIMEOUT_S), call->is_gone, models->is_leaving);

    wait.holder = call->holder;
    return wait;
}

int vector_space_open(const struct models_call *call, const char *workspace, struct vector_space *ret, struct err *e)
{
    const char *scope = call->caller->scope;
    int r = vector_stores_of(call->models->vector_stores, scope, &ret->use, e);

    if (r < 0)
        return r;
    ret->call = call;
    ret->vectors = ret->use->vectors;
    ret->wait = vector_wait_of(call);
    ret->ns = workspace ? arena_printf(call->arena, "%s%s", vector_scope_prefix(call->arena, scope), workspace) : NULL;
    return 0;
}

void vector_space_clear(struct vector_space *space)
{
    vector_store_unref(space->use);
}

bool vector_space_is_far(const struct models_call *call)
{
    return vector_stores_is_registered(call->models->vector_stores, call->caller->scope);
}

bool vector_space_is_slow(const struct models_call *call, const char *workspace)
{
    AUTO(vector_space_clear) struct vector_space space = { 0 };

    return vector_space_open(call, workspace, &space, NULL) == 0 && space.vectors->ops->is_slow &&
           space.vectors->ops->is_slow(space.vectors, space.ns);
}

/* ---- models of vectors ---- */

/* Vectors of two models cannot be compared, even when they have as many dimensions. */
static int check_model(const struct vector_space *space, const char *known, const char *given, struct err *e)
{
    if (!known || !given || strcmp(known, given) == 0)
        return 0;
    return err_set(e, -EINVAL, "EMBEDDING_MODEL_MISMATCH",
                   "The namespace %s holds vectors of the model %s; those of %s cannot be compared with them.",
                   space->ns, known, given);
}

static int keep_model(const struct vector_space *space, const char *model, struct err *e)
{
    struct store *store = space->call->models->store;
    const char *provider = space->use->provider, *known = NULL;
    int64_t n = 0, n_dimensions = 0;
    int r;

    if (!model)
        return 0;
    r = store_vector_models_keep(store, space->call->arena, provider, space->ns, model, &known, e);
    if (r < 0 || strcmp(known, model) == 0)
        return r;
    r = space->vectors->ops->count(space->vectors, &space->wait, space->ns, &n, &n_dimensions, e);
    if (r == 0 && n > 0)
        return check_model(space, known, model, e);
    if (r == 0)
        r = store_vector_models_forget(store, provider, space->ns, e); /* the vectors of that model are gone */
    return r < 0 ? r : store_vector_models_keep(store, space->call->arena, provider, space->ns, model, &known, e);
}

int vector_space_model(const struct vector_space *space, const char **ret, struct err *e)
{
    return store_vector_models_get(space->call->models->store, space->call->arena, space->use->provider, space->ns, ret,
                                   e);
}

static int check_query_model(const struct vector_space *space, const char *model, struct err *e)
{
    const char *known = NULL;
    int r = 0;

    if (model)
        r = vector_space_model(space, &known, e);
    return r < 0 ? r : check_model(space, known, model, e);
}

/* An empty namespace forgets its model, as it forgets its dimensions: the next vectors may be of another model. */
static int forget_model_of_nothing(const struct vector_space *space, struct err *e)
{
    int64_t n = 0, n_dimensions = 0;
    int r = space->vectors->ops->count(space->vectors, &space->wait, space->ns, &n, &n_dimensions, e);

    return r < 0 || n > 0 ? r
                          : store_vector_models_forget(space->call->models->store, space->use->provider, space->ns, e);
}

/* ---- disk use ---- */

static struct budget_holder *payer_of(const struct caller *caller)
{
    if (caller->app_id)
        return budget_holder_get(HOLDER_APP, caller->app_id);
    return caller->kind == CALLER_KEY ? budget_holder_get(HOLDER_KEY, caller->key_id)
                                      : budget_holder_get(HOLDER_ADMIN, "");
}

/* Are n more bytes within the budget of the scope? n 0 only measures. Concurrent requests do not see each other's
 * vectors: each of them, at most one per thread of the pool, may exceed the budget by one body. */
static int check_room(const struct vector_space *space, int64_t n, struct err *e)
{
    struct budget_holder *payer;
    int64_t held = 0;
    int r;

    if (!space->vectors->ops->bytes)
        return 0;
    r = vector_stores_bytes(space->call->models->vector_stores, space->call->caller->scope, &held, e);
    if (r < 0)
        return r;
    payer = payer_of(space->call->caller);
    budget_measured(payer, BUDGET_VECTORS, held);
    r = n ? budget_check(payer, BUDGET_VECTORS, n, e) : 0;
    budget_holder_unref(payer);
    return r;
}

static int64_t bytes_of(const struct vector_batch *b)
{
    int64_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += (int64_t)(strlen(b->items[i].id) + strlen(b->items[i].metadata) + b->n_dimensions * sizeof(float));
    return n;
}

/* ---- the work ---- */

int vector_space_upsert(const struct vector_space *space, const struct vector_batch *batch, const char *model,
                        struct err *e)
{
    int r = models_permit(space->call, PERM_VECTORS_WRITE, e);

    if (r == 0)
        r = check_room(space, bytes_of(batch), e);
    if (r == 0)
        r = keep_model(space, model, e);
    if (r == 0)
        r = space->vectors->ops->upsert(space->vectors, &space->wait, space->ns, batch, e);
    return r < 0 ? r : check_room(space, 0, e);
}

static int check_text(const struct vector_space *space, const char *text, struct err *e)
{
    if (!text || space->vectors->ops->has_text)
        return 0;
    return err_add_field(e, "text", "cannot be searched in the registered vector store %s, only in %s",
                         space->use->provider, VECTORS_EMBEDDED);
}

int vector_space_query(const struct vector_space *space, const struct vector_query *query, const char *model,
                       struct vector_hits *ret, struct err *e)
{
    int r = models_permit(space->call, PERM_VECTORS_READ, e);

    if (r == 0)
        r = check_text(space, query->text, e);
    if (r == 0)
        r = check_query_model(space, model, e);
    return r < 0
               ? r
               : space->vectors->ops->query(space->vectors, &space->wait, space->ns, query, space->call->arena, ret, e);
}

int vector_space_list(const struct vector_space *space, const struct vector_list_request *page, struct vector_hits *ret,
                      struct err *e)
{
    int r = models_permit(space->call, PERM_VECTORS_READ, e);

    return r < 0 ? r
                 : space->vectors->ops->list(space->vectors, &space->wait, space->ns, page, space->call->arena, ret, e);
}

int vector_space_count(const struct vector_space *space, struct vector_space_counts *ret, struct err *e)
{
    struct vector_space_counts counts = { 0 };
    int r = models_permit(space->call, PERM_VECTORS_READ, e);

    if (r == 0)
        r = space->vectors->ops->count(space->vectors, &space->wait, space->ns, &counts.n, &counts.n_dimensions, e);
    if (r == 0)
        r = vector_space_model(space, &counts.model, e);
    if (r == 0)
        *ret = counts;
    return r;
}

int vector_space_remove(const struct vector_space *space, const struct vector_removal *removal, int64_t *ret_n,
                        struct err *e)
{
    int64_t n = 0;
    int r = models_permit(space->call, PERM_VECTORS_WRITE, e);

    if (r == 0)
        r = space->vectors->ops->remove(space->vectors, &space->wait, space->ns, removal, &n, e);
    if (r == 0 && (removal->all || n > 0))
        r = forget_model_of_nothing(space, e);
    if (r == 0)
        r = check_room(space, 0, e);
    if (r == 0)
        *ret_n = n;
    return r;
}

static int without_prefix(const struct vector_space *space, const char *prefix, struct field_strings *names,
                          struct err *e)
{
    const char **items = arena_array(space->call->arena, names->n + 1, sizeof(*items));

    for (size_t i = 0; i < names->n; i++) {
        if (!vector_check_prefix(names->items[i], prefix))
            return err_set(e, -EIO, "VECTOR_STORE_FAILED",
                           "The vector store %s named a namespace that does not begin with %s.", space->use->provider,
                           prefix);
        items[i] = names->items[i] + strlen(prefix);
    }
    names->items = items;
    return 0;
}

int vector_space_workspaces(const struct vector_space *space, struct field_strings *ret, struct err *e)
{
    const struct models_call *call = space->call;
    const char *prefix = vector_scope_prefix(call->arena, call->caller->scope);
    struct field_strings names = { 0 };
    int r = models_permit(call, PERM_VECTORS_READ, e);

    if (r == 0)
        r = space->vectors->ops->namespaces(space->vectors, &space->wait, prefix, call->arena, &names, e);
    if (r == 0)
        r = without_prefix(space, prefix, &names, e);
    if (r == 0)
        *ret = names;
    return r;
}
