/* hearth complete: the candidates for the last word of a command line, for the completion of a shell
 * (packaging/completion). The command line is a description only: nothing of it is run, no data folder is opened, and
 * no word of an app reaches the shell in another form than as a line of its own.
 */
#include "base/limits.h"
#include "base/percent.h"
#include "base/visible.h"
#include "cli/completion.h"
#include "cli/out.h"
#include "cli/parse.h"
#include "cli/request.h"
#include "cli/special.h"
#include "identity/permissions.h"
#include "llm/llm.h"
#include "os/paths.h"
#include "settings/settings.h"

enum { COMPLETE_DEADLINE_MS = 500, COMPLETE_MAX_BYTES = 256 * 1024 };

struct completion {
    struct cli *cli;
    const char *current; /* what is typed of the last word */
    const char *head;    /* "--app=": precedes every candidate */
    const char *data_dir;
    const char *words[2]; /* of the command */
    size_t n_words;
    const struct command *command;
    const struct cli_option *waiting; /* whose value is the next word */
    const char *args[CLI_MAX_ARGS];
    size_t n_args;
    bool is_past_options, is_lost;
    struct buf out;
};

/* --- candidates --- */

/* A word with characters that control a terminal or that nobody sees cannot be typed, and one that begins with a hyphen
 * would be an option. */
static bool is_plain(const char *word)
{
    struct buf shown;
    bool is_same;

    buf_init(&shown, COMPLETE_MAX_BYTES);
    visible_add(&shown, slice_of(word), VISIBLE_LINE);
    is_same = slice_eq_str(buf_slice(&shown), word);
    buf_clear(&shown);
    return is_same && word[0] != '\0';
}

static void add_line(struct completion *c, const char *word, const char *what)
{
    size_t before = c->out.n;

    buf_printf(&c->out, "%s%s\t", c->head, word);
    visible_add(&c->out, slice_of(what ? what : ""), VISIBLE_LINE);
    buf_add_char(&c->out, '\n');
    if (c->out.overflowed)
        c->out.n = before; /* whole lines only */
}

static void offer(struct completion *c, const char *word, const char *what)
{
    if (word && word[0] != '-' && strncmp(word, c->current, strlen(c->current)) == 0 && is_plain(word))
        add_line(c, word, what);
}

/* --- sources: what a placeholder of a usage line stands for --- */

static void add_settings(struct completion *c)
{
    for (size_t i = 0; i < N_SETTINGS; i++)
        offer(c, settings_rules[i].key, settings_rules[i].help);
}

static void add_setting_values(struct completion *c)
{
    static const char *const yes_no[] = { "true", "false", NULL };
    const struct setting_rule *rule;
    enum setting_id id;

    if (c->n_args == 0 || !settings_find(c->args[0], &id))
        return;
    rule = &settings_rules[id];
    for (const char *const *word = rule->type == SETTING_BOOL ? yes_no : rule->one_of; word && *word; word++)
        offer(c, *word, *word == rule->def ? "default" : "");
}

static void add_permissions(struct completion *c)
{
    for (const struct permission *p = permissions; p->name; p++)
        offer(c, p->name, p->requests);
}

static void add_presets(struct completion *c)
{
    for (const struct llm_preset *p = llm_presets; p->id; p++)
        offer(c, p->id, p->label);
}

/* The first words of all commands, or the second words after `first`. */
static void add_commands(struct completion *c, const char *first)
{
    size_t n = first ? strlen(first) : 0;
    const char *last = "";

    for (const struct command *row = command_first(); row; row = command_next(row)) {
        size_t n_first = strcspn(row->words, " ");
        bool is_group = row->words[n_first] == ' ';
        const char *word = arena_strndup(c->cli->arena, row->words, n_first);

        if (row->is_hidden)
            continue;
        if (first && is_group && n == n_first && strncmp(row->words, first, n) == 0)
            offer(c, row->words + n + 1, row->summary);
        else if (!first && strcmp(word, last) != 0)
            offer(c, word, is_group ? "" : row->summary);
        last = word;
    }
}

static void add_command_words(struct completion *c)
{
    add_commands(c, NULL);
}

/* An empty word: the shell offers the names of files. */
static void add_files(struct completion *c)
{
    if (!c->head[0])
        buf_add_str(&c->out, "\tfile\n");
}

static void add_server_tools(struct completion *c);
static void add_server_resources(struct completion *c);
static void add_server_prompts(struct completion *c);

struct source {
    const char *placeholder;
    const char *of;                          /* the beginning of the command's words, or an option; NULL: any */
    void (*add)(struct completion *c);       /* of this program; otherwise: */
    const char *choices;                     /* words with blanks between; otherwise: */
    const char *path, *list, *member, *what; /* asked from a running service */
};

