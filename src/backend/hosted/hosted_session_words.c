/* What the server's refusals mean (facts A6 to A8). */
#include "backend/hosted/hosted_session_private.h"

#include "base/utf8.h"

#include <string.h>

enum { SAID_BYTES = 160 };

static const struct {
    const char *said, *remedy;
    bool is_about_token;
} words[] = {
    { "Realtime is enabled",
      "the table is missing, or is not in the publication supabase_realtime: `hearth backend setup` mends that",
      false },
    { "oken has expired", "another token is asked for", true },
    { "InvalidJWT", "another token is asked for; is this machine's clock right?", true },
    { "JwtSignature", "the key or the token is of another project", true },
    { "MalformedJWT", "the key or the token is cut off", true },
    { "Unauthorized", "the project's policies or keys do not allow it: does the app need a signed-in user?", true },
    { "`filter`", "the row filter must be one condition like column=eq.value", false },
    { "RateLimit", "the plan of the project allows no more now", false },
    { "DatabaseLackOfConnections", "the project's database has no connection left", false },
    { "IncreaseConnectionPool", "the project's database has no connection left", false },
    { "UnableToConnectToProject", "the project is paused, or its database is down", false },
    { "InitializingProjectConnection", "the project is starting", false },
    { "RealtimeDisabledForTenant", "realtime is turned off in the settings of the project", false },
    { "TenantNotFound", "no such project: is the address right?", false },
    { "PrivateOnly", "the project allows private channels only", false },
};

void hosted_words(struct hosted_session *s, const char *what, struct slice said, char ret[HOSTED_WHY])
{
    const char *remedy = NULL;

    for (size_t i = 0; !remedy && said.n > 0 && i < ARRAY_SIZE(words); i++)
        if (memmem(said.p, said.n, words[i].said, strlen(words[i].said))) {
            remedy = words[i].remedy;
            s->needs_token = s->needs_token || words[i].is_about_token;
        }
    said = utf8_head(said, SAID_BYTES);
    snprintf(ret, HOSTED_WHY, "%s: \"%.*s\"%s%s.", what, (int)said.n, said.p ? said.p : "", remedy ? "; " : "",
             remedy ? remedy : "");
}
