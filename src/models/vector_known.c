#include "models/vector_known.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a. The service itself makes the ids of scopes. */
static size_t bucket_of(const char *scope)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *scope; scope++)
        hash = (hash ^ (unsigned char)*scope) * UINT64_C(1099511628211);
    return (size_t)(hash % KNOWN_BUCKETS);
}

static struct known_scope **place_of(struct known_scopes *k, const char *scope)
{
    struct known_scope **at = &k->buckets[bucket_of(scope)];

    while (*at && strcmp((*at)->scope, scope) != 0)
        at = &(*at)->next;
    return at;
}

bool known_scopes_has(const struct known_scopes *k, const char *scope)
{
    const struct known_scope *at = k->buckets[bucket_of(scope)];

    while (at && strcmp(at->scope, scope) != 0)
        at = at->next;
    return at != NULL;
}

static void unlink_at(struct known_scopes *k, struct known_scope **at)
{
    struct known_scope *gone = *at;

    *at = gone->next;
    free(gone->scope);
    free(gone);
    k->n--;
}

void known_scopes_add(struct known_scopes *k, const char *scope)
{
    struct known_scope *added;

    if (known_scopes_has(k, scope))
        return;
    if (k->n >= LIMIT_KNOWN_SCOPES)
        known_scopes_clear(k);
    added = xcalloc(1, sizeof(*added));
    added->scope = xstrdup(scope);
    *place_of(k, scope) = added;
    k->n++;
}

void known_scopes_remove(struct known_scopes *k, const char *scope)
{
    struct known_scope **at = place_of(k, scope);

    if (*at)
        unlink_at(k, at);
}

void known_scopes_clear(struct known_scopes *k)
{
    for (size_t i = 0; i < KNOWN_BUCKETS; i++)
        while (k->buckets[i])
            unlink_at(k, &k->buckets[i]);
}
