#include "api/embed_texts.h"

#include "api/api.h"
#include "api/metered.h"
#include "api/provider_choice.h"
#include "base/clock.h"
#include "base/limits.h"
#include "embed/lexical.h"
#include "llm/attempts.h"
#include "llm/plan.h"

enum { BYTES_A_TOKEN = 4 };

/* ---- what is asked ---- */

static int check_text(struct json_value value, const char *path, struct err *e)
{
    struct slice text = json_string(value);

    if (json_type(value) != JSON_STRING)
        return err_add_field(e, path, "must be a string");
    if (text.n == 0)
        return err_add_field(e, path, "must not be empty");
    if (text.n > LIMIT_EMBED_TEXT)
        return err_add_field(e, path, "must be at most %d bytes", LIMIT_EMBED_TEXT);
    return 0;
}

int embed_check_input(struct json_value input, struct err *e)
{
    struct json_value item;
    struct json_iter it = json_iter(input);
    size_t n = json_length(input);
    char path[32];
    int r = 0;

    if (json_is_absent(input))
        return 0;                       /* told already */
    if (json_type(input) == JSON_STRING)
        return check_text(input, "input", e);
    if (json_type(input) != JSON_ARRAY)
        return err_add_field(e, "input", "must be a string or an array of strings");
    if (n < 1 || n > LIMIT_EMBED_TEXTS)
        return err_add_field(e, "input", "must have 1 to %d texts", LIMIT_EMBED_TEXTS);
    for (size_t i = 0; r == 0 && json_next(&it, NULL, &item); i++) {
        snprintf(path, sizeof(path), "input[%zu]", i);
        r = check_text(item, path, e);
    }
    return r;
}

struct embed_input embed_read_input(struct arena *a, struct json_value input)
{
    struct slice *texts = arena_array(a, MAX(json_length(input), (size_t)1), sizeof(*texts));
    struct json_iter it = json_iter(input);
    struct json_value item;
    size_t n = 0;

    if (json_type(input) == JSON_STRING)
        texts[n++] = json_string(input);
    while (json_next(&it, NULL, &item))
        texts[n++] = json_string(item);
    return (struct embed_input){ texts, n };
}

/* ---- the built-in provider ---- */

static int embed_builtin(struct request *req, const struct embed_wish *wish, const char *model, struct embed_made *ret, struct err *e)
{
    float *items;

    if (model && strcmp(model, LEXICAL_MODEL) != 0)
        return err_set(e, -EINVAL, "INVALID_MODEL", "The provider " LEXICAL_PROVIDER " has one model, " LEXICAL_MODEL ".");
    if (wish->n_dimensions && wish->n_dimensions != LEXICAL_DIMENSIONS)
        return err_add_field(e, "dimensions", "must be %d or absent: the model " LEXICAL_MODEL " has no others", LEXICAL_DIMENSIONS);
    items = arena_array(req->arena, wish->n * LEXICAL_DIMENSIONS, sizeof(*items));
    for (size_t i = 0; i < wish->n; i++)
        lexical_embed(wish->texts[i], items + i * LEXICAL_DIMENSIONS);
    *ret = (struct embed_made){ items, wish->n, LEXICAL_DIMENSIONS, LEXICAL_PROVIDER, LEXICAL_MODEL, 0, false };
    return 0;
}

/* ---- providers over HTTP ---- */

static int refuse(const void *arg, int status, struct slice body, struct err *e)
{
    return llm_refusal(arg, status, body, e);
}

const char *embed_own_model(const struct llm_account *acc)
{
    return acc->embed_model && *acc->embed_model ? acc->embed_model : acc->preset->default_embed_model;
}

static void make_headers(struct arena *a, const struct llm_account *acc, struct embed_account *ret)
{
    struct http_ask_header *headers = arena_array(a, acc->n_headers + 2, sizeof(*headers));
    const struct llm_preset *preset = acc->preset;
    size_t n = 0;

    headers[n++] = (struct http_ask_header){ "content-type", "application/json" };
    if (acc->api_key && embed_is_deployment(ret->service, ret->base_url))
        headers[n++] = (struct http_ask_header){ ret->service->deployment_key, acc->api_key };
    else if (acc->api_key && preset->auth_header)
        headers[n++] = (struct http_ask_header){ preset->auth_header, arena_printf(a, "%s%s", preset->auth_prefix ? preset->auth_prefix : "", acc->api_key) };
    for (size_t i = 0; i < acc->n_headers; i++)
        headers[n++] = acc->headers[i];
    ret->headers = headers;
    ret->n_headers = n;
}

