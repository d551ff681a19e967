/* Fields of registrations. */
#include "vector/vector.h"

struct json_value vectors_field_value(const struct vectors_field *f, struct json_value config, const char **ret_name)
{
    struct json_value value = json_get(config, f->name);
    bool is_alias = f->alias && json_is_absent(value) && !json_is_absent(json_get(config, f->alias));

    if (ret_name)
        *ret_name = is_alias ? f->alias : f->name;
    return is_alias ? json_get(config, f->alias) : value;
}
