#include "os/env.h"

#include "base/limits.h"

#include <ctype.h>

struct env_list {
    struct arena *arena;  /* borrowed */
    const char **strings; /* n of them, then NULL */
    size_t n, cap;
};

enum { ENV_FIRST_CAP = 32 };

static const char *const inherited_names[] = {
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR",
};

static const char **env_slot(struct env_list *l, const char *name)
{
    size_t n_name = strlen(name);

    for (size_t i = 0; i < l->n; i++)
        if (strncmp(l->strings[i], name, n_name) == 0 && l->strings[i][n_name] == '=')
            return &l->strings[i];
    if (l->n + 1 == l->cap) {
        const char **wider = arena_array(l->arena, 2 * l->cap, sizeof(*wider));

        memcpy(wider, l->strings, l->n * sizeof(*wider));
        l->strings = wider;
        l->cap *= 2;
    }
    return &l->strings[l->n++];
}

static void env_put(struct env_list *l, const char *name, const char *value)
{
    const char **slot = env_slot(l, name);

    *slot = arena_printf(l->arena, "%s=%s", name, value);
}

struct env_list *env_list_new(struct arena *a)
{
    struct env_list *l = ARENA_NEW(a, struct env_list);

    *l = (struct env_list){ .arena = a, .cap = ENV_FIRST_CAP };
    l->strings = arena_array(a, l->cap, sizeof(*l->strings));
    env_put(l, "PYTHONUNBUFFERED", "1"); /* else the output of a Python program that is ended is lost */
    for (size_t i = 0; i < ARRAY_SIZE(inherited_names); i++) {
        const char *value = getenv(inherited_names[i]);

        if (value)
            env_put(l, inherited_names[i], value);
    }
    return l;
}

char *env_name(struct arena *a, const char *prefix, const char *rest)
{
    char *name = arena_printf(a, "%s_%s", prefix, rest);

    for (char *at = name; *at; at++)
        *at = isalnum((unsigned char)*at) ? (char)toupper((unsigned char)*at) : '_';
    return name;
}

static bool env_name_is_valid(const char *name)
{
    if (!isascii(name[0]) || !(isalpha(name[0]) || name[0] == '_'))
        return false;
    for (const char *at = name; *at; at++)
        if (!isascii(*at) || !(isalnum(*at) || *at == '_'))
            return false;
    return true;
}

int env_list_set(struct env_list *l, const char *name, const char *value, struct err *e)
{
    if (!env_name_is_valid(name))
        return err_set(
            e, -EINVAL, "VALIDATION_ERROR",
            "The name of an environment variable must be letters, digits and underscores and must not begin with a digit; "
            "`%.80s` is not.",
            name);
    if (strlen(name) + 1 + strlen(value) > LIMIT_ARG_BYTES)
        return err_set(e, -E2BIG, "ARGUMENT_TOO_LONG",
                       "The environment variable %.80s with its value must be at most %d bytes.", name,
                       LIMIT_ARG_BYTES);
    env_put(l, name, value);
    return 0;
}

const char *const *env_list_strings(struct env_list *l)
{
    return l->strings;
}
