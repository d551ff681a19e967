#include "agents/loop_private.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(const void *x, const void *y)
{
    const struct slice *a = x, *b = y;
    int order = memcmp(a->p, b->p, MIN(a->n, b->n));

    return order ? order : (a->n > b->n) - (a->n < b->n);
}

static const char *repeated_here(struct arena *a, struct json_value object)
{
    struct slice *names = arena_array(a, json_length(object) + 1, sizeof(*names));
    struct json_iter it = json_iter(object);
    struct json_value member;
    size_t n = 0;

    while (json_next(&it, &names[n], &member))
        n++;
    qsort(names, n, sizeof(*names), compare_names);
    for (size_t i = 1; i < n; i++)
        if (compare_names(&names[i - 1], &names[i]) == 0)
            return arena_slicedup(a, names[i]);
    return NULL;
}

/* The depth is bounded by LIMIT_JSON_DEPTH. */
const char *loop_repeated_name(struct arena *a, struct json_value v)
{
    const char *name = json_type(v) == JSON_OBJECT ? repeated_here(a, v) : NULL;
    struct json_iter it = json_iter(v);
    struct json_value part;

    while (!name && json_next(&it, NULL, &part))
        if (json_type(part) == JSON_OBJECT || json_type(part) == JSON_ARRAY)
            name = loop_repeated_name(a, part);
    return name;
}
