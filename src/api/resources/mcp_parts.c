/* Resources and prompts of MCP servers for the local administrator. */
#include "api/api.h"
#include "api/resources/mcp.h"
#include "api/routes.h"
#include "base/limits.h"
#include "base/suggest.h"

struct read_query {
    const char *uri;
};
struct prompt_body {
    const char *name;
    struct json_value arguments;
};

static const struct field read_fields[] = {
    FIELD_STRING(struct read_query, uri, "uri", .min = 1, .max = LIMIT_MCP_TARGET_URI_BYTES, .help = "required"),
    FIELD_END,
};
static const struct field prompt_fields[] = {
    FIELD_STRING(struct prompt_body, name, "name", FIELD_REQUIRED, .min = 1, .max = LIMIT_MCP_NAME_BYTES),
    FIELD_STRING_MAP(struct prompt_body, arguments, "arguments", .max = LIMIT_ARGS),
    FIELD_END,
};

static const struct field resource_shape[] = {
    SHAPE_STRING("uri"),
    SHAPE_STRING("name"),
    SHAPE_STRING("title", .flags = FIELD_NULLABLE),
    SHAPE_STRING("description", .flags = FIELD_NULLABLE),
    SHAPE_STRING("mime_type", .flags = FIELD_NULLABLE),
    FIELD_END,
};
static const struct field prompt_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_STRING("title", .flags = FIELD_NULLABLE),
    SHAPE_STRING("description", .flags = FIELD_NULLABLE),
    SHAPE_ANY("arguments", .flags = FIELD_NULLABLE, .help = "an array of {name, description, required}"),
    FIELD_END,
};
static const struct field resources_answer[] = {
    SHAPE_STRING("server"),
    SHAPE_LIST("resources", resource_shape),
    SHAPE_LIST("templates", resource_shape, .help = "their uri is a URI template (RFC 6570)"),
    FIELD_END,
};
static const struct field read_answer[] = {
    SHAPE_STRING("server"),
    SHAPE_ANY("contents", .help = "an array of {uri, mimeType, text or blob}"),
    FIELD_END,
};
static const struct field prompts_answer[] = { SHAPE_STRING("server"), SHAPE_LIST("prompts", prompt_shape), FIELD_END };
static const struct field prompt_answer[] = {
    SHAPE_STRING("server"),
    SHAPE_STRING("description", .flags = FIELD_NULLABLE),
    SHAPE_ANY("messages", .help = "an array of {role, content}"),
    FIELD_END,
};

/* ---- resources ---- */

static void write_resources(struct json_writer *w, const char *name, const struct mcp_resources *list)
{
    json_begin_array_as(w, name);
    for (size_t i = 0; i < list->n; i++) {
        const struct mcp_resource *item = &list->items[i];

        json_begin_object(w);
        json_add_string(w, "uri", item->uri);
        json_add_string(w, "name", item->name);
        json_add_string(w, "title", item->title);
        json_add_string(w, "description", item->description);
        json_add_string(w, "mime_type", item->mime_type);
        json_end(w);
    }
    json_end(w);
}

/* A server without the capability, or one with resources and no templates, has an empty list. */
static int none_is_empty(int r, struct err *e)
{
    if (r != -EOPNOTSUPP)
        return r;
    err_init(e);
    return 0;
}

static int list_resources(struct request *req, struct response *res, struct err *e)
{
    const struct mcp_call *call = mcp_call_of(req);
    struct mcp_resources resources = { 0 }, templates = { 0 };
    struct mcp_client *client = NULL;
    int r = mcp_host_client(req->api->mcp_host, req->params[0], call, &client, e);

    if (r < 0)
        return r;
    r = none_is_empty(mcp_client_resources(client, call, &resources, e), e);
    if (r == 0)
        r = none_is_empty(mcp_client_templates(client, call, &templates, e), e);
    if (r < 0)
        return mcp_host_err(req->api->mcp_host, req->params[0], r, e);
    json_add_string(&res->json, "server", req->params[0]);
    write_resources(&res->json, "resources", &resources);
    write_resources(&res->json, "templates", &templates);
    return 0;
}

static int read_resource(struct request *req, struct response *res, struct err *e)
{
    const struct read_query *query = req->query;
    const struct mcp_call *call = mcp_call_of(req);
    struct mcp_client *client = NULL;
    struct mcp_server_info info;
    struct json_value contents;
    int r = mcp_host_server(req->api->mcp_host, req->params[0], req->arena, &info, e); /* 404 comes first */

    if (r == 0 && !query->uri)
        r = err_add_field(e, "uri", "is required");
    if (r == 0)
        r = mcp_host_client(req->api->mcp_host, req->params[0], call, &client, e);
    if (r < 0)
        return r;
    r = mcp_client_read(client, call, query->uri, &contents, e);
    if (r < 0)
        return mcp_host_err(req->api->mcp_host, req->params[0], r, e);
    json_add_string(&res->json, "server", req->params[0]);
    json_add_value(&res->json, "contents", contents);
    return 0;
}

/* ---- prompts ---- */

