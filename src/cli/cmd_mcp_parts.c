/* hearth mcp resources, prompts: what a server has beside its tools. */
#include "base/base64.h"
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "os/files.h"

const struct cli_option mcp_resources_options[] = {
    { "--output", .value = "FILE", .help = "write the resource there as it is, instead of printing it" },
    { .name = NULL },
};

static const struct cli_column resource_columns[] = {
    { "URI", "uri" },
    { "NAME", "name" },
    { "TYPE", "mime_type", .drop = 1 },
    { "DESCRIPTION", "description", .drop = 2 },
    { .title = NULL },
};
static const struct cli_column prompt_columns[] = {
    { "NAME", "name" },
    { "ARGUMENTS", "arguments" },
    { "DESCRIPTION", "description", .drop = 1 },
    { .title = NULL },
};

static const char *text_of(struct json_value object, const char *name)
{
    return json_cstr(json_get(object, name));
}

/* ---- contents ---- */

static void print_text(struct slice text)
{
    out_lines(stdout, text);
    if (text.n == 0 || text.p[text.n - 1] != '\n')
        out_print("\n");
}

/* Bytes that base64 text of this length decodes to. */
static size_t decoded_size(struct slice base64)
{
    size_t n_padding = 0;

    while (n_padding < MIN(base64.n, (size_t)2) && base64.p[base64.n - 1 - n_padding] == '=')
        n_padding++;
    return base64.n / 4 * 3 - MIN(n_padding, base64.n / 4 * 3);
}

static void print_binary(const char *what, struct json_value of, struct slice base64, const char *how)
{
    const char *type = text_of(of, "mimeType");

    out_print("(%s of %s, %zu bytes%s)\n", what, type ? type : "no stated type", decoded_size(base64), how);
}

/* ---- resources ---- */

static int list_resources(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    struct json_value resources, templates;
    int r = cli_get(cli, cli_fill_path(cli, "/api/mcp/servers/{0}/resources"), &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json) {
        cli_show(cli, reply.json);
        return 0;
    }
    resources = json_get(reply.json, "resources");
    templates = json_get(reply.json, "templates");
    if (json_length(resources) || !json_length(templates))
        cli_print_table(cli, resources, resource_columns, "It has no resources.");
    if (json_length(templates)) {
        out_print("%sTemplates, to be read with words in the place of {...}:\n", json_length(resources) ? "\n" : "");
        cli_print_table(cli, templates, resource_columns, "");
    }
    return 0;
}

static void print_contents(struct json_value contents)
{
    bool is_one = json_length(contents) == 1;
    struct json_value part, text;

    if (json_length(contents) == 0)
        out_print("The resource is empty.\n");
    for (struct json_iter it = json_iter(contents); json_next(&it, NULL, &part);) {
        text = json_get(part, "text");
        if (!is_one)
            out_print("%s:\n", text_of(part, "uri") ? text_of(part, "uri") : "(without a URI)");
        if (json_type(text) == JSON_STRING)
            print_text(json_string(text));
        else
            print_binary("binary", part, json_string(json_get(part, "blob")),
                         is_one ? "; --output FILE writes it" : "; --json shows it");
    }
}

static int decode_part(struct cli *cli, struct json_value part, struct slice *ret, struct err *e)
{
    struct json_value text = json_get(part, "text");
    struct slice blob = json_string(json_get(part, "blob"));
    struct buf bytes;
    int r;

    *ret = json_string(text);
    if (json_type(text) == JSON_STRING)
        return 0;
    buf_init(&bytes, LIMIT_REPLY);
    r = base64_decode(&bytes, blob);
    *ret = (struct slice){ arena_slicedup(cli->arena, buf_slice(&bytes)), bytes.n };
    buf_clear(&bytes);
    return r < 0 ? err_set(e, r, "MCP_SERVER_ERROR", "The server's resource is no valid base64.") : 0;
}

