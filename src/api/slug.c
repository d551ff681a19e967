#include "api/slug.h"

#include "base/uuid.h"

#include <ctype.h>

static bool is_slug(const char *s)
{
    return *s && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(s);
}

/* "My Work!" -> "my-work"; a name without ASCII letters and digits gets a random slug. */
static char *from_name(struct arena *a, const char *name)
{
    char *slug = arena_alloc(a, SLUG_CHARS + 1), random[UUID_SIZE];
    size_t n = 0;

    for (; *name && n < SLUG_CHARS; name++) {
        if (isalnum((unsigned char)*name))
            slug[n++] = (char)tolower((unsigned char)*name);
        else if (n > 0 && slug[n - 1] != '-')
            slug[n++] = '-';
    }
    while (n > 0 && slug[n - 1] == '-')
        slug[--n] = '\0';
    if (n > 0)
        return slug;
    uuid_v4(random);
    return arena_strndup(a, random, 8);
}

int slug_of(struct arena *a, const char *given, const char *name, const char **ret, struct err *e)
{
    if (given && !is_slug(given))
        return err_add_field(e, "slug", "must be lower-case letters, digits, - and _");
    *ret = given ? given : from_name(a, name);
    return 0;
}