static int list_prompts(struct request *req, struct response *res, struct err *e)
{
    const struct mcp_call *call = mcp_call_of(req);
    struct mcp_client *client = NULL;
    struct mcp_prompts prompts = { 0 };
    int r = mcp_host_client(req->api->mcp_host, req->params[0], call, &client, e);

    if (r < 0)
        return r;
    r = none_is_empty(mcp_client_prompts(client, call, &prompts, e), e);
    if (r < 0)
        return mcp_host_err(req->api->mcp_host, req->params[0], r, e);
    json_add_string(&res->json, "server", req->params[0]);
    json_begin_array_as(&res->json, "prompts");
    for (size_t i = 0; i < prompts.n; i++) {
        json_begin_object(&res->json);
        json_add_string(&res->json, "name", prompts.items[i].name);
        json_add_string(&res->json, "title", prompts.items[i].title);
        json_add_string(&res->json, "description", prompts.items[i].description);
        json_add_value(&res->json, "arguments", prompts.items[i].arguments);
        json_end(&res->json);
    }
    json_end(&res->json);
    return 0;
}

static int err_no_prompt(const char *server, const char *name, const struct mcp_prompts *prompts, struct arena *a,
                         struct err *e)
{
    const char **names = arena_array(a, prompts->n + 1, sizeof(*names)), *near;

    for (size_t i = 0; i < prompts->n; i++)
        names[i] = prompts->items[i].name;
    near = suggest_name(name, names, prompts->n);
    return err_set(e, -ENOENT, "PROMPT_NOT_FOUND", "The MCP server %.64s has no prompt %.100s%s%.100s%s", server, name,
                   near ? "; did you mean " : ".", near ? near : "", near ? "?" : "");
}

static int check_arguments(const struct mcp_prompt *prompt, struct json_value given, struct arena *a, struct err *e)
{
    struct json_value argument;
    int r = 0;

    for (struct json_iter it = json_iter(prompt->arguments); json_next(&it, NULL, &argument);) {
        const char *name = json_cstr(json_get(argument, "name"));

        if (name && json_bool(json_get(argument, "required")) && json_is_absent(json_get(given, name)))
            r = err_add_field(e, arena_printf(a, "arguments.%s", name), "is required");
    }
    return r;
}

/* Servers refuse an unknown prompt and a missing argument in many words; the list says it in one form. */
static int check_prompt(const struct mcp_prompts *prompts, const char *server, const struct prompt_body *body,
                        struct arena *a, struct err *e)
{
    for (size_t i = 0; i < prompts->n; i++)
        if (strcmp(prompts->items[i].name, body->name) == 0)
            return check_arguments(&prompts->items[i], body->arguments, a, e);
    return prompts->why_cut ? 0
                            : err_no_prompt(server, body->name, prompts, a, e); /* a list that was cut may lack it */
}

static int get_prompt(struct request *req, struct response *res, struct err *e)
{
    const struct prompt_body *body = req->body;
    const struct mcp_call *call = mcp_call_of(req);
    struct mcp_client *client = NULL;
    const char *description = NULL;
    struct mcp_prompts prompts = { 0 };
    struct json_value messages;
    int r = mcp_host_client(req->api->mcp_host, req->params[0], call, &client, e);

    if (r < 0)
        return r;
    r = mcp_client_prompts(client, call, &prompts, e);
    if (r < 0)
        return mcp_host_err(req->api->mcp_host, req->params[0], r, e);
    r = check_prompt(&prompts, req->params[0], body, req->arena, e);
    if (r < 0)
        return r;
    r = mcp_client_prompt(client, call, body->name, body->arguments, &description, &messages, e);
    if (r < 0)
        return mcp_host_err(req->api->mcp_host, req->params[0], r, e);
    json_add_string(&res->json, "server", req->params[0]);
    json_add_string(&res->json, "description", description);
    json_add_value(&res->json, "messages", messages);
    return 0;
}

#define PART_ROUTE(verb, where, fn, ...)                                                                               \
    {                                                                                                                  \
        .method = (verb), .path = "/api/mcp/servers/:server" where, .permission = PERM_ADMIN, .kind = ROUTE_LONG,      \
        .handler = (fn), .tag = "MCP", __VA_ARGS__                                                                     \
    }

const struct route mcp_part_routes[] = {
    PART_ROUTE(HTTP_GET, "/resources", list_resources, .answer = resources_answer,
               .summary = "The resources of an MCP server"),
    PART_ROUTE(HTTP_GET, "/resource", read_resource, ROUTE_QUERY(read_fields, struct read_query), .answer = read_answer,
               .summary = "One resource of an MCP server"),
    PART_ROUTE(HTTP_GET, "/prompts", list_prompts, .answer = prompts_answer, .summary = "The prompts of an MCP server"),
    PART_ROUTE(HTTP_POST, "/prompt", get_prompt, ROUTE_BODY(prompt_fields, struct prompt_body), .answer = prompt_answer,
               .summary = "One prompt of an MCP server, with its arguments put in"),
    ROUTE_END,
};
