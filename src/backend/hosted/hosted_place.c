#include "backend/hosted/hosted_place.h"

#include "backend/hosted/account.h"
#include "backend/hosted/hosted_rest.h"
#include "backend/hosted/hosted_setup.h"
#include "base/util.h"

#include <stdlib.h>

/* What makes tables, through the account that is logged in. */
struct maker {
    struct settings *settings; /* borrowed */
    char *data_dir;            /* owned */
};

static int make_table(void *arg, const char *table, const struct net_wait *wait, struct err *e)
{
    const struct maker *maker = arg;
    const struct backend_place place = { .settings = maker->settings, .data_dir = maker->data_dir };

    return hosted_setup_table(&place, table, wait, e);
}

static int declare(void *arg, const struct table_shape *declared, const struct table_shape *existing,
                   const struct net_wait *wait, struct err *e)
{
    const struct maker *maker = arg;
    const struct backend_place place = { .settings = maker->settings, .data_dir = maker->data_dir };

    return hosted_setup_declare(&place, declared, existing, wait, e);
}

static void release(void *arg)
{
    struct maker *maker = arg;

    free(maker->data_dir);
    free(maker);
}

static struct maker *maker_new(const struct backend_place *place)
{
    struct maker *maker = xcalloc(1, sizeof(*maker));

    maker->settings = place->settings;
    maker->data_dir = xstrdup(place->data_dir);
    return maker;
}

/* The service's own work goes under the secret key where one is kept: the project's rules for users bind the other. */
int hosted_place_open(const struct backend_place *place, struct arena *a, struct backend **ret, struct err *e)
{
    struct hosted_project project = { 0 };
    struct backend_hosted_config config;
    int r = hosted_project_read(place->settings, place->data_dir, a, &project, e);

    if (r < 0)
        return r;
    config = (struct backend_hosted_config){ .url = project.url,
                                             .key = project.secret ? project.secret : project.key,
                                             .user_key = project.key,
                                             .abbr = settings_string(place->settings, a, SETTING_IDENTITY_ABBR),
                                             .call_ms = settings_ms(place->settings, SETTING_BACKEND_CALL_S),
                                             .make_table = make_table,
                                             .declare = declare,
                                             .release = release,
                                             .arg = maker_new(place) };
    return backend_hosted_open(&config, ret, e);
}

int backend_hosted_check(const char *url, const char *data_dir, struct err *e)
{
    return hosted_rest_check_url(url, e);
}
