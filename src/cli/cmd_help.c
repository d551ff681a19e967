/* hearth help, man, version */
#include "cli/help.h"
#include "cli/out.h"
#include "cli/parse.h"
#include "cli/special.h"

enum { HELP_BYTES = 1 << 20 };

static int print_all(void (*print)(struct buf *out))
{
    struct buf out;

    buf_init(&out, HELP_BYTES);
    print(&out);
    out_lines(stdout, buf_slice(&out));
    buf_clear(&out);
    return 0;
}

static void print_every_command(struct buf *out)
{
    help_print_list(out, NULL);
}

static int help_of_group(struct cli *cli, const char *group, struct err *e)
{
    struct buf out;
    bool is_known;

    buf_init(&out, HELP_BYTES);
    help_print_list(&out, group);
    is_known = out.n > 0;
    out_lines(stdout, buf_slice(&out));
    buf_clear(&out);
    return is_known ? 0 : parse_refuse_words(cli, cli->args[0], cli->n_args == 2 ? cli->args[1] : NULL, e);
}

int run_help(struct cli *cli, struct err *e)
{
    const char *words = cli->n_args == 2 ? arena_printf(cli->arena, "%s %s", cli->args[0], cli->args[1]) : cli->args[0];
    const struct command *c = words ? command_find(words) : NULL;
    struct buf out;

    if (!words)
        return print_all(print_every_command);
    if (!c)
        return help_of_group(cli, words, e);
    buf_init(&out, HELP_BYTES);
    help_print_command(&out, c);
    out_lines(stdout, buf_slice(&out));
    buf_clear(&out);
    return 0;
}

int run_man(struct cli *cli, struct err *e)
{
    return print_all(help_print_man);
}

int run_version(struct cli *cli, struct err *e)
{
    out_print("hearth %s\n", HEARTH_VERSION);
    return 0;
}
