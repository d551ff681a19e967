#include "backend/postgres/postgres_broadcast.h"
#include "base/json_write.h"
#include "base/limits.h"

int postgres_broadcast_write(struct buf *out, const struct postgres_broadcast *in, struct err *e)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_array(&w);
    json_add_string(&w, NULL, in->channel);
    json_add_string(&w, NULL, in->event);
    json_add_string(&w, NULL, in->payload);
    json_end(&w);
    return out->overflowed
               ? err_set(e, -E2BIG, "TOO_LARGE", "A broadcast may have at most %d bytes as JSON", LIMIT_NOTIFY_BYTES)
               : 0;
}

bool postgres_broadcast_read(struct arena *a, const char *text, struct postgres_broadcast *ret)
{
    const char *parts[3] = { NULL, NULL, NULL };
    struct json_value list, item;
    size_t n = 0;

    if (json_parse(a, slice_of(text), &list, NULL) < 0 || json_type(list) != JSON_ARRAY || json_length(list) != 3)
        return false;
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        parts[n++] = json_cstr(item);
    if (!parts[0] || !parts[1] || !parts[2] || json_parse(a, slice_of(parts[2]), &item, NULL) < 0)
        return false;
    *ret = (struct postgres_broadcast){ parts[0], parts[1], parts[2] };
    return true;
}
