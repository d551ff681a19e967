/* The first output for the person in the terminal, and for every script that starts the service. */
#include "service/private.h"

#include "os/paths.h"

#include <stdio.h>

/* " --data DIR", or "" for the folder that a command uses when none is named. */
static const char *data_option(const struct service *s)
{
    char *usual;

    if (paths_data_dir(s->arena, NULL, &usual, NULL) == 0 && strcmp(usual, s->config.data_dir) == 0)
        return "";
    return arena_printf(s->arena, " --data '%s'", s->config.data_dir);
}

static void print_next_steps(const struct service *s)
{
    static const struct {
        const char *command, *does;
    } steps[] = {
        { "hearth provider add stand-in",
          "a provider without a model: it repeats what you say; `hearth provider presets` lists the real ones" },
        { "hearth chat \"Hello\"", "asks it, or says what is missing" },
        { "hearth app new NAME --lang python",
          "writes an app that runs (docs/first-app.md); `hearth status` shows how all are" },
    };
    const char *data = data_option(s);

    printf("hearth: this is the first start here; in another terminal:\n");
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
        printf("  %zu. %s%s\n     %s\n", i + 1, steps[i].command, data, steps[i].does);
}

void service_print_listening(const struct service *s)
{
    printf("hearth: listening on %s\n", s->api.base_url);
    printf("hearth: data in %s\n", s->config.data_dir);
    if (s->is_first_start)
        print_next_steps(s);
    fflush(stdout);
}
