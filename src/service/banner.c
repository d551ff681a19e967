/* What the person in the terminal, and every script that starts the service, reads first. */
#include "service/private.h"

#include <stdio.h>

void service_print_listening(const struct service *s, uint16_t port)
{
    printf("hearth: listening on http://127.0.0.1:%u\n", port);
    printf("hearth: data in %s\n", s->config.data_dir);
    fflush(stdout);
}
