#include "llm/stored.h"

#include "base/log.h"

enum { SEALED_BYTES = 1 << 20 };

/* ---- the sealed part: {base_url, api_key, use, headers: {name: value}} ---- */

static void write_secrets(const struct llm_account *account, struct buf *out)
{
    struct json_writer w;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "base_url", account->base_url);
    json_add_string(&w, "api_key", account->api_key);
    json_add_int(&w, "use", account->use);
    json_begin_object_as(&w, "headers");
    for (size_t i = 0; i < account->n_headers; i++)
        json_add_string(&w, account->headers[i].name, account->headers[i].value);
    json_end(&w);
    json_end(&w);
}

static void seal_account(const struct llm_vault *v, const struct llm_account *account, struct buf *sealed)
{
    struct buf plain;

    buf_init(&plain, SEALED_BYTES);
    write_secrets(account, &plain);
    identity_seal(v->identity, buf_slice(&plain), sealed);
    buf_clear(&plain);
}

static void read_headers(struct json_value from, struct arena *a, struct llm_account *ret)
{
    struct http_call_header *headers = arena_array(a, json_length(from) + 1, sizeof(*headers));
    struct json_iter it = json_iter(from);
    struct json_value value;
    struct slice name;

    while (json_next(&it, &name, &value))
        headers[ret->n_headers++] = (struct http_call_header){ arena_slicedup(a, name), json_cstr(value) };
    ret->headers = headers;
}

static int read_models(const char *text, struct arena *a, struct llm_account *ret, struct err *e)
{
    struct json_value list = { 0 }, item;
    const char **models;
    int r = json_parse(a, slice_of(text), &list, e);

    if (r < 0)
        return r;
    models = arena_array(a, json_length(list) + 1, sizeof(*models));
    for (struct json_iter it = json_iter(list); json_next(&it, NULL, &item);)
        if (json_cstr(item))
            models[ret->n_models++] = json_cstr(item);
    ret->models = models;
    return 0;
}

int llm_stored_open(const struct llm_vault *v, const struct provider_account_row *row, struct arena *a,
                    struct llm_account *ret, struct err *e)
{
    struct llm_account account = { .source = LLM_STORED,
                                   .name = row->name,
                                   .preset = llm_preset_find(row->preset),
                                   .model = row->model,
                                   .embed_model = row->embed_model };
    struct json_value secrets = { 0 };
    struct slice plain = { 0 };
    int64_t use;
    int r = 0;

    if (!account.preset)
        r = err_set(e, -EINVAL, "BAD_ACCOUNT", "%s is of a kind that this version does not know: %s.", row->name,
                    row->preset);
    if (r == 0)
        r = identity_unseal(v->identity, row->sealed, a, &plain, e);
    if (r == 0)
        r = json_parse(a, plain, &secrets, e);
    if (r == 0)
        r = read_models(row->models, a, &account, e);
    if (r < 0)
        return r;
    account.base_url = json_cstr(json_get(secrets, "base_url"));
    account.api_key = json_cstr(json_get(secrets, "api_key"));
    use = json_int(json_get(secrets, "use"));
    if (use > LLM_USE_USUAL && use <= LLM_USE_ALL)
        account.use = (enum llm_use)use; /* absent from what older versions stored */
    read_headers(json_get(secrets, "headers"), a, &account);
    *ret = account;
    return 0;
}

/* ---- changes ---- */

static int store_account(const struct llm_vault *v, const struct llm_account *account, struct err *e)
{
    struct provider_account_row row = { .name = account->name,
                                        .preset = account->preset->id,
                                        .model = account->model,
                                        .embed_model = account->embed_model };
    struct buf sealed, models;
    struct json_writer w;
    int r;

    buf_init(&sealed, 2 * SEALED_BYTES);
    buf_init(&models, SEALED_BYTES);
    json_write_init(&w, &models);
    json_add_strings(&w, NULL, account->models, account->n_models);
    seal_account(v, account, &sealed);
    row.sealed = buf_slice(&sealed);
    row.models = buf_str(&models);
    r = sealed.overflowed || models.overflowed
            ? err_set(e, -EINVAL, "BAD_ACCOUNT", "%s is larger than can be kept.", account->name)
            : store_provider_accounts_put(v->store, &row, e);
    buf_clear(&sealed);
    buf_clear(&models);
    return r;
}

int llm_stored_put(const struct llm_vault *v, const struct llm_account *account, struct err *e)
{
    int r = llm_account_check(account, e);

    if (r == 0)
        r = store_account(v, account, e);
    return r < 0 ? r : llm_accounts_put(v->accounts, account, e);
}

int llm_stored_remove(const struct llm_vault *v, const char *name, struct err *e)
{
    int r = store_provider_accounts_delete(v->store, name, e);

    if (r == 0)
        llm_accounts_remove(v->accounts, LLM_STORED, name);
    return r;
}

int llm_stored_load(const struct llm_vault *v, size_t *ret_n_unusable, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct provider_account_row *rows = NULL;
    size_t n = 0, n_unusable = 0;
    int r = store_provider_accounts_list(v->store, a, &rows, &n, e);

    for (size_t i = 0; r == 0 && i < n; i++) {
        struct llm_account account;
        struct err why = { 0 };
        int r_one = llm_stored_open(v, &rows[i], a, &account, &why);

        if (r_one == 0)
            r_one = llm_accounts_put(v->accounts, &account, &why);
        if (r_one < 0)
            log_debug("llm", NULL, "the stored provider %s is left out: %s", LOG_Q(rows[i].name), LOG_Q(why.text));
        n_unusable += r_one < 0;
    }
    if (r == 0)
        *ret_n_unusable = n_unusable;
    return r;
}
