/* Logins in memory, and sealed in the store beside the server's definition. */
#include "base/json_write.h"
#include "base/secret.h"
#include "identity/seal.h"
#include "mcp/oauth_private.h"
#include "store/tables/mcp_servers.h"

#include <stdlib.h>
#include <string.h>

enum { GRANT_BYTES = 256 << 10 };

static const struct {
    const char *name;
    size_t offset;
} texts[] = {
    { "url", offsetof(struct mcp_grant, url) },
    { "resource", offsetof(struct mcp_grant, resource) },
    { "issuer", offsetof(struct mcp_grant, issuer) },
    { "token_endpoint", offsetof(struct mcp_grant, token_endpoint) },
    { "revocation_endpoint", offsetof(struct mcp_grant, revocation_endpoint) },
    { "client_id", offsetof(struct mcp_grant, client_id) },
    { "client_secret", offsetof(struct mcp_grant, client_secret) },
    { "redirect_uri", offsetof(struct mcp_grant, redirect_uri) },
    { "access_token", offsetof(struct mcp_grant, access_token) },
    { "refresh_token", offsetof(struct mcp_grant, refresh_token) },
    { "scope", offsetof(struct mcp_grant, scope) },
    { "id_token", offsetof(struct mcp_grant, id_token) },
    { "subject", offsetof(struct mcp_grant, subject) },
}, numbers[] = {
    { "auth_method", offsetof(struct mcp_grant, auth_method) },
    { "signing_alg", offsetof(struct mcp_grant, signing_alg) },
    { "secret_expires_s", offsetof(struct mcp_grant, secret_expires_s) },
    { "expires_ms", offsetof(struct mcp_grant, expires_ms) },
};

static const char **text_at(struct mcp_grant *grant, size_t i)
{
    return (const char **)(void *)((char *)grant + texts[i].offset);
}

static int64_t *number_at(struct mcp_grant *grant, size_t i)
{
    return (int64_t *)(void *)((char *)grant + numbers[i].offset);
}

static void read_members(struct json_value v, struct mcp_grant *ret)
{
    *ret = (struct mcp_grant){ 0 };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        *text_at(ret, i) = json_cstr(json_get(v, texts[i].name));
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        *number_at(ret, i) = json_int(json_get(v, numbers[i].name));
}

int mcp_grant_read(struct arena *a, struct slice json, struct mcp_grant *ret, struct err *e)
{
    struct json_value v, of_identity;
    int r = json_parse(a, json, &v, e);

    if (r < 0)
        return r;
    read_members(v, ret);
    of_identity = json_get(v, "identity");
    if (json_type(of_identity) == JSON_OBJECT) {
        struct mcp_grant *identity = ARENA_NEW(a, struct mcp_grant);

        read_members(of_identity, identity);
        ret->identity = identity;
    }
    return 0;
}

static void write_members(struct json_writer *w, const struct mcp_grant *grant)
{
    struct mcp_grant copy = *grant;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (*text_at(&copy, i))
            json_add_string(w, texts[i].name, *text_at(&copy, i));
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        json_add_int(w, numbers[i].name, *number_at(&copy, i));
}

void mcp_grant_write(struct buf *out, const struct mcp_grant *grant)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    write_members(&w, grant);
    if (grant->identity) {
        json_begin_object_as(&w, "identity");
        write_members(&w, grant->identity);
        json_end(&w);
    }
    json_end(&w);
}

static void copy_members(struct arena *a, const struct mcp_grant *from, struct mcp_grant *ret)
{
    *ret = *from;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        *text_at(ret, i) = arena_strdup(a, *text_at(ret, i));
}

void mcp_grant_copy(struct arena *a, const struct mcp_grant *from, struct mcp_grant *ret)
{
    struct mcp_grant *identity = from->identity ? ARENA_NEW(a, struct mcp_grant) : NULL;

    copy_members(a, from, ret);
    if (identity)
        copy_members(a, from->identity, identity);
    ret->identity = identity;
}

