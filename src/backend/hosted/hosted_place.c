#include "backend/hosted/hosted_place.h"

#include "backend/hosted/account.h"
#include "backend/hosted/hosted_rest.h"

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
                                             .abbr = settings_string(place->settings, a, SETTING_IDENTITY_ABBR),
                                             .call_ms = settings_ms(place->settings, SETTING_BACKEND_CALL_S) };
    return backend_hosted_open(&config, ret, e);
}

int backend_hosted_check(const char *url, const char *data_dir, struct err *e)
{
    return hosted_rest_check_url(url, e);
}