static int write_contents(struct cli *cli, struct json_value contents, const char *path, struct err *e)
{
    struct json_iter it = json_iter(contents);
    struct json_value part = { 0 };
    struct slice bytes = { 0 };
    int r;

    if (json_length(contents) != 1)
        return err_set(e, -EINVAL, "BAD_USE", "The resource has %zu parts, and --output writes one; --json prints all",
                       json_length(contents));
    (void)!json_next(&it, NULL, &part);
    r = decode_part(cli, part, &bytes, e);
    if (r == 0)
        r = file_write(path, bytes, 0644, e);
    if (r == 0)
        out_print("%s is written: %zu bytes%s%s.\n", path, bytes.n, text_of(part, "mimeType") ? " of " : "",
                  text_of(part, "mimeType") ? text_of(part, "mimeType") : "");
    return r;
}

/* The server's own words about an unknown URI say nothing of what there is. */
static int refuse_read(struct cli *cli, int r, struct err *e)
{
    if (strcmp(e->code, "MCP_SERVER_ERROR") != 0)
        return r;
    return err_set(e, r, "MCP_SERVER_ERROR", "%.500s `hearth mcp resources %.64s` lists what it has.",
                   arena_strdup(cli->arena, e->text), cli->args[0]);
}

static int read_resource(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_GET,
                                      .path = cli_fill_path(cli, "/api/mcp/servers/{0}/resource"),
                                      .query = cli_fill_query(cli, "uri={1}") };
    const char *output = cli_value(cli, "--output");
    struct client_reply reply;
    int r = cli_send(cli, &request, &reply, e);

    if (r < 0)
        return refuse_read(cli, r, e);
    if (output)
        return write_contents(cli, json_get(reply.json, "contents"), output, e);
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        print_contents(json_get(reply.json, "contents"));
    return 0;
}

int run_mcp_resources(struct cli *cli, struct err *e)
{
    int r;

    if (cli->n_args == 1 && cli_has(cli, "--output"))
        return err_set(e, -EINVAL, "BAD_USE", "--output writes one resource: which URI?");
    r = mcp_check_accepted(cli, e);
    if (r < 0)
        return r;
    return cli->n_args == 1 ? list_resources(cli, e) : read_resource(cli, e);
}

/* ---- the list of prompts ---- */

/* "city [state]": what may be left out stands in brackets. */
static const char *arguments_text(struct arena *a, struct json_value arguments)
{
    struct json_value argument;
    const char *text = NULL;

    for (struct json_iter it = json_iter(arguments); json_next(&it, NULL, &argument);) {
        bool is_required = json_bool(json_get(argument, "required"));
        const char *name = text_of(argument, "name");

        if (name)
            text = arena_printf(a, "%s%s%s%s%s", text ? text : "", text ? " " : "", is_required ? "" : "[", name,
                                is_required ? "" : "]");
    }
    return text;
}

static struct json_value prompt_rows(struct cli *cli, struct json_value prompts)
{
    struct json_value prompt, rows = { 0 };
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    json_write_init(&w, &out);
    json_begin_array(&w);
    for (struct json_iter it = json_iter(prompts); json_next(&it, NULL, &prompt);) {
        json_begin_object(&w);
        json_add_string(&w, "name", text_of(prompt, "name"));
        json_add_string(&w, "arguments", arguments_text(cli->arena, json_get(prompt, "arguments")));
        json_add_string(&w, "description", text_of(prompt, "description"));
        json_end(&w);
    }
    json_end(&w);
    (void)!json_parse(cli->arena, slice_of(buf_to_arena(&out, cli->arena)), &rows, NULL);
    return rows;
}

static int list_prompts(struct cli *cli, struct err *e)
{
    struct client_reply reply;
    int r = cli_get(cli, cli_fill_path(cli, "/api/mcp/servers/{0}/prompts"), &reply, e);

    if (r < 0)
        return r;
    if (cli->is_json)
        cli_print_json(json_get(reply.json, "prompts"));
    else
        cli_print_table(cli, prompt_rows(cli, json_get(reply.json, "prompts")), prompt_columns, "It has no prompts.");
    return 0;
}