void mcp_target_copy(struct arena *a, const struct mcp_oauth_target *from, struct mcp_oauth_target *ret)
{
    *ret = (struct mcp_oauth_target){ .server = arena_strdup(a, from->server),
                                      .url = arena_strdup(a, from->url),
                                      .client_id = arena_strdup(a, from->client_id),
                                      .client_secret = arena_strdup(a, from->client_secret),
                                      .client_metadata_url = arena_strdup(a, from->client_metadata_url),
                                      .scope = arena_strdup(a, from->scope),
                                      .private_key = arena_strdup(a, from->private_key),
                                      .key_id = arena_strdup(a, from->key_id),
                                      .way = from->way,
                                      .identity_provider = arena_strdup(a, from->identity_provider),
                                      .identity_client_id = arena_strdup(a, from->identity_client_id),
                                      .identity_client_secret = arena_strdup(a, from->identity_client_secret) };
}

static void copy_wanted(struct arena *a, const struct mcp_challenge *from, struct mcp_challenge *ret)
{
    *ret = (struct mcp_challenge){ arena_strdup(a, from->resource_metadata), arena_strdup(a, from->scope),
                                   arena_strdup(a, from->error) };
}

/* ---- the store ---- */

/* A login that cannot be opened any more counts as none. */
static void load(struct mcp_oauth *o, const char *server, struct arena *a, struct mcp_grant *ret)
{
    struct mcp_server_row row;
    struct slice json;

    *ret = (struct mcp_grant){ 0 };
    if (!o->config.store || store_mcp_servers_get(o->config.store, a, server, &row, NULL) < 0 ||
        row.authorization.n == 0)
        return;
    if (seal_open(o->config.key, row.authorization, a, &json, NULL) < 0 || mcp_grant_read(a, json, ret, NULL) < 0)
        *ret = (struct mcp_grant){ 0 };
}

static int save(struct mcp_oauth *o, const char *server, const struct mcp_grant *grant, struct err *e)
{
    struct buf plain, sealed;
    int r;

    if (!o->config.store)
        return 0;
    buf_init(&plain, GRANT_BYTES);
    buf_init(&sealed, GRANT_BYTES + 256);
    mcp_grant_write(&plain, grant);
    r = buf_check(&plain, e);
    if (r == 0 && grant->url)
        seal_bytes(o->config.key, buf_slice(&plain), &sealed);
    if (r == 0)
        r = store_mcp_servers_set_authorization(o->config.store, server, buf_slice(&sealed), e);
    if (plain.p)
        secret_wipe(plain.p, plain.n);
    buf_clear(&plain);
    buf_clear(&sealed);
    return r;
}

/* ---- entries ---- */

static struct mcp_oauth_entry *find_entry(struct mcp_oauth *o, const char *server)
{
    struct mcp_oauth_entry *entry = o->entries;

    while (entry && strcmp(entry->server, server) != 0)
        entry = entry->next;
    return entry;
}

static struct mcp_oauth_entry *new_entry(struct mcp_oauth *o, const char *server)
{
    struct mcp_oauth_entry *entry = xcalloc(1, sizeof(*entry));

    entry->oauth = o;
    entry->server = xstrdup(server);
    pthread_mutex_init(&entry->busy, NULL);
    return entry;
}

static void take_out(struct mcp_oauth *o, const struct mcp_oauth_entry *entry)
{
    struct mcp_oauth_entry **at = &o->entries;

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
}

/* Nobody uses it, and its tokens lie in the store. */
static bool is_idle(const struct mcp_oauth *o, const struct mcp_oauth_entry *entry)
{
    return entry->n_users == 0 && (o->config.store || !entry->grant.access_token);
}

/* Makes a place: the idle one that was unused for longest goes. */
static bool make_room(struct mcp_oauth *o)
{
    struct mcp_oauth_entry *oldest = NULL;
    size_t n = 0;

    for (struct mcp_oauth_entry *each = o->entries; each; each = each->next, n++)
        if (is_idle(o, each))
            oldest = each;
    if (n < LIMIT_MCP_LOGIN_ENTRIES)
        return true;
    if (!oldest)
        return false;
    take_out(o, oldest);
    mcp_entry_free(oldest);
    return true;
}

/* The entry is the first of the list now; NULL: there is no place. The caller holds the lock. */
static struct mcp_oauth_entry *use_entry(struct mcp_oauth *o, const char *server)
{
    struct mcp_oauth_entry *entry = find_entry(o, server);

    if (entry)
        take_out(o, entry);
    else if (make_room(o))
        entry = new_entry(o, server);
    if (!entry)
        return NULL;
    entry->next = o->entries;
    o->entries = entry;
    entry->n_users++;
    return entry;
}

