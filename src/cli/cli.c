#include "cli/cli.h"

#include "cli/client.h"
#include "cli/help.h"
#include "cli/out.h"
#include "cli/parse.h"
#include "cli/request.h"
#include "cli/special.h"
#include "os/hardening.h"
#include "os/paths.h"

/* Unknown keys and bad values are wrong use, whichever part detected them. */
static int exit_code_of(int r, const struct err *e)
{
    static const char *const wrong_use[] = { "BAD_SETTING", "SETTING_NOT_FOUND", "BAD_USE" };

    for (size_t i = 0; i < ARRAY_SIZE(wrong_use); i++)
        if (strcmp(e->code, wrong_use[i]) == 0)
            return CLI_WRONG_USE;
    return r < 0 ? CLI_FAILED : r;
}

/* Names the command that lists what was not found, or tells why: tools and prompts are those of the first argument. */
static void print_next(const struct cli *cli, const struct err *e)
{
    bool is_of_server = strcmp(e->code, "TOOL_NOT_FOUND") == 0 || strcmp(e->code, "PROMPT_NOT_FOUND") == 0;
    static const struct {
        const char *code, *command;
    } lists[] = {
        { "APP_NOT_FOUND", "app list" },           { "AGENT_NOT_FOUND", "agent list" },
        { "TASK_NOT_FOUND", "task list" },         { "KEY_NOT_FOUND", "key list" },
        { "PROVIDER_NOT_FOUND", "provider list" }, { "WORKSPACE_NOT_FOUND", "workspace list" },
        { "SERVER_NOT_FOUND", "mcp list" },        { "TOOL_NOT_FOUND", "mcp tools" },
        { "PROMPT_NOT_FOUND", "mcp prompts" },     { "APPROVAL_NOT_FOUND", "approval list" },
        { "RULE_NOT_FOUND", "approval rules" },    { "FACT_NOT_FOUND", "provider facts" },
    };

    if (strcmp(e->code, "MCP_SERVER_ERROR") == 0 && cli->n_args == 1)
        out_complain("hearth: `hearth mcp logs %s` has what it wrote, `hearth mcp show %s` what runs.\n", cli->args[0],
                     cli->args[0]);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        if (strcmp(e->code, lists[i].code) == 0)
            out_complain("hearth: `hearth %s%s%s` shows what there is.\n", lists[i].command, is_of_server ? " " : "",
                         is_of_server ? cli->args[0] : "");
}

/* The option that the person typed for a field of the request; NULL: none. Only the first word of
 * "headers.x" and "models[2]" is compared. */
static const char *option_of_field(const struct cli *cli, const char *field)
{
    const struct command *c = cli->command;
    size_t n = strcspn(field, ".[");

    for (const struct cli_option *o = c && !c->is_body_file ? c->options : NULL; o && o->name; o++) {
        const char *own = o->field ? o->field : o->name + strlen("--");
        bool is_same = strlen(own) == n;

        for (size_t i = 0; is_same && i < n; i++)
            is_same = own[i] == field[i] || (own[i] == '-' && field[i] == '_');
        if (is_same)
            return o->name;
    }
    return NULL;
}

static void print_violation(const struct cli *cli, const char *field, const char *rule)
{
    const char *option = option_of_field(cli, field), *member = strchr(field, '.');

    if (!option)
        out_complain("hearth: `%s` %s\n", field, rule);
    else if (member && member[1])
        out_complain("hearth: %s `%s` %s\n", option, member + 1, rule);
    else
        out_complain("hearth: %s %s\n", option, rule);
}

/* The error text of a request that violates rules is its first violation, "`field` rule". */
static bool is_first_violation(const struct err *e)
{
    size_t n = e->n_fields > 0 ? strlen(e->fields[0].field) : 0;

    return e->n_fields > 0 && e->text[0] == '`' && strncmp(e->text + 1, e->fields[0].field, n) == 0 &&
           strncmp(e->text + 1 + n, "` ", 2) == 0;
}

static void complain(const struct cli *cli, const struct err *e)
{
    fflush(stdout);
    if (is_first_violation(e))
        print_violation(cli, e->fields[0].field, e->text + strlen("`` ") + strlen(e->fields[0].field));
    else
        out_complain("hearth: %s\n", e->text);
    for (unsigned i = 1; i < MIN(e->n_fields, ERR_MAX_FIELDS); i++) /* the first is in the text */
        print_violation(cli, e->fields[i].field, e->fields[i].rule);
    print_next(cli, e);
    if (strcmp(e->code, "BAD_USE") == 0 && cli->command) {
        struct buf usage;

        buf_init(&usage, 4096);
        help_print_usage(&usage, cli->command);
        out_lines(stderr, buf_slice(&usage));
        buf_clear(&usage);
    }
}

static int print_help(struct cli *cli)
{
    struct buf out;

    buf_init(&out, 1 << 20);
    if (cli->command)
        help_print_command(&out, cli->command);
    else
        help_print_list(&out, cli->group);
    out_lines(cli->is_help ? stdout : stderr, buf_slice(&out));
    buf_clear(&out);
    return cli->is_help ? CLI_DONE : CLI_WRONG_USE;
}

static int run_command(struct cli *cli, struct err *e)
{
    char *data_dir;
    int r = paths_data_dir(cli->arena, cli_value(cli, "--data"), &data_dir, e);

    if (r < 0)
        return r;
    cli->data_dir = data_dir;
    r = cli_complete_id(cli, e);
    if (r < 0)
        return r;
    return cli->command->run ? cli->command->run(cli, e) : cli_run_request(cli, e);
}

int cli_main(int argc, char **argv)
{
    struct cli cli = { .arena = arena_new() };
    struct err e = { 0 };
    int r, code;

    hardening_apply();
    r = cli_parse(argc, argv, &cli, &e);
    if (r == 0 && cli.is_version)
        r = run_version(&cli, &e);
    else if (r == 0 && (cli.is_help || !cli.command))
        r = print_help(&cli);
    else if (r == 0)
        r = run_command(&cli, &e);
    code = exit_code_of(r, &e);
    if (r < 0)
        complain(&cli, &e);
    if (fflush(stdout) != 0 && code == CLI_DONE)
        code = CLI_FAILED;
    client_close(cli.client);
    arena_free(cli.arena);
    return code;
}
