/* The names that clients of this interface use for the product: the word in webhook paths, and the abbreviation in
 * names of tables, functions, variables and headers (decision D1). Constant; any thread.
 *
 *     const struct dialect *d = dialect_find("realtimex");
 */
#pragma once

#include "base/util.h"

enum { DIALECT_WORD_CHARS = 32 };

struct dialect {
    const char *name;  /* value of identity.dialect */
    const char *token; /* /webhooks/<token> */
    const char *abbr;  /* <abbr>_activities, <abbr>_fn_..., <ABBR>_APP_ID, x-<abbr>-event-id */
};

extern const struct dialect dialects[];   /* ended by name NULL; the first is the default */
extern const char *const dialect_names[]; /* ended by NULL */

const struct dialect *dialect_find(const char *name); /* NULL: unknown */
/* Whether the text can be a token or an abbreviation: lower-case letters, digits and _, a letter first, at most
 * DIALECT_WORD_CHARS.
 */
bool dialect_is_word(const char *text);
