/* The same handlers on the same data folder while no service runs, for the command line. */
#include "service/private.h"

#include "http/local.h"

int service_open_offline(const struct service_config *c, struct service **ret, struct err *e)
{
    struct service *s = xcalloc(1, sizeof(*s));
    int r = service_open_core(s, c, false, e);

    if (r < 0) {
        service_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

void service_request(struct service *s, struct http_exchange *x)
{
    dispatch_request(s->dispatch, x);
}

int service_check_config(const struct service_config *c, struct err *e)
{
    struct service *s = NULL;
    int r = service_open_offline(c, &s, e);

    service_close(s);
    return r;
}
