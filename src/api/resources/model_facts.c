/* What was learnt about models from the refusals of their providers (store/tables/model_facts.h), for the local
 * administrator: a model that got better is tried anew once its facts are forgotten. */
#include "api/api.h"
#include "api/routes.h"
#include "base/limits.h"
#include "store/tables/model_facts.h"

struct facts_query {
    const char *provider, *model;
};

static const struct field facts_fields[] = {
    FIELD_STRING(struct facts_query, provider, "provider", .min = 1, .max = LIMIT_NAME_CHARS, .help = "required"),
    FIELD_STRING(struct facts_query, model, "model", .min = 1, .max = LIMIT_NAME_CHARS,
                 .help = "absent: every model of it"),
    FIELD_END,
};
static const struct field fact_shape[] = {
    SHAPE_STRING("provider"),
    SHAPE_STRING("model"),
    SHAPE_STRING("fact", .help = "tools, images or window"),
    SHAPE_STRING("value", .help = "tools: schema or instruction, how it gets them; images: none; window: tokens"),
    SHAPE_TIME("learnt_at"),
    FIELD_END,
};
static const struct field facts_answer[] = { SHAPE_LIST("facts", fact_shape), FIELD_END };
static const struct field forget_answer[] = { SHAPE_INT("forgotten", .help = "how many facts"), FIELD_END };

static int list_facts(struct request *req, struct response *res, struct err *e)
{
    struct model_fact_row *rows;
    size_t n = 0;
    int r = store_model_facts_list(req->api->store, req->arena, &rows, &n, e);

    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "facts");
    for (size_t i = 0; i < n; i++) {
        json_begin_object(&res->json);
        json_add_string(&res->json, "provider", rows[i].provider);
        json_add_string(&res->json, "model", rows[i].model);
        json_add_string(&res->json, "fact", rows[i].fact);
        json_add_string(&res->json, "value", rows[i].value);
        json_add_string(&res->json, "learnt_at", rows[i].learnt_at);
        json_end(&res->json);
    }
    json_end(&res->json);
    return 0;
}

static int forget_facts(struct request *req, struct response *res, struct err *e)
{
    const struct facts_query *query = req->query;
    int64_t n = 0;
    int r = query->provider ? store_model_facts_forget(req->api->store, query->provider, query->model, &n, e)
                            : err_add_field(e, "provider", "is required");

    if (r == 0)
        json_add_int(&res->json, "forgotten", n);
    return r;
}

const struct route model_fact_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/models/facts",
      .permission = PERM_ADMIN,
      .answer = facts_answer,
      .handler = list_facts,
      .summary = "What was learnt about models from refusals",
      .tag = "Providers" },
    { .method = HTTP_DELETE,
      .path = "/api/models/facts",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(facts_fields, struct facts_query),
      .answer = forget_answer,
      .handler = forget_facts,
      .summary = "Forget what was learnt about a provider's models, which are tried anew",
      .tag = "Providers" },
    ROUTE_END,
};
