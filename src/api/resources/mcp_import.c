/* Import of the definitions that other programs keep of MCP servers (mcp/config.h): once with `dry_run` to see what
 * would be added and what is asked for, then with the answers. Nothing is added unless every server is valid. */
#include "api/api.h"
#include "api/resources/mcp.h"
#include "api/routes.h"
#include "base/limits.h"
#include "mcp/config.h"

struct import_body {
    struct json_value config, inputs;
    struct field_strings names;
    bool is_dry_run, is_accepted;
};

static const struct field import_fields[] = {
    FIELD_OBJECT(struct import_body, config, "config", FIELD_REQUIRED,
                 .help = "{mcpServers: {...}}, or {servers: {...}, inputs: [...]} as VS Code keeps it"),
    FIELD_STRING_MAP(struct import_body, inputs, "inputs", .max = LIMIT_MCP_INPUTS,
                     .help = "the answers, by the ids that dry_run names"),
    FIELD_STRINGS(struct import_body, names, "names", .max = LIMIT_MCP_SERVERS, .help = "only these servers"),
    FIELD_BOOL(struct import_body, is_dry_run, "dry_run", .help = "adds nothing"),
    FIELD_BOOL(struct import_body, is_accepted, "accept",
               .help = "a person has seen what runs and accepts it; else the first use asks"),
    FIELD_END,
};

static const struct field entry_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_STRING("display_name", .help = "its name in the file"),
    SHAPE_STRING("runs", .flags = FIELD_NULLABLE, .help = "exactly what runs; null: an input has no answer yet"),
    SHAPE_BOOL("replaces", .help = "a server of this name is set up already"),
    FIELD_END,
};
static const struct field input_shape[] = {
    SHAPE_STRING("id"),
    SHAPE_STRING("description", .flags = FIELD_NULLABLE),
    SHAPE_BOOL("secret"),
    SHAPE_BOOL("optional", .help = "it has a value of its own"),
    SHAPE_ANY("choices", .flags = FIELD_NULLABLE),
    FIELD_END,
};
static const struct field import_answer[] = {
    SHAPE_LIST("servers", entry_shape),
    SHAPE_LIST("inputs", input_shape),
    FIELD_END,
};

struct import {
    struct request *req;
    const struct import_body *body;
    struct mcp_config config;
    struct mcp_server *servers; /* with a name NULL: left out, or (dry_run) without an answer */
};

static bool is_chosen(const struct import *im, const char *name)
{
    for (size_t i = 0; i < im->body->names.n; i++)
        if (strcmp(im->body->names.items[i], name) == 0)
            return true;
    return im->body->names.n == 0;
}

static bool lacks_answers(const struct import *im)
{
    for (size_t i = 0; i < im->config.n_inputs; i++)
        if (!im->config.inputs[i].value && !json_cstr(json_get(im->body->inputs, im->config.inputs[i].id)))
            return true;
    return false;
}

/* Every server is read and checked before the first is added. */
static int read_servers(struct import *im, struct err *e)
{
    int r = 0;

    im->servers = arena_array(im->req->arena, im->config.n + 1, sizeof(*im->servers));
    if (im->body->is_dry_run && lacks_answers(im))
        return 0;
    for (size_t i = 0; r == 0 && i < im->config.n; i++) {
        if (!is_chosen(im, im->config.items[i].name))
            continue;
        r = mcp_config_server(&im->config, i, im->body->inputs, im->req->arena, &im->servers[i], e);
        if (r == 0)
            r = mcp_server_check(&im->servers[i], im->req->api->data_dir, e);
    }
    return r;
}

static int add_servers(struct import *im, struct err *e)
{
    const struct request *req = im->req;
    int r = 0;

    for (size_t i = 0; r == 0 && i < im->config.n; i++) {
        const struct mcp_server *s = &im->servers[i];

        if (!s->name)
            continue;
        r = mcp_audit(req, "mcp.import", s, e);
        if (r == 0)
            r = mcp_host_put(req->api->mcp_host, s, im->body->is_accepted, e);
    }
    return r;
}

static void write_servers(const struct import *im, struct json_writer *w)
{
    struct arena *a = im->req->arena;
    struct mcp_server_info info;

    json_begin_array_as(w, "servers");
    for (size_t i = 0; i < im->config.n; i++) {
        const struct mcp_config_entry *entry = &im->config.items[i];

        if (!is_chosen(im, entry->name))
            continue;
        json_begin_object(w);
        json_add_string(w, "name", entry->name);
        json_add_string(w, "display_name", entry->display_name);
        json_add_string(w, "runs",
                        im->servers[i].name ? mcp_server_shown(a, im->req->api->sandbox, &im->servers[i]) : NULL);
        json_add_bool(w, "replaces", mcp_host_server(im->req->api->mcp_host, entry->name, a, &info, NULL) == 0);
        json_end(w);
    }
    json_end(w);
}

static void write_inputs(const struct mcp_config *config, struct json_writer *w)
{
    json_begin_array_as(w, "inputs");
    for (size_t i = 0; i < config->n_inputs; i++) {
        const struct mcp_input *input = &config->inputs[i];

        json_begin_object(w);
        json_add_string(w, "id", input->id);
        json_add_string(w, "description", input->description);
        json_add_bool(w, "secret", input->is_secret);
        json_add_bool(w, "optional", input->value != NULL);
        json_add_value(w, "choices", input->choices);
        json_end(w);
    }
    json_end(w);
}

static int import_servers(struct request *req, struct response *res, struct err *e)
{
    struct import im = { .req = req, .body = req->body };
    int r = mcp_config_read(req->arena, im.body->config, &im.config, e);

    if (r == 0)
        r = read_servers(&im, e);
    if (r < 0)
        return r;
    write_servers(&im, &res->json); /* before the change, so that `replaces` is about what was there */
    write_inputs(&im.config, &res->json);
    return im.body->is_dry_run ? 0 : add_servers(&im, e);
}

static bool is_change(const struct request *req)
{
    return !((const struct import_body *)req->body)->is_dry_run;
}

const struct route mcp_import_routes[] = {
    { .method = HTTP_POST,
      .path = "/api/mcp/import",
      .permission = PERM_ADMIN,
      ROUTE_BODY(import_fields, struct import_body),
      .max_body = LIMIT_MCP_IMPORT_BYTES,
      .answer = import_answer,
      .defines = true,
      .defines_when = is_change,
      .handler = import_servers,
      .summary = "Add the MCP servers that another program has set up",
      .tag = "MCP" },
    ROUTE_END,
};