static const struct source sources[] = {
    { "APP", .path = "/api/apps", .list = "apps", .member = "name", .what = "status" },
    { "ID", "limit", .path = "/api/apps", .list = "apps", .member = "name", .what = "status" },
    { "ID", "limit", .path = "/api/keys", .list = "keys", .member = "id", .what = "name" },
    { "ID", "key", .path = "/api/keys", .list = "keys", .member = "id", .what = "name" },
    { "ID", "--key", .path = "/api/keys", .list = "keys", .member = "id", .what = "name" },
    { "NAME", "agent", .path = "/api/agents", .list = "agents", .member = "name", .what = "description" },
    { "NAME", "--agent", .path = "/api/agents", .list = "agents", .member = "name", .what = "description" },
    { "AGENT", .path = "/api/agents", .list = "agents", .member = "name", .what = "description" },
    { "NAME", "provider", .path = "/api/providers", .list = "providers", .member = "name", .what = "state" },
    { "NAME", "provider accept", .path = "/api/providers", .list = "waiting", .member = "name", .what = "label" },
    { "NAME", "--provider", .path = "/api/providers", .list = "providers", .member = "name", .what = "state" },
    { "SERVER", .path = "/api/mcp/servers", .list = "servers", .member = "name", .what = "status" },
    { "TOOL", "mcp", .add = add_server_tools },
    { "URI", "mcp resources", .add = add_server_resources },
    { "PROMPT", "mcp prompts", .add = add_server_prompts },
    { "PROFILE", .choices = "standard strict none" },
    { "WORKSPACE", .path = "/api/workspaces", .list = "workspaces", .member = "slug", .what = "name" },
    { "ID", "provider add", .add = add_presets },
    { "KEY", "settings", .add = add_settings },
    { "VALUE", "settings", .add = add_setting_values },
    { "PERMISSION", .add = add_permissions },
    { "COMMAND", "help", .add = add_command_words },
    { "FILE", .add = add_files },
    { "FILE.json", .add = add_files },
    { "DIR", .add = add_files },
    { "app|key", .choices = "app key" },
    { "SHELL", .choices = "bash zsh fish" },
    { "LANG", .choices = "node python bash" },
    { "LEVEL", .choices = "error warn info debug" },
    { "FORMAT", .choices = "text json" },
    { "AUDIO", .choices = "wav mp3 pcm" },
    { "WHAT", "--for", .choices = "chat embed" },
    { "WORDS", "--by", .choices = "day app key provider model kind" },
};

static void add_choices(struct completion *c, const char *choices)
{
    for (size_t n; *choices; choices += n + (choices[n] == ' ')) {
        n = strcspn(choices, " ");
        offer(c, arena_strndup(c->cli->arena, choices, n), "");
    }
}

/* Sends a request to a running service; false: there is none, or it is too busy to answer in time. */
static bool request_json(struct completion *c, const char *path, const char *query, struct client_reply *ret)
{
    const struct client_request request = { HTTP_GET, path, .query = query, .timeout_ms = COMPLETE_DEADLINE_MS };
    struct err e = { 0 };
    char *data_dir;

    return paths_data_dir(c->cli->arena, c->data_dir, &data_dir, &e) == 0 &&
           client_send_running(data_dir, c->cli->arena, &request, ret, &e) == 0;
}

static void add_listed(struct completion *c, const char *path, const char *list, const char *member, const char *what)
{
    struct client_reply reply = { 0 };
    struct json_value item;

    if (!request_json(c, path, "limit=500", &reply))
        return;
    for (struct json_iter it = json_iter(json_get(reply.json, list)); json_next(&it, NULL, &item);)
        offer(c, json_cstr(json_get(item, member)), what ? json_cstr(json_get(item, what)) : "");
}

/* Of the MCP server that is argument 0. A key starts no program: of a server that does not run nothing is offered. */
static void add_of_server(struct completion *c, const char *what, const char *list, const char *member)
{
    struct client_reply reply = { 0 };
    const char *path;
    struct buf out;

    if (c->n_args == 0)
        return;
    buf_init(&out, KIB(4));
    buf_add_str(&out, "/api/mcp/servers/");
    percent_encode(&out, slice_of(c->args[0]));
    path = buf_to_arena(&out, c->cli->arena);
    if (request_json(c, path, NULL, &reply) &&
        slice_eq_str(json_string(json_get(json_get(reply.json, "server"), "status")), "running"))
        add_listed(c, arena_printf(c->cli->arena, "%s/%s", path, what), list, member, "description");
}

static void add_server_tools(struct completion *c)
{
    add_of_server(c, "tools", "tools", "name");
}

static void add_server_resources(struct completion *c)
{
    add_of_server(c, "resources", "resources", "uri");
}

static void add_server_prompts(struct completion *c)
{
    add_of_server(c, "prompts", "prompts", "name");
}

static bool is_source_of(const struct source *source, struct slice placeholder, const char *of)
{
    return slice_eq_str(placeholder, source->placeholder) &&
           (!source->of || strncmp(source->of, of, strlen(source->of)) == 0);
}

