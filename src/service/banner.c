/* What the person in the terminal, and every script that starts the service, reads first. */
#include "service/private.h"

#include <stdio.h>

void service_print_listening(const struct service *s)
{
    printf("hearth: listening on %s\n", s->api.base_url);
    printf("hearth: data in %s\n", s->config.data_dir);
    fflush(stdout);
}
