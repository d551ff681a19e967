#include "base/json.h"

#include "base/limits.h"

bool json_is_absent(struct json_value v)
{
    enum json_type type = json_type(v);

    return type == JSON_ABSENT || type == JSON_NULL;
}

char *json_to_str(struct arena *a, struct json_value v)
{
    struct buf text;

    buf_init(&text, LIMIT_REPLY);
    json_print(&text, v);
    return buf_to_arena(&text, a);
}
