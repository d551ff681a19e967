#include "cli/parse.h"

#include "base/suggest.h"

const struct cli_option cli_common_options[] = {
    { "--data", .value = "DIR", .help = "the data folder; default $HEARTH_DATA, else $XDG_DATA_HOME/hearth" },
    { "--help", .letter = "-h", .help = "what this command does" },
    { .name = NULL },
};

const struct cli_option cli_json_option = { "--json", .help = "print JSON" };

static const struct cli_option wide_option = { "--wide", .help = "the whole table, wider than the terminal too" };

static const struct cli_option version_option = { "--version", .help = "print the version" };

/* --- options --- */

void command_each_option(const struct command *c, void (*fn)(const struct cli_option *option, void *arg), void *arg)
{
    for (const struct cli_option *o = c->options; o && o->name; o++)
        fn(o, arg);
    if (c->columns || c->has_table)
        fn(&wide_option, arg);
    if (c->is_json)
        fn(&cli_json_option, arg);
    for (const struct cli_option *o = cli_common_options; o->name; o++)
        fn(o, arg);
}

struct option_search {
    const char *text;
    size_t n; /* of the option's name in text: up to '=' */
    const struct cli_option *found;
};

static void match_option(const struct cli_option *option, void *arg)
{
    struct option_search *s = arg;
    struct slice text = { s->text, s->n };

    if (slice_eq_str(text, option->name) || (option->letter && slice_eq_str(text, option->letter)))
        s->found = option;
}

const struct cli_option *command_option(const struct command *c, const char *text)
{
    static const struct command any = { .words = "", .is_json = true, .has_table = true };
    struct option_search s = { .text = text, .n = strcspn(text, "=") };

    command_each_option(c ? c : &any, match_option, &s);
    if (!s.found && !c)
        match_option(&version_option, &s);
    return s.found;
}

static bool is_option(const char *text)
{
    return text[0] == '-' && text[1] != '\0';
}

/* --- words --- */

const struct command *command_first(void)
{
    return commands;
}

const struct command *command_next(const struct command *c)
{
    c++;
    return c->words ? c : c->more;
}

const struct command *command_find(const char *words)
{
    for (const struct command *c = command_first(); c; c = command_next(c))
        if (strcmp(c->words, words) == 0)
            return c;
    return NULL;
}

static bool is_group(const char *word)
{
    size_t n = strlen(word);

    for (const struct command *c = command_first(); c; c = command_next(c))
        if (strncmp(c->words, word, n) == 0 && c->words[n] == ' ')
            return true;
    return false;
}

/* Positions in argv of the first two words that are not options; 0 when there is none. Only options that every command
 * has may precede them. */
static void find_words(int argc, char *const *argv, int at[2])
{
    int n = 0;

    for (int i = 1; i < argc && n < 2; i++) {
        const struct cli_option *option = is_option(argv[i]) ? command_option(NULL, argv[i]) : NULL;

        if (is_option(argv[i]) && !option)
            return;
        if (!option)
            at[n++] = i;
        else if (option->value && !strchr(argv[i], '='))
            i++;
    }
}

/* The words of the nearest command or else group ("app list", "app"); NULL: none is near. second may be NULL. */
static const char *suggest_command(struct arena *a, const char *first, const char *second)
{
    const char *both = second ? arena_printf(a, "%s %s", first, second) : first, *near;
    const char **words;
    size_t n = 0;

    for (const struct command *c = command_first(); c; c = command_next(c))
        n++;
    words = arena_array(a, n + 1, sizeof(*words));
    n = 0;
    for (const struct command *c = command_first(); c; c = command_next(c))
        words[n++] = c->words;
    near = suggest_name(both, words, n);
    for (size_t i = 0; i < n; i++)
        words[i] = arena_strndup(a, words[i], strcspn(words[i], " "));
    return near ? near : suggest_name(first, words, n);
}

int parse_refuse_words(struct cli *cli, const char *first, const char *second, struct err *e)
{
    const char *near = suggest_command(cli->arena, first, second);
    const char *meant = near ? arena_printf(cli->arena, "did you mean `hearth %s`? ", near) : "";

    if (!is_group(first))
        return err_set(e, -EINVAL, "BAD_USE", "There is no command %s; %s`hearth help` lists them all", first, meant);
    if (!second)
        return err_set(e, -EINVAL, "BAD_USE", "%s what? `hearth help %s` lists its commands", first, first);
    return err_set(e, -EINVAL, "BAD_USE", "There is no command %s %s; %s`hearth help %s` lists those there are", first,
                   second, meant, first);
}