void mcp_entry_release(struct mcp_oauth_entry *entry)
{
    if (!entry)
        return;
    pthread_mutex_lock(&entry->oauth->lock);
    entry->n_users--;
    pthread_mutex_unlock(&entry->oauth->lock);
}

static void set_target(struct mcp_oauth_entry *entry, const struct mcp_oauth_target *t)
{
    struct arena *old = entry->target_arena;

    entry->target_arena = arena_new_sized(512);
    mcp_target_copy(entry->target_arena, t, &entry->target);
    arena_free(old);
}

static void set_grant(struct mcp_oauth_entry *entry, const struct mcp_grant *grant)
{
    struct arena *old = entry->grant_arena;

    entry->grant_arena = arena_new_sized(2048);
    mcp_grant_copy(entry->grant_arena, grant, &entry->grant);
    arena_free(old);
}

int mcp_entry_of(struct mcp_oauth *o, const char *server, const struct mcp_oauth_target *t,
                 struct mcp_oauth_entry **ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct mcp_oauth_entry *entry;
    struct mcp_grant stored;

    load(o, server, a, &stored);
    pthread_mutex_lock(&o->lock);
    entry = use_entry(o, server);
    if (entry && t)
        set_target(entry, t);
    if (entry && !entry->grant_arena)
        set_grant(entry, &stored);
    pthread_mutex_unlock(&o->lock);
    if (!entry)
        return err_set(e, -EDQUOT, "TOO_MANY_SERVERS", "At most %d MCP servers can be logged in at, at the same time.",
                       LIMIT_MCP_LOGIN_ENTRIES);
    *ret = entry;
    return 0;
}

void mcp_oauth_reload(struct mcp_oauth *o, const char *server)
{
    struct mcp_oauth_entry *entry;

    pthread_mutex_lock(&o->lock);
    entry = find_entry(o, server);
    if (entry) {
        entry->grant_arena = arena_free(entry->grant_arena);
        entry->grant = (struct mcp_grant){ 0 };
    }
    pthread_mutex_unlock(&o->lock);
}

void mcp_entry_grant(struct mcp_oauth_entry *entry, struct arena *a, struct mcp_grant *ret)
{
    pthread_mutex_lock(&entry->oauth->lock);
    if (entry->target.url && entry->grant.url && strcmp(entry->target.url, entry->grant.url) != 0)
        *ret = (struct mcp_grant){ 0 };
    else
        mcp_grant_copy(a, &entry->grant, ret);
    pthread_mutex_unlock(&entry->oauth->lock);
}

void mcp_entry_target(struct mcp_oauth_entry *entry, struct arena *a, struct mcp_oauth_target *ret)
{
    pthread_mutex_lock(&entry->oauth->lock);
    mcp_target_copy(a, &entry->target, ret);
    pthread_mutex_unlock(&entry->oauth->lock);
}

void mcp_entry_wanted(struct mcp_oauth_entry *entry, struct arena *a, struct mcp_challenge *ret)
{
    pthread_mutex_lock(&entry->oauth->lock);
    copy_wanted(a, &entry->wanted, ret);
    pthread_mutex_unlock(&entry->oauth->lock);
}

void mcp_entry_want(struct mcp_oauth_entry *entry, const struct mcp_challenge *wanted)
{
    struct arena *old;

    pthread_mutex_lock(&entry->oauth->lock);
    old = entry->wanted_arena;
    entry->wanted_arena = wanted ? arena_new_sized(512) : NULL;
    entry->wanted = (struct mcp_challenge){ 0 };
    if (wanted)
        copy_wanted(entry->wanted_arena, wanted, &entry->wanted);
    pthread_mutex_unlock(&entry->oauth->lock);
    arena_free(old);
}

int mcp_entry_keep(struct mcp_oauth_entry *entry, const struct mcp_grant *grant, struct err *e)
{
    int r = save(entry->oauth, entry->server, grant, e);

    if (r < 0)
        return r;
    pthread_mutex_lock(&entry->oauth->lock);
    set_grant(entry, grant);
    pthread_mutex_unlock(&entry->oauth->lock);
    return 0;
}

void mcp_entry_free(struct mcp_oauth_entry *entry)
{
    arena_free(entry->target_arena);
    arena_free(entry->grant_arena);
    arena_free(entry->wanted_arena);
    pthread_mutex_destroy(&entry->busy);
    free(entry->server);
    free(entry);
}
