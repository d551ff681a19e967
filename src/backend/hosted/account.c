#include "backend/hosted/account.h"

#include "backend/hosted/account_file.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/secret.h"
#include "net/url.h"

#include <pwd.h>
#include <unistd.h>

#define PROJECT_HOST ".supabase.co"

static char *without_slash(struct arena *a, char *address)
{
    size_t n = strlen(address);

    while (n > 0 && address[n - 1] == '/')
        n--;
    return arena_strndup(a, address, n);
}

/* As chosen: a running service may still work with another one. */
static char *chosen_project(const struct backend_place *place, struct arena *a)
{
    return without_slash(a, settings_show(place->settings, a, SETTING_BACKEND_PROJECT));
}

static char *address_of(const struct backend_place *place, enum setting_id id, struct arena *a)
{
    return without_slash(a, settings_string(place->settings, a, id));
}

/* --- the project --- */

const char *hosted_ref_of_url(struct arena *a, const char *url)
{
    struct url parsed;
    char *ref, *dot;

    if (!*url || url_parse(a, url, &parsed, NULL) < 0)
        return NULL;
    ref = arena_strdup(a, parsed.host);
    dot = strchr(ref, '.');
    if (!dot || strcmp(dot, PROJECT_HOST) != 0)
        return NULL;
    *dot = '\0';
    return account_ref_is_valid(ref) ? ref : NULL;
}

static bool is_of_project(const struct account_kept *kept, const char *url)
{
    return kept->secret && kept->secret_project && strcmp(kept->secret_project, url) == 0;
}

int hosted_project_read(struct settings *s, const char *data_dir, struct arena *a, struct hosted_project *ret,
                        struct err *e)
{
    const struct backend_place place = { .settings = s, .data_dir = data_dir };
    struct account_kept kept = { 0 };
    int r = account_file_read(data_dir, a, &kept, e);

    if (r < 0)
        return r;
    *ret = (struct hosted_project){ .url = address_of(&place, SETTING_BACKEND_PROJECT, a),
                                    .key = settings_string(s, a, SETTING_BACKEND_PROJECT_KEY) };
    if (!*ret->url || !*ret->key)
        return err_set(e, -EINVAL, "HOSTED_UNSET",
                       "No project of the hosted service is chosen: `hearth backend login`, then `hearth backend use "
                       "PROJECT` (settings backend.project and backend.project_key)");
    ret->ref = hosted_ref_of_url(a, ret->url);
    ret->secret = is_of_project(&kept, ret->url) ? kept.secret : NULL;
    return 0;
}

const char *hosted_chosen_ref(const struct backend_place *place, struct arena *a)
{
    return hosted_ref_of_url(a, chosen_project(place, a));
}

/* --- login --- */

static const char *user_name(struct arena *a)
{
    struct passwd entry, *found = NULL;
    char *text = arena_alloc(a, KIB(16));

    return getpwuid_r(geteuid(), &entry, text, KIB(16), &found) == 0 && found ? found->pw_name : "user";
}

/* By it a person finds the token in the account's list. */
static const char *token_name(struct arena *a)
{
    char host[128] = "";

    gethostname(host, sizeof(host) - 1);
    return arena_printf(a, "hearth_%.60s@%.60s_%lld", user_name(a), host, (long long)(clock_wall_ms() / 1000));
}

struct change {
    struct arena *arena;
    const char *api, *token, *secret, *project;
    struct account_profile profile;
    struct account_login login;
    int64_t n_tries; /* of the login that waits, after this one */
};

static int keep_waiting(void *arg, struct account_kept *kept, struct err *e)
{
    const struct change *c = arg;

    kept->waiting.api = c->api;
    kept->waiting.login = c->login;
    kept->waiting.until_ms = clock_wall_ms() + LIMIT_HOSTED_CODE_MS;
    kept->waiting.n_tries = 0;
    return 0;
}

int account_begin(const struct backend_place *place, struct arena *a, const char **ret_url, struct err *e)
{
    struct change c = { .api = address_of(place, SETTING_BACKEND_ACCOUNT_API, a) };
    int r = account_login_make(&c.login, e);

    if (r == 0)
        r = account_file_change(place->data_dir, a, keep_waiting, &c, e);
    if (r == 0)
        *ret_url = account_login_url(a, address_of(place, SETTING_BACKEND_ACCOUNT_PAGE, a), &c.login, token_name(a));
    secret_wipe(&c.login, sizeof(c.login));
    return r;
}

