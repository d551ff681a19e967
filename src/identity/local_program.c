#include "identity/local_program.h"

#include "identity/peers.h"
#include "identity/state.h"

static bool is_given(const char *text)
{
    return text && *text;
}

/* A caller that sends an invalid credential gets an error about it instead. */
static bool brings_nothing(const struct credentials *c)
{
    return !is_given(c->authorization) && !is_given(c->x_api_key) && !is_given(c->x_app_id) &&
           !is_given(c->x_app_secret) && !is_given(c->session_cookie) && !is_given(c->session_proof);
}

bool identity_takes_anonymous(struct identity *id, const struct credentials *c)
{
    return id->settings && settings_bool(id->settings, SETTING_LLM_OLLAMA_OPEN) && c->is_anonymous && brings_nothing(c);
}

int identity_claim_local(struct identity *id, const struct credentials *c, struct claim *ret, struct err *e)
{
    int r = peers_check_own(id, c->connection, false, e);

    if (r < 0)
        return r;
    *ret = (struct claim){ .kind = HOLDER_KEY };
    snprintf(ret->id, sizeof(ret->id), "%s", LOCAL_PROGRAM);
    return 0;
}

int identity_local_program(struct identity *id, const struct credentials *c, struct caller *ret, struct err *e)
{
    int r = peers_check_own(id, c->connection, true, e);

    if (r == 0)
        *ret = (struct caller){
            .kind = CALLER_LOCAL, .key_id = LOCAL_PROGRAM, .scope = LOCAL_PROGRAM, .actor = LOCAL_PROGRAM
        };
    return r;
}
