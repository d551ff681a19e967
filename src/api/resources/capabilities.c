/* GET /sdk/capabilities: what this service can do for the caller. A client program checks this before it offers a
 * function. */
#include "api/api.h"
#include "api/dispatch.h"
#include "api/routes.h"

enum { API_VERSION = 1, CAPABILITY_VERSION = 1 };

static const struct field capabilities_answer[] = {
    SHAPE_INT("apiVersion"),
    SHAPE_OBJECT("capabilities", NULL, .help = "name to {version, permission, granted}: what has routes here"),
    FIELD_END,
};

struct offered {
    const struct permission *permission;
    bool is_offered;
};

static void note_route(const struct route *route, const char *path, void *arg)
{
    struct offered *offered = arg;

    if (strcmp(route->permission, offered->permission->name) == 0)
        offered->is_offered = true;
}

static bool is_offered(struct request *req, const struct permission *p)
{
    struct offered offered = { p, strcmp(p->name, PERM_WEBHOOK_TRIGGER) == 0 };

    if (!offered.is_offered)
        dispatch_each_route(req->api->dispatch, note_route, &offered);
    return offered.is_offered;
}

static int list_capabilities(struct request *req, struct response *res, struct err *e)
{
    struct json_writer *w = &res->json;
    bool is_granted = false;
    int r = 0;

    json_add_int(w, "apiVersion", API_VERSION);
    json_begin_object_as(w, "capabilities");
    for (const struct permission *p = permissions; r == 0 && p->name; p++) {
        if (!is_offered(req, p))
            continue;
        r = identity_has_grant(req->api->identity, req->caller, p->name, &is_granted, e);
        json_begin_object_as(w, p->name);
        json_add_int(w, "version", CAPABILITY_VERSION);
        json_add_string(w, "permission", p->name);
        json_add_bool(w, "granted", is_granted);
        json_end(w);
    }
    json_end(w);
    return r;
}

const struct route capability_routes[] = {
    { .method = HTTP_GET,
      .path = "/sdk/capabilities",
      .permission = PERM_NONE,
      .is_sdk = true,
      .answer = capabilities_answer,
      .handler = list_capabilities,
      .summary = "What this service can do, and what of it the caller may use",
      .tag = "Connectivity" },
    ROUTE_END,
};