/* ---- one prompt ---- */

static void print_block(struct json_value block)
{
    struct slice type = json_string(json_get(block, "type"));
    struct json_value resource = json_get(block, "resource");

    if (slice_eq_str(type, "text"))
        print_text(json_string(json_get(block, "text")));
    else if (slice_eq_str(type, "resource") && json_type(json_get(resource, "text")) == JSON_STRING)
        print_text(json_string(json_get(resource, "text")));
    else if (slice_eq_str(type, "resource"))
        print_binary("resource", resource, json_string(json_get(resource, "blob")), "; --json shows it");
    else if (slice_eq_str(type, "resource_link"))
        out_print("(resource %s)\n", text_of(block, "uri") ? text_of(block, "uri") : "without a URI");
    else
        print_binary(type.n ? type.p : "block", block, json_string(json_get(block, "data")), "; --json shows it");
}

static void print_messages(struct json_value messages)
{
    struct json_value message;

    for (struct json_iter it = json_iter(messages); json_next(&it, NULL, &message);) {
        out_print("%s:\n", text_of(message, "role") ? text_of(message, "role") : "user");
        print_block(json_get(message, "content"));
    }
}

static int check_arguments(const struct cli *cli, struct err *e)
{
    for (size_t i = 2; i < cli->n_args; i++)
        if (cli->args[i][0] == '=' || !strchr(cli->args[i], '='))
            return err_set(e, -EINVAL, "BAD_USE", "An argument of a prompt is written as ARG=VALUE, not \"%.100s\"",
                           cli->args[i]);
    return 0;
}

static int write_prompt(struct cli *cli, struct slice *ret, struct err *e)
{
    struct json_writer w;
    struct buf body;
    int r = check_arguments(cli, e);

    if (r < 0)
        return r;
    buf_init(&body, LIMIT_BODY_DEFAULT);
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_string(&w, "name", cli->args[1]);
    json_begin_object_as(&w, "arguments");
    for (size_t i = 2; i < cli->n_args; i++) {
        size_t n_name = strcspn(cli->args[i], "=");

        json_add_string(&w, arena_strndup(cli->arena, cli->args[i], n_name), cli->args[i] + n_name + 1);
    }
    json_end(&w);
    json_end(&w);
    r = buf_check(&body, e);
    *ret = slice_of(buf_to_arena(&body, cli->arena));
    return r;
}

/* The service names arguments as `arguments.city`; the command line writes them as city=VALUE. */
static int name_missing(struct cli *cli, int r, struct err *e)
{
    const size_t n_prefix = strlen("arguments.");
    const char *missing = "";

    for (size_t i = 0; i < MIN(e->n_fields, (unsigned)ERR_MAX_FIELDS); i++) {
        if (strncmp(e->fields[i].field, "arguments.", n_prefix) != 0 || strcmp(e->fields[i].rule, "is required") != 0)
            return r;
        missing = arena_printf(cli->arena, "%s %.64s=VALUE", missing, e->fields[i].field + n_prefix);
    }
    if (!*missing)
        return r;
    err_init(e);
    return err_set(e, r, "BAD_USE", "The prompt needs more: `hearth mcp prompts %.64s %.100s%.300s`", cli->args[0],
                   cli->args[1], missing);
}

static int show_prompt(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = cli_fill_path(cli, "/api/mcp/servers/{0}/prompt") };
    struct client_reply reply = { 0 };
    int r = write_prompt(cli, &request.body, e);

    if (r == 0)
        r = cli_send(cli, &request, &reply, e);
    if (r < 0)
        return name_missing(cli, r, e);
    if (cli->is_json)
        cli_show(cli, reply.json);
    else
        print_messages(json_get(reply.json, "messages"));
    return 0;
}

int run_mcp_prompts(struct cli *cli, struct err *e)
{
    int r = mcp_check_accepted(cli, e);

    if (r < 0)
        return r;
    return cli->n_args == 1 ? list_prompts(cli, e) : show_prompt(cli, e);
}
