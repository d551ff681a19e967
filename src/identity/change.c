#include "identity/change.h"

#include "base/json.h"
#include "base/utf8.h"

#include <string.h>

enum { SHOWN_BYTES = 400 }; /* of each side of each member */

/* The beginning of the value, cut between characters. */
static const char *shown(struct arena *a, struct json_value value)
{
    const char *text = json_to_str(a, value);
    size_t n = 0, step;

    if (strlen(text) <= SHOWN_BYTES)
        return text;
    while ((step = utf8_char_bytes(slice_of(text + n))) > 0 && n + step <= SHOWN_BYTES)
        n += step;
    return arena_printf(a, "%.*s...", (int)n, text);
}

const char *command_change(struct arena *a, const char *before, const char *after)
{
    struct json_value was = { 0 }, is = { 0 }, value;
    const char *change = "";
    struct slice name;

    if (!before || !after || json_parse(a, slice_of(before), &was, NULL) < 0 ||
        json_parse(a, slice_of(after), &is, NULL) < 0)
        return "what is started for the app has changed";
    for (struct json_iter it = json_iter(is); json_next(&it, &name, &value);) {
        struct json_value former = json_get(was, name.p);

        if (strcmp(json_to_str(a, former), json_to_str(a, value)) != 0)
            change = arena_printf(a, "%s%s%.*s: %s, before %s", change, *change ? "; " : "", (int)name.n, name.p,
                                  shown(a, value), shown(a, former));
    }
    return change;
}
