#include "cli/help.h"

#include "cli/parse.h"

/* --- usage --- */

static void add_option_usage(const struct cli_option *o, void *arg)
{
    struct buf *out = arg;

    if (strcmp(o->name, "--help") == 0)
        return;
    buf_printf(out, " [%s%s%s]%s", o->name, o->value ? " " : "", o->value ? o->value : "", o->is_many ? "..." : "");
}

void help_print_usage(struct buf *out, const struct command *c)
{
    buf_printf(out, "usage: hearth %s%s%s", c->words, c->args ? " " : "", c->args ? c->args : "");
    command_each_option(c, add_option_usage, out);
    buf_add_char(out, '\n');
}

/* --- help --- */

static const char *option_title(struct arena *a, const struct cli_option *o)
{
    return arena_printf(a, "%s%s%s%s%s", o->letter ? o->letter : "", o->letter ? ", " : "", o->name,
                        o->value ? " " : "", o->value ? o->value : "");
}

static void add_option_help(const struct cli_option *o, void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    buf_printf(arg, "  %-21s  %s%s\n", option_title(a, o), o->help, o->is_many ? "; may be repeated" : "");
}

void help_print_command(struct buf *out, const struct command *c)
{
    help_print_usage(out, c);
    buf_printf(out, "\n%s.\n", c->summary);
    if (c->details)
        buf_printf(out, "\n%s\n", c->details);
    buf_add_str(out, "\nOptions:\n");
    command_each_option(c, add_option_help, out);
}

static bool is_in_group(const struct command *c, const char *group)
{
    size_t n = strlen(group);

    return strncmp(c->words, group, n) == 0 && (c->words[n] == ' ' || c->words[n] == '\0');
}

/* What a person wants, and the first words of the commands for it. */
static const struct section {
    const char *title, *words[12];
} sections[] = {
    { "See how it is", { "serve", "service", "status", "doctor", "open", "confirm" } },
    { "Use models", { "chat", "embed", "search", "provider", "usage", "limit" } },
    { "Apps and what they may", { "app", "permission", "key" } },
    { "Agents and their work", { "agent", "approval", "mcp", "task", "activity", "calendar", "workspace", "thread" } },
    { "Settings and safety", { "settings", "backend", "user", "audit", "backup", "restore", "upgrade" } },
    { "For programs, and help", { "routes", "openapi", "help", "man", "completion", "version" } },
};

static bool is_in_section(const struct command *c, const struct section *section)
{
    for (size_t i = 0; i < ARRAY_SIZE(section->words) && section->words[i]; i++)
        if (is_in_group(c, section->words[i]))
            return true;
    return false;
}

/* A command that no section names comes last. */
static bool is_in_any_section(const struct command *c)
{
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
        if (is_in_section(c, &sections[i]))
            return true;
    return false;
}

static void add_line(struct buf *out, const struct command *c)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    buf_printf(out, "  %-42s %s\n", arena_printf(a, "%s%s%s", c->words, c->args ? " " : "", c->args ? c->args : ""),
               c->summary);
}

static void add_sections(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
        buf_printf(out, "%s%s\n", i ? "\n" : "", sections[i].title);
        for (const struct command *c = command_first(); c; c = command_next(c))
            if (is_in_section(c, &sections[i]))
                add_line(out, c);
    }
    for (const struct command *c = command_first(); c; c = command_next(c))
        if (!is_in_any_section(c) && !c->is_hidden)
            add_line(out, c);
}

void help_print_list(struct buf *out, const char *group)
{
    for (const struct command *c = command_first(); group && c; c = command_next(c))
        if (is_in_group(c, group))
            add_line(out, c);
    if (group)
        return;
    buf_add_str(
        out,
        "Hearth: AI work on this machine, for the apps beside it.\n\nusage: hearth COMMAND [ARGUMENT]... [OPTION]...\n\n");
    add_sections(out);
    buf_add_str(out,
                "\n`hearth help COMMAND` tells more of each. --data DIR names the data folder of every command.\n");
}

/* --- manual page --- */

/* roff(7): a backslash, a leading dot or quote and every hyphen are escaped so that they are printed unchanged. */
static void add_roff(struct buf *out, const char *text)
{
    bool is_line_start = true;

    for (; *text; text++) {
        if (is_line_start && (*text == '.' || *text == '\''))
            buf_add_str(out, "\\&");
        is_line_start = *text == '\n';
        if (*text == '\\')
            buf_add_str(out, "\\e");
        else if (*text == '-')
            buf_add_str(out, "\\-");
        else
            buf_add_char(out, *text);
    }
}

static void add_option_roff(const struct cli_option *o, void *arg)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct buf *out = arg;

    if (strcmp(o->name, "--help") == 0 || strcmp(o->name, "--data") == 0)
        return;
    buf_add_str(out, ".RS\n.TP\n.B ");
    add_roff(out, option_title(a, o));
    buf_add_char(out, '\n');
    add_roff(out, o->help);
    buf_printf(out, "%s\n.RE\n", o->is_many ? "; may be repeated" : "");
}

static void add_command_roff(struct buf *out, const struct command *c)
{
    buf_add_str(out, ".TP\n.B hearth ");
    add_roff(out, c->words);
    if (c->args) {
        buf_add_str(out, " \\fI");
        add_roff(out, c->args);
        buf_add_str(out, "\\fR");
    }
    buf_add_char(out, '\n');
    add_roff(out, c->summary);
    buf_add_str(out, ".\n");
    if (c->details) {
        add_roff(out, c->details);
        buf_add_char(out, '\n');
    }
    command_each_option(c, add_option_roff, out);
}

void help_print_man(struct buf *out)
{
    buf_add_str(
        out,
        ".TH HEARTH 1 \"\" \"hearth " HEARTH_VERSION "\" \"User Commands\"\n"
        ".SH NAME\nhearth \\- AI work on this machine, for the apps beside it\n"
        ".SH SYNOPSIS\n.B hearth\n.I command\n[\\fIargument\\fR]... [\\fIoption\\fR]...\n"
        ".SH DESCRIPTION\nHearth is a service of one machine: applications use its HTTP API for agents and tasks, and row events\n"
        "in its database become the work of agents. While it runs, the other commands talk to it over a socket in its data\n"
        "folder; when it does not, they work on the data folder themselves.\n.SH COMMANDS\n");
    for (const struct command *c = command_first(); c; c = command_next(c))
        if (!c->is_hidden)
            add_command_roff(out, c);
    buf_add_str(
        out,
        ".SH OPTIONS\n.TP\n.B \\-\\-data \\fIDIR\\fR\nthe data folder, for every command\n"
        ".SH ENVIRONMENT\n.TP\n.B HEARTH_DATA\nthe data folder when \\-\\-data does not name it; without both it is\n"
        ".I $XDG_DATA_HOME/hearth\nor\n.IR ~/.local/share/hearth .\n"
        ".TP\n.B HEARTH_<KEY>\na setting: tasks.sweep_s is HEARTH_TASKS_SWEEP_S\n"
        ".SH EXIT STATUS\n0 done; 1 failed, one sentence on standard error says why; 2 wrong use or a bad setting.\n");
}
