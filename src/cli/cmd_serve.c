/* hearth serve */
#include "base/memory.h"
#include "cli/out.h"
#include "cli/special.h"

#include "service/service.h"

/* --log and --log-format are the settings log.level and log.format. */
static const char *const *all_sets(struct cli *cli, size_t *ret_n)
{
    static const struct {
        const char *option, *key;
    } shorthands[] = {
        { "--log", "log.level" },
        { "--log-format", "log.format" },
    };
    size_t n;
    const char *const *given = cli_values(cli, "--set", &n);
    const char **sets = arena_array(cli->arena, n + ARRAY_SIZE(shorthands) + 1, sizeof(*sets));

    for (size_t i = 0; i < n; i++)
        sets[i] = given[i];
    for (size_t i = 0; i < ARRAY_SIZE(shorthands); i++)
        if (cli_has(cli, shorthands[i].option))
            sets[n++] = arena_printf(cli->arena, "%s=%s", shorthands[i].key, cli_value(cli, shorthands[i].option));
    *ret_n = n;
    return sets;
}

int run_serve(struct cli *cli, struct err *e)
{
    struct service_config c = { .data_dir = cli->data_dir,
                                .config_file = cli_value(cli, "--config"),
                                .accept_loss = cli_has(cli, "--accept-loss") };
    int r;

    memory_set_up();
    c.sets = all_sets(cli, &c.n_sets);
    c.listens = cli_values(cli, "--listen", &c.n_listens);
    if (!cli_has(cli, "--check-config"))
        return service_serve(&c);
    r = service_check_config(&c, e);
    if (r == 0)
        out_print("configuration ok\n");
    return r;
}
