#include "os/sandbox_private.h"

#include <limits.h>
#include <stdlib.h>

static const char *const profile_names[] = {
    [SANDBOX_NONE] = "none", [SANDBOX_STANDARD] = "standard", [SANDBOX_STRICT] = "strict"
};

enum sandbox_profile sandbox_profile_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(profile_names); i++)
        if (strcmp(profile_names[i], name) == 0)
            return (enum sandbox_profile)i;
    return SANDBOX_STANDARD;
}

bool sandbox_is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    if (n == 1 && folder[0] == '/')
        return true;
    return n > 0 && strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* The real path, links followed; a path that does not exist is returned unchanged. */
static const char *real_of(struct arena *a, const char *path)
{
    AUTO(freep) char *real = realpath(path, NULL);

    return arena_strdup(a, real ? real : path);
}

static const char *const *hidden_of(struct arena *a, const char *const *paths)
{
    size_t n = 0;
    const char **real;

    while (paths && paths[n])
        n++;
    real = arena_array(a, n + 1, sizeof(*real));
    for (size_t i = 0; i < n; i++)
        real[i] = real_of(a, paths[i]);
    return real;
}

struct sandbox *sandbox_new(const struct sandbox_config *c)
{
    struct sandbox *box = xcalloc(1, sizeof(*box));
    const char *home = getenv("HOME");

    box->arena = arena_new();
    box->bwrap = arena_strdup(box->arena, c->bwrap);
    box->data_dir = real_of(box->arena, c->data_dir);
    box->hidden = hidden_of(box->arena, c->hidden);
    box->home = home && home[0] == '/' && home[1] ? real_of(box->arena, home) : "";
    box->profile = sandbox_profile_named(c->profile);
    pthread_mutex_init(&box->mutex, NULL);
    return box;
}

struct sandbox *sandbox_free(struct sandbox *box)
{
    if (!box)
        return NULL;
    pthread_mutex_destroy(&box->mutex);
    arena_free(box->arena);
    free(box);
    return NULL;
}

void sandbox_set_port(struct sandbox *box, uint16_t port)
{
    box->port = port;
}

void sandbox_means(struct sandbox *box, struct sandbox_means *ret)
{
    pthread_mutex_lock(&box->mutex);
    if (!box->is_probed)
        sandbox_probe(box);
    box->is_probed = true;
    *ret = box->means;
    pthread_mutex_unlock(&box->mutex);
}

enum sandbox_profile sandbox_profile_of(const struct sandbox *box, const struct sandbox_definition *definition)
{
    return definition->profile && *definition->profile ? sandbox_profile_named(definition->profile) : box->profile;
}

enum sandbox_level sandbox_level_of(struct sandbox *box, enum sandbox_profile profile)
{
    struct sandbox_means means;

    if (profile == SANDBOX_NONE)
        return SANDBOX_LEVEL_TREE;
    sandbox_means(box, &means);
    return means.has_namespaces     ? SANDBOX_LEVEL_NAMESPACES
           : means.landlock_abi > 0 ? SANDBOX_LEVEL_LANDLOCK
                                    : SANDBOX_LEVEL_TREE;
}