static bool wants_help(int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int choose_command(int argc, char *const *argv, struct cli *cli, int at[2], struct err *e)
{
    const char *first = at[0] ? argv[at[0]] : NULL, *second = at[1] ? argv[at[1]] : NULL;

    if (!first)
        return 0;
    if (second)
        cli->command = command_find(arena_printf(cli->arena, "%s %s", first, second));
    if (cli->command)
        return 0;
    at[1] = 0;
    cli->command = command_find(first);
    if (cli->command)
        return 0;
    if (!second && is_group(first) && wants_help(argc, argv)) {
        cli->group = first;
        return 0;
    }
    return parse_refuse_words(cli, first, second, e);
}

/* --- options and arguments --- */

static int refuse_option(struct cli *cli, const char *typed, struct err *e)
{
    const struct cli_option *own = cli->command ? cli->command->options : NULL;
    const char *of = cli->command ? cli->command->words : "", *near, **names;
    char *name = arena_strndup(cli->arena, typed, strcspn(typed, "="));
    size_t n = 0;

    while (own && own[n].name)
        n++;
    names = arena_array(cli->arena, n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = own[i].name;
    names[n] = "--data";
    near = suggest_name(name, names, n + 1);
    return err_set(e, -EINVAL, "BAD_USE", "hearth%s%s has no option %s%s%s%s", *of ? " " : "", of, name,
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int take_option(struct cli *cli, int argc, char *const *argv, int *i, struct err *e)
{
    const struct cli_option *option = command_option(cli->command, argv[*i]);
    const char *equals = strchr(argv[*i], '='), *value = equals ? equals + 1 : NULL;

    if (!option)
        return refuse_option(cli, argv[*i], e);
    if (!option->value && value)
        return err_set(e, -EINVAL, "BAD_USE", "The option %s takes no value", option->name);
    if (option->value && !value) {
        if (*i + 1 == argc)
            return err_set(e, -EINVAL, "BAD_USE", "The option %s needs a value: %s %s", option->name, option->name,
                           option->value);
        value = argv[++*i];
    }
    if (!option->is_many && cli_has(cli, option->name) && option->value)
        return err_set(e, -EINVAL, "BAD_USE", "The option %s is given twice", option->name);
    if (cli->n_given == ARRAY_SIZE(cli->given))
        return err_set(e, -EINVAL, "BAD_USE", "At most %zu options may be given", ARRAY_SIZE(cli->given));
    cli->given[cli->n_given].option = option;
    cli->given[cli->n_given++].value = value ? value : "true";
    return 0;
}

static int take_arg(struct cli *cli, const char *text, struct err *e)
{
    if (!cli->command || cli->n_args == (size_t)cli->command->n_args_max)
        return err_set(e, -EINVAL, "BAD_USE", "%s is one argument too many", text);
    cli->args[cli->n_args++] = text;
    return 0;
}

static int check_args(const struct cli *cli, struct err *e)
{
    if (!cli->command || cli->is_help || cli->n_args >= (size_t)cli->command->n_args_min)
        return 0;
    return err_set(e, -EINVAL, "BAD_USE", "hearth %s needs %s", cli->command->words, cli->command->args);
}

int cli_parse(int argc, char *const *argv, struct cli *ret, struct err *e)
{
    int at[2] = { 0, 0 };
    bool is_past_options = false;
    int r;

    find_words(argc, argv, at);
    r = choose_command(argc, argv, ret, at, e);
    for (int i = 1; r == 0 && i < argc; i++) {
        if (i == at[0] || i == at[1])
            continue;
        if (!is_past_options && strcmp(argv[i], "--") == 0)
            is_past_options = true;
        else if (!is_past_options && is_option(argv[i]))
            r = take_option(ret, argc, argv, &i, e);
        else
            r = take_arg(ret, argv[i], e);
    }
    if (r < 0)
        return r;
    ret->is_help = cli_has(ret, "--help");
    ret->is_json = cli_has(ret, "--json");
    ret->is_version = cli_has(ret, "--version");
    return check_args(ret, e);
}

/* --- queries --- */

const char *cli_value(const struct cli *cli, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < cli->n_given; i++)
        if (strcmp(cli->given[i].option->name, name) == 0)
            value = cli->given[i].value;
    return value;
}

bool cli_has(const struct cli *cli, const char *name)
{
    return cli_value(cli, name) != NULL;
}

const char *const *cli_values(const struct cli *cli, const char *name, size_t *ret_n)
{
    const char **values = arena_array(cli->arena, cli->n_given + 1, sizeof(*values));
    size_t n = 0;

    for (size_t i = 0; i < cli->n_given; i++)
        if (strcmp(cli->given[i].option->name, name) == 0)
            values[n++] = cli->given[i].value;
    if (ret_n)
        *ret_n = n;
    return values;
}
