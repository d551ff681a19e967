/* An app's configuration read from JSON text as the route that registers it does. */
#pragma once

#include "apps/config.h"

/* Every error at once. */
static inline int parse_app_config(struct arena *a, struct slice json, struct app_config *ret, struct err *e)
{
    struct json_value object;
    struct app_config c = { 0 };
    int r = json_parse(a, json, &object, e), r_rules = 0;

    if (r < 0)
        return r;
    r = fields_read(app_config_fields, object, &c, a, "", e);
    if (json_type(object) == JSON_OBJECT)
        r_rules = app_config_check(&c, "svc", e);
    if (r < 0 || r_rules < 0)
        return r < 0 ? r : r_rules;
    return app_config_read(a, json, ret, e);
}
