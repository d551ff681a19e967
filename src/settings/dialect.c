#include "settings/dialect.h"

#include <string.h>

const struct dialect dialects[] = {
    { "svc", "svc", "svc" },
    { "realtimex", "realtimex", "rtx" },
    { .name = NULL },
};

const char *const dialect_names[] = { "svc", "realtimex", NULL };

const struct dialect *dialect_find(const char *name)
{
    for (const struct dialect *d = dialects; d->name; d++)
        if (strcmp(d->name, name) == 0)
            return d;
    return NULL;
}

bool dialect_is_word(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return text[0] >= 'a' && text[0] <= 'z' && text[n] == '\0' && n <= DIALECT_WORD_CHARS;
}