static void make_account(struct request *req, const struct llm_account *acc, struct embed_account *ret)
{
    struct settings *s = req->api->settings;

    *ret = (struct embed_account){
        .name = acc->name, .service = embed_service_of(acc->preset->id), .base_url = acc->base_url,
        .n_retries = (unsigned)settings_int(s, SETTING_LLM_RETRIES), .connect_ms = settings_ms(s, SETTING_LLM_CONNECT_S),
        .first_byte_ms = settings_ms(s, SETTING_LLM_FIRST_BYTE_S), .idle_ms = settings_ms(s, SETTING_LLM_IDLE_S),
        .total_ms = settings_ms(s, SETTING_LLM_TOTAL_S), .retry_after_max_ms = settings_ms(s, SETTING_LLM_RETRY_AFTER_MAX_S),
        .refuse = refuse, .retry_after_ms = llm_retry_after_ms, .arg = acc,
    };
    make_headers(req->arena, acc, ret);
}

/* What makes an account rest (llm/accounts.h); one that refuses does answer. */
static bool is_outage(int r)
{
    return r < 0 && r != -EINVAL && r != -EIO && r != -EBUSY && r != -EPERM && r != -ECANCELED;
}

/* A model that this service runs itself is started for it. */
static int ready_account(struct request *req, struct llm_seat *seat, const struct embed_ask *ask, int64_t ready_by_ms, struct embed_account *ret,
                         struct err *e)
{
    const struct llamacpp_wish wish = { .model = ask->model, .is_for_vectors = true, .may_wait = true, .ready_by_ms = ready_by_ms,
                                        .is_gone = ask->is_gone };
    const struct llm_account *acc = NULL;
    int r = llm_seat_ready(seat, &wish, req->arena, &acc, e);

    if (r == 0)
        make_account(req, acc, ret);
    return r;
}

/* made: whom it came to, also when that failed. */
static int ask_seat(struct request *req, struct llm_seat *seat, const struct embed_ask *ask, struct embed_made *made, struct embed_vectors *ret,
                    struct err *e)
{
    struct embed_account account = { 0 };
    int r;

    if (!llm_seat_may_ask(seat))
        return llm_seat_tell_rest(seat, llm_seat_rest_ms(seat), e);
    r = ready_account(req, seat, ask, 0, &account, e);
    if (r < 0)
        return r;
    made->provider = seat->account.name;
    made->model = ask->model;
    r = embed_remote(&account, ask, req->arena, ret, e);
    if (is_outage(r))
        llm_seat_failed(seat, (unsigned)settings_int(req->api->settings, SETTING_LLM_REST_AFTER));
    else if (r != -ECANCELED)
        llm_seat_succeeded(seat);
    if (r < 0)
        metered_retry_after(req->exchange, e, ret->retry_after_ms);
    return r < 0 ? llm_blame(&seat->account, r, e) : 0;
}

static int64_t at_most(int64_t ms, int64_t most_ms)
{
    most_ms = MAX(most_ms, (int64_t)1);
    return ms > 0 ? MIN(ms, most_ms) : most_ms;
}

int embed_try(struct request *req, struct llm_seat *seat, const char *model, const struct embed_limits *most, struct embed_vectors *ret, struct err *e)
{
    const struct slice text = slice_of("OK");
    const struct embed_ask ask = { .texts = &text, .n = 1, .model = model, .is_gone = &req->exchange->is_gone };
    int64_t began_ms = clock_mono_ms(), left_ms;
    struct embed_account account = { 0 };
    int r = ready_account(req, seat, &ask, began_ms + most->load_ms, &account, e);

    if (r < 0)
        return r;
    left_ms = began_ms + most->total_ms - clock_mono_ms();
    account.n_retries = 0;
    account.connect_ms = at_most(account.connect_ms, most->connect_ms);
    account.first_byte_ms = at_most(account.first_byte_ms, left_ms);
    account.total_ms = at_most(account.total_ms, left_ms);
    r = embed_remote(&account, &ask, req->arena, ret, e);
    return r < 0 ? llm_blame(&seat->account, r, e) : 0;
}

static int find_seat(struct request *req, const char *provider, struct llm_seat **ret, struct err *e)
{
    struct llm_accounts *accounts = req->api->llm_accounts;
    struct llm_seat *seat = llm_accounts_find(accounts, req->arena, provider), **seats;
    const char *names = LEXICAL_PROVIDER;
    size_t n;

    if (seat && seat->account.preset->can_embed) {
        *ret = seat;
        return 0;
    }
    seats = llm_accounts_list(accounts, req->arena, &n);
    for (size_t i = 0; i < n; i++)
        if (seats[i]->account.preset->can_embed)
            names = arena_printf(req->arena, "%s, %s", names, seats[i]->account.name);
    if (seat) {
        err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "%.80s has chats but no embeddings; embedding providers are: %.300s.", provider, names);
        return -EINVAL;
    }
    err_set(e, -EINVAL, "PROVIDER_UNAVAILABLE", "There is no embedding provider %.80s; there are: %.300s.", provider, names);
    (void)llm_accounts_explain(accounts, provider, e);
    return -EINVAL;
}

