/* What signs a person in at the face: a refresh token and an e-mail address, as anyone sends them. Only what was signed
 * here is accepted as a token; an accepted address has one form. */
#include "base/limits.h"
#include "face/password.h"
#include "face/refresh_token.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const struct slice secret = { "secret", 6 };

static void read_token(struct slice text)
{
    char again[REFRESH_TOKEN_CHARS + 1];
    struct refresh_token token;

    if (refresh_token_read(text, secret, &token, NULL) < 0)
        return;
    refresh_token_write(&token, secret, again);
    assert(slice_eq_str(text, again));
}

static void read_address(struct slice text)
{
    char *once = strndup(text.p, text.n), *twice;

    if (email_normalize(once, NULL) == 0) {
        twice = strdup(once);
        assert(strlen(once) <= LIMIT_FACE_EMAIL);
        assert(email_normalize(twice, NULL) == 0 && strcmp(once, twice) == 0);
        free(twice);
    }
    free(once);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    read_token((struct slice){ (const char *)bytes, n });
    read_address((struct slice){ (const char *)bytes, n });
    return 0;
}
