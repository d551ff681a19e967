#include "identity/sessions.h"

#include "base/clock.h"
#include "identity/audit.h"
#include "identity/claim.h"
#include "identity/state.h"
#include "store/tables/sessions.h"

enum { TOKEN_BYTES = 32 };

static struct slice hash_slice(const unsigned char hash[HASH_BYTES])
{
    return (struct slice){ (const char *)hash, HASH_BYTES };
}

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
    r = store_login_links_insert(id->store, hash_slice(hash), expires_at, e);
    if (r == 0)
        memcpy(ret_token, token, sizeof(token));
    return r;
}

static int refuse_link(struct err *e)
{
    return err_set(e, -EACCES, "LINK_INVALID",
                   "This link has been used or has expired; `hearth open` prints a new one.");
}

static int session_new(struct identity *id, struct session_tokens *ret, struct err *e)
{
    unsigned char cookie_hash[HASH_BYTES] = { 0 }, proof_hash[HASH_BYTES] = { 0 };
    struct session_row row = { .id_hash = hash_slice(cookie_hash),
                               .proof_hash = hash_slice(proof_hash),
                               .kind = "admin" };
    struct session_tokens fresh = { 0 };
    char expires_at[TIME_TEXT_SIZE];
    int r;

    random_token(fresh.cookie, TOKEN_BYTES);
    random_token(fresh.proof, TOKEN_BYTES);
    identity_hash(id, fresh.cookie, cookie_hash);
    identity_hash(id, fresh.proof, proof_hash);
    text_in(SESSION_S, expires_at);
    row.expires_at = expires_at;
    r = audit_append(id, "admin", "session.open", NULL, NULL, e);
    if (r == 0)
        r = store_sessions_insert(id->store, &row, e);
    if (r == 0)
        *ret = fresh;
    return r;
}

int session_open(struct identity *id, const char *link_token, struct session_tokens *ret, struct err *e)
{
    unsigned char link_hash[HASH_BYTES];
    int r;

    identity_hash(id, link_token, link_hash);
    r = store_login_links_take(id->store, hash_slice(link_hash), NULL);
    if (r == -ENOENT)
        return refuse_link(e);
    return r < 0 ? err_set(e, r, err_code_of(r, "STORE_ERROR"), "The link could not be looked up.")
                 : session_new(id, ret, e);
}

bool session_find(struct identity *id, const char *cookie, const char *proof, struct arena *a, const char **ret)
{
    unsigned char cookie_hash[HASH_BYTES], proof_hash[HASH_BYTES];
    struct session_row row;
    char *name;

    if (!cookie || !*cookie || !proof || !*proof)
        return false;
    identity_hash(id, cookie, cookie_hash);
    identity_hash(id, proof, proof_hash);
    if (store_sessions_find(id->store, a, hash_slice(cookie_hash), &row, NULL) < 0)
        return false;
    if (row.id_hash.n != HASH_BYTES || row.proof_hash.n != HASH_BYTES)
        return false;
    if (!hash_equal(row.id_hash.p, cookie_hash, HASH_BYTES) || !hash_equal(row.proof_hash.p, proof_hash, HASH_BYTES))
        return false;
    name = arena_alloc(a, HASH_HEX_SIZE);
    hash_hex(cookie_hash, HASH_BYTES, name);
    *ret = name;
    return true;
}

int session_close(struct identity *id, const struct caller *caller, struct err *e)
{
    unsigned char hash[HASH_BYTES];
    int r;

    if (!caller->session)
        return 0;
    hash_unhex(caller->session, hash);
    confirmations_forget(&id->confirmations, caller->session);
    r = audit_append(id, caller->actor, "session.close", NULL, NULL, e);
    if (r == 0)
        r = store_sessions_revoke(id->store, hash_slice(hash), e);
    identity_forget_sessions(id);
    return r;
}

/* ---- confirmations ---- */

int session_need_confirmation(struct identity *id, const struct caller *caller, const char *what, struct err *e)
{
    char code[CONFIRM_CODE_SIZE], command[64];

    if (!caller->session || confirmations_left_ms(&id->confirmations, caller->session, clock_mono_ms()) > 0)
        return 0;
    confirmations_request(&id->confirmations, caller->session, what, clock_mono_ms(), code);
    snprintf(command, sizeof(command), "hearth confirm %s", code);
    err_set(
        e, -EPERM, "CONFIRMATION_REQUIRED",
        "This changes what runs on this machine, so a browser needs a fresh confirmation: run `%s` in a terminal, then repeat the request within "
        "%d minutes.",
        command, CONFIRM_S / 60);
    err_add_extra(e, "confirm", command);
    return -EPERM;
}

int session_confirm(struct identity *id, const struct caller *caller, const char *code, struct arena *a,
                    const char **ret_what, struct err *e)
{
    char what[CONFIRM_WHAT_SIZE];
    int r;

    if (caller->session)
        return err_set(e, -EPERM, "TERMINAL_REQUIRED",
                       "A browser cannot confirm what a browser asks for: run `hearth confirm` in a terminal.");
    r = audit_append(id, caller->actor, "session.confirm", NULL, NULL, e);
    if (r < 0)
        return r;
    if (!confirmations_give(&id->confirmations, code, clock_mono_ms(), what))
        return err_set(e, -ENOENT, "CONFIRMATION_NOT_FOUND",
                       "No browser waits for this code: it was used, is older than five minutes, or is another one.");
    *ret_what = arena_strdup(a, what);
    return 0;
}

int64_t session_confirmed_for_s(struct identity *id, const struct caller *caller)
{
    return caller->session ? confirmations_left_ms(&id->confirmations, caller->session, clock_mono_ms()) / 1000 : 0;
}