static struct slice join(struct arena *a, struct slice prefix, struct slice text)
{
    char *joined = arena_alloc(a, prefix.n + text.n);

    memcpy(joined, prefix.p, prefix.n);
    memcpy(joined + prefix.n, text.p, text.n);
    return (struct slice){ joined, prefix.n + text.n };
}

/* Models that tell questions from documents by how the text begins get it so, unless their provider has a member for it. */
static const struct slice *begin_texts(struct request *req, const struct embed_service *service, const struct embed_wish *wish)
{
    enum setting_id setting = wish->purpose == EMBED_QUERY ? SETTING_EMBED_QUERY_PREFIX : SETTING_EMBED_DOCUMENT_PREFIX;
    const char *prefix = wish->purpose == EMBED_ANY || service->has_input_type ? "" : settings_string(req->api->settings, req->arena, setting);
    struct slice *texts;

    if (!*prefix)
        return wish->texts;
    texts = arena_array(req->arena, wish->n, sizeof(*texts));
    for (size_t i = 0; i < wish->n; i++)
        texts[i] = join(req->arena, slice_of(prefix), wish->texts[i]);
    return texts;
}

static int embed_remotely(struct request *req, const struct embed_wish *wish, const struct provider_choice *choice, struct embed_made *ret, int64_t *ret_us,
                          struct err *e)
{
    struct embed_vectors vectors = { 0 };
    struct llm_seat *seat = NULL;
    struct embed_ask ask;
    int r = find_seat(req, choice->provider, &seat, e);

    if (r < 0 || !seat)
        return r;
    ask = (struct embed_ask){
        .texts = begin_texts(req, embed_service_of(seat->account.preset->id), wish), .n = wish->n, .purpose = wish->purpose,
        .model = choice->model ? choice->model : embed_own_model(&seat->account), .n_dimensions = wish->n_dimensions,
        .is_gone = &req->exchange->is_gone,
    };
    if (!ask.model)
        return err_set(e, -EINVAL, "INVALID_MODEL", "Say which embedding model of %s: `model`, or the setting embed.model.", seat->account.name);
    r = ask_seat(req, seat, &ask, ret, &vectors, e);
    *ret_us = vectors.upstream_us;
    if (r == 0)
        *ret = (struct embed_made){ vectors.items, vectors.n, vectors.n_dimensions, seat->account.name, vectors.model, vectors.n_tokens, false };
    return r;
}

/* ---- whom to ask ---- */

bool embed_waits(const struct request *req, const char *provider)
{
    struct provider_choice choice = { 0 };

    return provider_choose(req, PROVIDER_EMBED, provider, NULL, &choice, NULL) == 0 && strcmp(choice.provider, LEXICAL_PROVIDER) != 0;
}

/* About four bytes a token, as chats are estimated. */
static int64_t tokens_of(const struct embed_wish *wish)
{
    int64_t n = 0;

    for (size_t i = 0; i < wish->n; i++)
        n += (int64_t)(wish->texts[i].n + BYTES_A_TOKEN - 1) / BYTES_A_TOKEN;
    return n;
}

static int make(struct request *req, const struct embed_wish *wish, struct embed_made *ret, int64_t *ret_upstream_us, struct err *e)
{
    struct provider_choice choice = { 0 };
    int r = provider_choose(req, PROVIDER_EMBED, wish->provider, wish->model, &choice, e);

    if (r < 0)
        return r;
    if (strcmp(choice.provider, LEXICAL_PROVIDER) == 0)
        return embed_builtin(req, wish, choice.model, ret, e);
    return embed_remotely(req, wish, &choice, ret, ret_upstream_us, e);
}

static void count_use(struct request *req, struct meter_ticket *ticket, const struct embed_made *made)
{
    if (!made->provider) {
        meter_give_back(req->api->meter, ticket);
        return;
    }
    meter_count(req->api->meter, ticket, &(struct meter_use){ .work = METER_EMBED, .provider = made->provider, .model = made->model,
                                                              .prompt_tokens = made->n_tokens, .is_estimated = made->is_estimated,
                                                              .is_failed = !made->items });
}

int embed_texts(struct request *req, const struct embed_wish *wish, struct embed_made *ret, struct err *e)
{
    int64_t began_us = clock_mono_us(), upstream_us = 0, n_expected = tokens_of(wish);
    struct meter_ticket ticket = { 0 };
    struct embed_made made = { 0 };
    int r = metered_admit(req, n_expected, &ticket, e);

    if (r < 0)
        return r;
    r = make(req, wish, &made, &upstream_us, e);
    if (r == 0 && made.n_tokens <= 0) {
        made.n_tokens = n_expected;
        made.is_estimated = true;
    }
    count_use(req, &ticket, &made);
    if (r < 0)
        return r;
    metered_headers(req->exchange, made.provider, began_us, clock_mono_us() - began_us - upstream_us);
    *ret = made;
    return 0;
}
