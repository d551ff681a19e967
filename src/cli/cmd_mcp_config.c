/* hearth mcp config NAME: what a client's settings need. The snippet is all of standard output; where it belongs is
 * said on standard error. */
#include "base/limits.h"
#include "base/suggest.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "os/paths.h"

const struct cli_option mcp_config_options[] = {
    { "--app", .value = "APP", .help = "the program shall be this app, with its grants" },
    { .name = NULL },
};

enum form { FORM_JSON, FORM_TOML, FORM_COMMAND, FORM_ADDRESS };

static const struct mcp_program {
    const char *name, *where;
    const char *member; /* of FORM_JSON: what holds the servers */
    bool has_type;      /* of FORM_JSON: a server says "type": "stdio" */
    enum form form;
} programs[] = {
    { "claude-code", "Run this command:", .form = FORM_COMMAND },
    { "claude-desktop", "For claude_desktop_config.json:", "mcpServers" },
    { "codex", "For ~/.codex/config.toml:", .form = FORM_TOML },
    { "cursor", "For ~/.cursor/mcp.json, or .cursor/mcp.json of a project:", "mcpServers" },
    { "vscode", "For .vscode/mcp.json, or the user's mcp.json:", "servers", .has_type = true },
    { "zed", "For settings.json:", "context_servers" },
    { "http", "For a client that takes an address; KEY is a developer key (`hearth key new`):", "mcpServers",
      .form = FORM_ADDRESS },
};

static const char *all_names(struct arena *a)
{
    const char *all = programs[0].name;

    for (size_t i = 1; i < ARRAY_SIZE(programs); i++)
        all = arena_printf(a, "%s, %s", all, programs[i].name);
    return all;
}

static int find_program(struct arena *a, const char *name, const struct mcp_program **ret, struct err *e)
{
    const char *names[ARRAY_SIZE(programs)];
    const char *near;

    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        names[i] = programs[i].name;
        if (strcmp(name, names[i]) == 0) {
            *ret = &programs[i];
            return 0;
        }
    }
    near = suggest_name(name, names, ARRAY_SIZE(names));
    if (near)
        return err_set(e, -EINVAL, "BAD_USE", "There is no snippet for %.40s; did you mean %s?", name, near);
    return err_set(e, -EINVAL, "BAD_USE", "There is no snippet for %.40s: %s", name, all_names(a));
}

/* The command that starts the bridge. */
struct command_line {
    const char *items[8];
    size_t n;
};

static struct command_line command_of(struct cli *cli, const char *self)
{
    struct command_line line = { .n = 0 };

    line.items[line.n++] = self;
    line.items[line.n++] = "mcp";
    line.items[line.n++] = "serve";
    line.items[line.n++] = "--data";
    line.items[line.n++] = cli->data_dir;
    if (cli_value(cli, "--app")) {
        line.items[line.n++] = "--app";
        line.items[line.n++] = cli_value(cli, "--app");
    }
    return line;
}

static void print_json(struct cli *cli, const struct mcp_program *program, const struct command_line *line)
{
    struct json_writer w;
    struct json_value v;
    struct buf out;

    buf_init(&out, KIB(64));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_begin_object_as(&w, program->member);
    json_begin_object_as(&w, "hearth");
    if (program->has_type)
        json_add_string(&w, "type", "stdio");
    json_add_string(&w, "command", line->items[0]);
    json_add_strings(&w, "args", &line->items[1], line->n - 1);
    json_end(&w);
    json_end(&w);
    json_end(&w);
    if (json_parse(cli->arena, buf_slice(&out), &v, NULL) == 0)
        cli_print_json(v);
    buf_clear(&out);
}

static void print_toml(const struct command_line *line)
{
    struct buf out;

    buf_init(&out, KIB(64));
    buf_add_str(&out, "[mcp_servers.hearth]\ncommand = ");
    json_quote(&out, slice_of(line->items[0])); /* a basic string of TOML has the escapes of JSON */
    buf_add_str(&out, "\nargs = [");
    for (size_t i = 1; i < line->n; i++) {
        buf_add_str(&out, i > 1 ? ", " : "");
        json_quote(&out, slice_of(line->items[i]));
    }
    buf_add_str(&out, "]\n");
    out_lines(stdout, buf_slice(&out));
    buf_clear(&out);
}

static void print_command(const struct command_line *line)
{
    struct buf out;

    buf_init(&out, KIB(64));
    buf_add_str(&out, "claude mcp add hearth --");
    for (size_t i = 0; i < line->n; i++) {
        buf_add_char(&out, ' ');
        out_add_word(&out, line->items[i]);
    }
    buf_add_char(&out, '\n');
    out_lines(stdout, buf_slice(&out));
    buf_clear(&out);
}

static int print_address(struct cli *cli, struct err *e)
{
    struct client_reply reply = { 0 };
    struct json_writer w;
    struct json_value v;
    struct buf out;
    int r = cli_get(cli, "/healthz", &reply, e);

    if (r < 0)
        return r;
    buf_init(&out, KIB(64));
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_begin_object_as(&w, "mcpServers");
    json_begin_object_as(&w, "hearth");
    json_add_string(&w, "type", "http");
    json_add_string(&w, "url",
                    arena_printf(cli->arena, "%.*s/mcp", (int)json_string(json_get(reply.json, "url")).n,
                                 json_string(json_get(reply.json, "url")).p));
    json_begin_object_as(&w, "headers");
    json_add_string(&w, "Authorization", "Bearer KEY");
    json_end(&w);
    json_end(&w);
    json_end(&w);
    json_end(&w);
    r = json_parse(cli->arena, buf_slice(&out), &v, e);
    buf_clear(&out);
    if (r == 0)
        cli_print_json(v);
    return r;
}

int run_mcp_config(struct cli *cli, struct err *e)
{
    const struct mcp_program *program = NULL;
    struct command_line line;
    char *self = NULL;
    int r = find_program(cli->arena, cli->args[0], &program, e);

    if (r == 0)
        r = paths_program(cli->arena, &self, e);
    if (r < 0)
        return r;
    line = command_of(cli, self);
    out_complain("%s\n", program->where);
    switch (program->form) {
    case FORM_TOML:
        print_toml(&line);
        return 0;
    case FORM_COMMAND:
        print_command(&line);
        return 0;
    case FORM_ADDRESS:
        return print_address(cli, e);
    default:
        print_json(cli, program, &line);
        return 0;
    }
}