static void add_placeholder(struct completion *c, struct slice placeholder, const char *of)
{
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        const struct source *source = &sources[i];

        if (!is_source_of(source, placeholder, of))
            continue;
        if (source->add)
            source->add(c);
        else if (source->choices)
            add_choices(c, source->choices);
        else
            add_listed(c, source->path, source->list, source->member, source->what);
    }
}

/* --- reading the words before the last --- */

static void take_command_word(struct completion *c, const char *word)
{
    const struct command *longer;

    c->words[c->n_words++] = word;
    if (c->n_words == 1) {
        c->command = command_find(word);
        return;
    }
    longer = command_find(arena_printf(c->cli->arena, "%s %s", c->words[0], word));
    if (longer)
        c->command = longer;
    else if (c->command)
        c->args[c->n_args++] = word;
    else
        c->is_lost = true;
}

static void take_option(struct completion *c, const char *word)
{
    const struct cli_option *option = command_option(c->command, word);
    const char *equals = strchr(word, '=');

    if (!option) {
        c->is_lost = c->command != NULL;
        return;
    }
    if (equals && strcmp(option->name, "--data") == 0)
        c->data_dir = equals + 1;
    if (option->value && !equals)
        c->waiting = option;
}

static void take_word(struct completion *c, const char *word)
{
    if (c->waiting) {
        if (strcmp(c->waiting->name, "--data") == 0)
            c->data_dir = word;
        c->waiting = NULL;
    } else if (!c->is_past_options && strcmp(word, "--") == 0) {
        c->is_past_options = true;
    } else if (!c->is_past_options && word[0] == '-' && word[1]) {
        take_option(c, word);
    } else if (c->n_words < ARRAY_SIZE(c->words)) {
        take_command_word(c, word);
    } else if (c->n_args < ARRAY_SIZE(c->args)) {
        c->args[c->n_args++] = word;
    }
}

/* --- the last word --- */

/* "[PERMISSION]..." stands for every further argument as well. */
static void add_argument(struct completion *c)
{
    const struct command *command = c->command;
    const char *at = command->args ? command->args : "";
    size_t i = 0, n;

    if (c->n_args >= (size_t)command->n_args_max)
        return;
    if (c->n_args == 0 && command->ids.path)
        add_listed(c, command->ids.path, command->ids.list, command->ids.member, "title");
    for (; *at; at += n + (at[n] == ' '), i++) {
        struct slice placeholder;

        n = strcspn(at, " ");
        placeholder = (struct slice){ at + (*at == '['), strcspn(at + (*at == '['), "]. ") };
        if (strncmp(at, "FILE.json", strlen("FILE.json")) == 0)
            placeholder.n = strlen("FILE.json");
        if (i == c->n_args || (i < c->n_args && n > 3 && strncmp(at + n - 3, "...", 3) == 0))
            add_placeholder(c, placeholder, command->words);
    }
}

static void add_option(const struct cli_option *option, void *arg)
{
    struct completion *c = arg;

    if (strncmp(option->name, c->current, strlen(c->current)) == 0)
        add_line(c, option->name, option->help);
}

static void add_options(struct completion *c)
{
    const char *equals = strchr(c->current, '=');
    const struct cli_option *option = equals ? command_option(c->command, c->current) : NULL;

    if (!equals && c->command) {
        command_each_option(c->command, add_option, c);
    } else if (option && option->value) {
        c->head = arena_strndup(c->cli->arena, c->current, (size_t)(equals + 1 - c->current));
        c->current = equals + 1;
        add_placeholder(c, slice_of(option->value), option->name);
    }
}

static void add_candidates(struct completion *c)
{
    if (c->is_lost)
        return;
    if (c->waiting) {
        add_placeholder(c, slice_of(c->waiting->value), c->waiting->name);
        return;
    }
    if (!c->is_past_options && c->current[0] == '-') {
        add_options(c);
        return;
    }
    if (c->n_words < ARRAY_SIZE(c->words))
        add_commands(c, c->n_words ? c->words[0] : NULL);
    if (c->command)
        add_argument(c);
}

int run_complete(struct cli *cli, struct err *e)
{
    struct completion c = { .cli = cli, .current = "", .head = "", .data_dir = cli_value(cli, "--data") };

    buf_init(&c.out, COMPLETE_MAX_BYTES);
    if (cli->n_args > 0)
        c.current = cli->args[cli->n_args - 1];
    for (size_t i = 0; i + 1 < cli->n_args; i++)
        take_word(&c, cli->args[i]);
    add_candidates(&c);
    out_lines(stdout, buf_slice(&c.out));
    buf_clear(&c.out);
    return 0;
}

/* --- the scripts --- */

int run_completion(struct cli *cli, struct err *e)
{
    for (const struct http_embedded_file *f = completion_scripts; f->name; f++)
        if (strcmp(f->name, arena_printf(cli->arena, "hearth.%s", cli->args[0])) == 0) {
            out_lines(stdout, f->bytes);
            return 0;
        }
    return err_set(e, -EINVAL, "BAD_USE", "Completion is made for bash, zsh and fish, not for %s", cli->args[0]);
}
