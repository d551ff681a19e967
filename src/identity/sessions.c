#include "identity/sessions.h"

#include "base/clock.h"
#include "identity/audit.h"
#include "identity/state.h"
#include "store/sessions.h"

enum { TOKEN_BYTES = 32 };

static void text_in(int64_t seconds, char out[TIME_TEXT_SIZE])
{
    clock_format(clock_wall_ms() + seconds * 1000, out);
}

int session_link_new(struct identity *id, char ret_token[SESSION_TOKEN_SIZE], struct err *e)
{
    unsigned char hash[HASH_BYTES];
    char token[SESSION_TOKEN_SIZE], expires_at[TIME_TEXT_SIZE];
    int r;

    random_token(token, TOKEN_BYTES);
    text_in(SESSION_LINK_S, expires_at);
    identity_hash(id, token, hash);
    r = store_login_links_insert(id->store, (struct slice){ (char *)hash, sizeof(hash) }, expires_at, e);
    if (r == 0)
        memcpy(ret_token, token, sizeof(token));
    return r;
}

static int refuse_link(struct err *e)
{
    return err_set(e, -EACCES, "LINK_INVALID", "This link has been used or has expired; `hearth open` prints a new one.");
}

int session_open(struct identity *id, const char *link_token, char ret_session[SESSION_TOKEN_SIZE], struct err *e)
{
    unsigned char link_hash[HASH_BYTES], hash[HASH_BYTES];
    char session[SESSION_TOKEN_SIZE], expires_at[TIME_TEXT_SIZE];
    struct session_row row = { .id_hash = { (char *)hash, sizeof(hash) }, .kind = "admin", .expires_at = expires_at };
    int r;

    identity_hash(id, link_token, link_hash);
    r = store_login_links_take(id->store, (struct slice){ (char *)link_hash, sizeof(link_hash) }, NULL);
    if (r == -ENOENT)
        return refuse_link(e);
    random_token(session, TOKEN_BYTES);
    identity_hash(id, session, hash);
    text_in(SESSION_S, expires_at);
    if (r == 0)
        r = audit_append(id, "admin", "session.open", NULL, NULL, e);
    if (r == 0)
        r = store_sessions_insert(id->store, &row, e);
    if (r == 0)
        memcpy(ret_session, session, sizeof(session));
    return r;
}

int session_close(struct identity *id, const char *session, struct err *e)
{
    unsigned char hash[HASH_BYTES];
    int r;

    identity_hash(id, session, hash);
    r = audit_append(id, "admin", "session.close", NULL, NULL, e);
    if (r < 0)
        return r;
    return store_sessions_revoke(id->store, (struct slice){ (char *)hash, sizeof(hash) }, e);
}