/* Counts the code, so that nobody goes on guessing with this login. */
static int take_waiting(void *arg, struct account_kept *kept, struct err *e)
{
    struct change *c = arg;
    bool is_late = kept->waiting.api && kept->waiting.until_ms < clock_wall_ms();

    if (!kept->waiting.api || is_late)
        return err_set(e, -ENOENT, "HOSTED_NO_LOGIN", "No login waits for a code%s: `hearth backend login` begins one",
                       is_late ? " any more" : "");
    c->api = kept->waiting.api;
    c->login = kept->waiting.login;
    c->n_tries = ++kept->waiting.n_tries;
    if (c->n_tries >= LIMIT_HOSTED_LOGIN_TRIES)
        kept->waiting.api = NULL;
    return 0;
}

/* The project's secret key stays: it is no part of the account. */
static int keep_account(void *arg, struct account_kept *kept, struct err *e)
{
    const struct change *c = arg;
    char now[TIME_TEXT_SIZE];

    clock_now_text(now);
    kept->api = c->api;
    kept->token = c->token;
    kept->email = c->profile.email;
    kept->username = c->profile.username;
    kept->since = arena_strdup(c->arena, now);
    kept->waiting.api = NULL;
    return 0;
}

/* A token is kept after the service has shown that it knows it. */
static int check_and_keep(const struct backend_place *place, struct change *c, const struct net_wait *wait,
                          struct arena *a, struct err *e)
{
    const struct account_api api = { c->api, c->token, wait, LIMIT_HOSTED_CALL_MS, a };
    struct slice json = { 0 };
    int r = account_call(&api, "v1/profile", (struct slice){ 0 }, &json, e);

    if (r == 0)
        r = account_profile_read(a, json, &c->profile, e);
    c->arena = a;
    return r < 0 ? r : account_file_change(place->data_dir, a, keep_account, c, e);
}

static int forget_waiting(void *arg, struct account_kept *kept, struct err *e)
{
    kept->waiting.api = NULL;
    return 0;
}

/* After an answer that breaks the rules the login ends: whoever sent it may know the session. */
static int fetch_token(const struct backend_place *place, struct change *c, const char *code,
                       const struct net_wait *wait, struct arena *a, struct err *e)
{
    const struct account_api api = { c->api, NULL, wait, LIMIT_HOSTED_LOGIN_MS, a };
    const char *path = arena_printf(a, "platform/cli/login/%s?device_code=%s", c->login.session, code);
    struct slice json = { 0 };
    int r = account_call(&api, path, (struct slice){ 0 }, &json, e);

    if (r == -ENOENT) {
        err_init(e);
        return err_set(e, -EINVAL, "HOSTED_CODE_REFUSED", "The hosted service does not know this code%s",
                       c->n_tries < LIMIT_HOSTED_LOGIN_TRIES ? "; look at the page again" : ", so the login ended");
    }
    if (r == 0)
        r = account_login_open(&c->login, code, json, a, &c->token, e);
    if (r == -EPROTO)
        (void)!account_file_change(place->data_dir, a, forget_waiting, NULL, NULL);
    return r;
}

int account_finish(const struct backend_place *place, const char *code, const struct net_wait *wait, struct arena *a,
                   struct err *e)
{
    struct change c = { 0 };
    const char *read = NULL;
    int r = account_code_read(a, code, &read, e);

    if (r == 0)
        r = account_file_change(place->data_dir, a, take_waiting, &c, e);
    if (r == 0)
        r = fetch_token(place, &c, read, wait, a, e);
    if (r == 0)
        r = check_and_keep(place, &c, wait, a, e);
    secret_wipe(&c.login, sizeof(c.login));
    return r;
}

int account_take_token(const struct backend_place *place, const char *token, const struct net_wait *wait,
                       struct arena *a, struct err *e)
{
    struct change c = { .api = address_of(place, SETTING_BACKEND_ACCOUNT_API, a), .token = token };

    if (!account_token_is_valid(token))
        return err_add_field(e, "token", "must be a personal token: sbp_ and 40 hexadecimal digits");
    return check_and_keep(place, &c, wait, a, e);
}

static int forget(void *arg, struct account_kept *kept, struct err *e)
{
    *kept = (struct account_kept){ 0 };
    return 0;
}

int account_forget(const struct backend_place *place, struct arena *a, struct err *e)
{
    return account_file_change(place->data_dir, a, forget, NULL, e);
}

int account_status_read(const struct backend_place *place, struct arena *a, struct account_status *ret, struct err *e)
{
    const char *url = chosen_project(place, a);
    struct account_kept kept = { 0 };
    int r = account_file_read(place->data_dir, a, &kept, e);

    if (r < 0)
        return r;
    *ret = (struct account_status){ .is_logged_in = kept.token != NULL,
                                    .is_waiting = kept.waiting.api && kept.waiting.until_ms >= clock_wall_ms(),
                                    .has_secret = is_of_project(&kept, url),
                                    .email = kept.email,
                                    .username = kept.username,
                                    .since = kept.since,
                                    .url = url,
                                    .ref = hosted_ref_of_url(a, url) };
    secret_wipe(&kept.waiting.login, sizeof(kept.waiting.login));
    return 0;
}

