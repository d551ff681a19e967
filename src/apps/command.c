#include "apps/command.h"

#include "base/json_write.h"
#include "base/limits.h"
#include "os/sandbox.h"

#include <stdlib.h>

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Sorted, so that definitions which differ only in the order of variables give the same text. */
static void write_variables(struct json_writer *w, struct arena *a, struct json_value env)
{
    const char **names = arena_array(a, json_length(env) + 1, sizeof(*names));
    struct json_value value;
    struct slice name;
    size_t n = 0;

    for (struct json_iter it = json_iter(env); json_next(&it, &name, &value);)
        names[n++] = name.p;
    qsort(names, n, sizeof(*names), compare_names);
    json_add_strings(w, "variables", names, n);
}

const char *app_command_text(struct arena *a, const struct app_config *c)
{
    struct json_writer w;
    struct buf out;

    buf_init(&out, LIMIT_BODY_DEFAULT * 4);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "app_type", c->app_type);
    json_add_string(&w, "command", c->command ? c->command : "");
    json_add_strings(&w, "args", c->args.items, c->args.n);
    json_add_string(&w, "working_dir", c->working_dir ? c->working_dir : "");
    write_variables(&w, a, c->env);
    json_add_string(&w, "sandbox", sandbox_canonical(a, &c->sandbox));
    json_end(&w);
    return buf_to_arena(&out, a);
}
