/* hearth backend deliveries */
#include "cli/request.h"
#include "cli/special.h"

#define DELIVERY_IDS .ids = { "/api/backend/deliveries", "deliveries", "id" }

static const struct command decisions[] = {
    { .words = "retry",
      DELIVERY_IDS,
      .method = HTTP_POST,
      .path = "/api/backend/deliveries/{0}/retry",
      .done = "The end is sent again." },
    { .words = "drop",
      DELIVERY_IDS,
      .method = HTTP_DELETE,
      .path = "/api/backend/deliveries/{0}",
      .done = "The end is dropped: its row waits again, and the work will be done anew." },
};

int run_backend_deliveries(struct cli *cli, struct err *e)
{
    const char *word = cli->args[0];
    int r;

    if (cli->n_args == 0)
        return cli_run_request(cli, e);
    for (size_t i = 0; i < ARRAY_SIZE(decisions) && cli->n_args == 2; i++) {
        if (strcmp(decisions[i].words, word) != 0)
            continue;
        cli->command = &decisions[i];
        cli->args[0] = cli->args[1];
        cli->n_args = 1;
        r = cli_complete_id(cli, e);
        return r < 0 ? r : cli_run_request(cli, e);
    }
    return err_set(e, -EINVAL, "BAD_USE", "hearth backend deliveries takes nothing, or retry ID, or drop ID");
}