/* --- projects --- */

int account_api_open(const struct backend_place *place, const struct net_wait *wait, struct arena *a,
                     struct account_api *ret, struct err *e)
{
    const char *address = address_of(place, SETTING_BACKEND_ACCOUNT_API, a);
    struct account_kept kept = { 0 };
    int r = account_file_read(place->data_dir, a, &kept, e);

    if (r < 0)
        return r;
    if (!kept.token || !kept.api || strcmp(kept.api, address) != 0)
        return err_set(e, -EACCES, "HOSTED_LOGIN_REQUIRED", "Nobody is logged in at %s: `hearth backend login`",
                       address);
    *ret = (struct account_api){ address, kept.token, wait, LIMIT_HOSTED_CALL_MS, a };
    return 0;
}

static int list(const struct account_api *api, struct account_projects *ret, struct err *e)
{
    struct slice json = { 0 };
    int r = account_call(api, "v1/projects", (struct slice){ 0 }, &json, e);

    return r < 0 ? r : account_projects_read(api->arena, json, ret, e);
}

int account_projects(const struct backend_place *place, const struct net_wait *wait, struct arena *a,
                     struct account_projects *ret, struct err *e)
{
    struct account_api api = { 0 };
    int r = account_api_open(place, wait, a, &api, e);

    return r < 0 ? r : list(&api, ret, e);
}

/* NULL with e filled: there is none, or more than one of the name. */
static const struct account_project *find_project(const struct account_projects *projects, const char *which,
                                                  struct err *e)
{
    const struct account_project *found = NULL;
    size_t n = 0;

    for (size_t i = 0; i < projects->n; i++) {
        if (strcmp(projects->items[i].ref, which) == 0)
            return &projects->items[i];
        if (strcmp(projects->items[i].name, which) == 0) {
            found = &projects->items[i];
            n++;
        }
    }
    if (n > 1)
        (void)!err_set(e, -ENOENT, "PROJECT_NOT_FOUND", "%zu projects have the name %.100s: say its ref", n, which);
    else if (n == 0)
        (void)!err_set(e, -ENOENT, "PROJECT_NOT_FOUND", "The account has no project %.100s", which);
    return n == 1 ? found : NULL;
}

/* Whoever may not see secret keys gets the others. */
static int fetch_keys(const struct account_api *api, const char *ref, bool reveals, struct account_keys *ret,
                      struct err *e)
{
    const char *path = arena_printf(api->arena, "v1/projects/%s/api-keys%s", ref, reveals ? "?reveal=true" : "");
    struct slice json = { 0 };
    int r = account_call(api, path, (struct slice){ 0 }, &json, e);

    if (r == -EPERM && reveals) {
        err_init(e);
        return fetch_keys(api, ref, false, ret, e);
    }
    if (r == 0)
        r = account_keys_read(api->arena, json, ret, e);
    if (r == 0 && !ret->publishable)
        return err_set(e, -EINVAL, "HOSTED_NO_KEY",
                       "The project has neither a publishable nor a legacy anon key: make one in its settings");
    return r;
}

int account_choose(const struct backend_place *place, const char *which, bool leaves_secret,
                   const struct net_wait *wait, struct arena *a, struct account_choice *ret, struct err *e)
{
    struct account_projects projects = { 0 };
    const struct account_project *project;
    struct account_keys keys = { 0 };
    struct account_api api = { 0 };
    int r = account_api_open(place, wait, a, &api, e);

    if (r == 0)
        r = list(&api, &projects, e);
    if (r < 0)
        return r;
    project = find_project(&projects, which, e);
    r = project ? fetch_keys(&api, project->ref, !leaves_secret, &keys, e) : -ENOENT;
    if (r < 0)
        return r;
    if (leaves_secret)
        keys.secret = NULL;
    *ret = (struct account_choice){ .url = arena_printf(a, "https://%s" PROJECT_HOST, project->ref),
                                    .ref = project->ref,
                                    .name = project->name,
                                    .key = keys.publishable,
                                    .is_legacy = keys.is_legacy,
                                    .has_secret = keys.secret != NULL };
    return account_keep_secret(place, ret->url, keys.secret, a, e);
}

static int change_secret(void *arg, struct account_kept *kept, struct err *e)
{
    const struct change *c = arg;

    kept->secret = c->secret;
    kept->secret_project = c->secret ? c->project : NULL;
    return 0;
}

int account_keep_secret(const struct backend_place *place, const char *url, const char *secret, struct arena *a,
                        struct err *e)
{
    struct change c = { .secret = secret, .project = without_slash(a, arena_strdup(a, url)) };

    if (secret && !account_key_is_valid(secret))
        return err_add_field(e, "secret", "must be visible characters without blanks");
    return account_file_change(place->data_dir, a, change_secret, &c, e);
}
