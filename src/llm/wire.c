#include "llm/wire.h"

#include "base/limits.h"
#include "net/url.h"

#include <string.h>

/* ---- requests ---- */

void wire_body_begin(struct wire_body *b)
{
    buf_init(&b->text, 2 * (size_t)LIMIT_BODY_CHAT);
    json_write_init(&b->json, &b->text);
    json_begin_object(&b->json);
}

static void add_headers(const struct llm_account *acc, bool has_body, struct arena *a, struct http_ask *ret)
{
    struct http_ask_header *headers = arena_array(a, acc->n_headers + 3, sizeof(*headers));
    const struct llm_preset *preset = acc->preset;
    size_t n = 0;

    if (has_body)
        headers[n++] = (struct http_ask_header){ "content-type", "application/json" };
    if (acc->api_key && preset->auth_header)
        headers[n++] = (struct http_ask_header){ preset->auth_header,
                                                 arena_printf(a, "%s%s", preset->auth_prefix ? preset->auth_prefix : "", acc->api_key) };
    if (preset->protocol == &llm_anthropic_messages)
        headers[n++] = (struct http_ask_header){ "anthropic-version", "2023-06-01" };
    for (size_t i = 0; i < acc->n_headers; i++)
        headers[n++] = acc->headers[i];
    ret->headers = headers;
    ret->n_headers = n;
}

int wire_ask(const struct llm_account *acc, const char *path, struct wire_body *b, struct arena *a, struct http_ask *ret, struct err *e)
{
    struct http_ask ask = { .method = b ? "POST" : "GET" };
    char *url = NULL;
    int r = url_join(a, acc->base_url, path, &url, e);

    if (b) {
        json_end(&b->json);
        if (r == 0)
            r = buf_check(&b->text, e);
        ask.body = (struct slice){ arena_slicedup(a, buf_slice(&b->text)), b->text.n };
        buf_clear(&b->text);
    }
    if (r < 0)
        return r;
    ask.url = url;
    add_headers(acc, b != NULL, a, &ask);
    *ret = ask;
    return 0;
}

const char *wire_role(enum llm_role role)
{
    static const char *const names[] = { [LLM_SYSTEM] = "system", [LLM_USER] = "user", [LLM_ASSISTANT] = "assistant", [LLM_TOOL] = "tool" };

    return names[role];
}

const char *wire_data_url(struct arena *a, const struct llm_block *block)
{
    size_t n_type = strlen(block->media_type), n_data = strlen(block->base64);
    char *url = arena_alloc(a, n_type + n_data + sizeof("data:;base64,"));
    size_t n = (size_t)snprintf(url, n_type + sizeof("data:;base64,"), "data:%s;base64,", block->media_type);

    memcpy(url + n, block->base64, n_data);
    return url;
}

const char *wire_text(struct arena *a, const struct llm_message *m)
{
    struct buf text;
    const char *copy;

    buf_init(&text, 2 * (size_t)LIMIT_BODY_CHAT);
    for (size_t i = 0; i < m->n_blocks; i++) {
        if (m->blocks[i].kind != LLM_BLOCK_TEXT)
            continue;
        if (text.n > 0)
            buf_add_str(&text, "\n\n");
        buf_add_str(&text, m->blocks[i].text);
    }
    copy = arena_slicedup(a, buf_slice(&text));
    buf_clear(&text);
    return copy;
}

bool wire_is_plain(const struct llm_message *m)
{
    return m->n_blocks == 0 || (m->n_blocks == 1 && m->blocks[0].kind == LLM_BLOCK_TEXT);
}

void wire_add_sampling(struct json_writer *w, const struct llm_ask *ask, const char *max_tokens_name)
{
    json_add_int(w, max_tokens_name, ask->max_tokens);
    if (ask->has_top_p)
        json_add_double(w, "top_p", ask->top_p);
}

/* ---- answers ---- */

int wire_parse(struct arena *a, struct slice text, struct json_value *ret, struct err *e)
{
    struct err why = { 0 };
    int r = json_parse(a, text, ret, &why);

    if (r == 0 && json_type(*ret) == JSON_OBJECT)
        return 0;
    return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "The model's answer is not as its protocol says: %s",
                   r < 0 ? why.text : "it is no JSON object.");
}

int wire_told_error(struct json_value error, struct err *e)
{
    const char *text = json_cstr(json_type(error) == JSON_OBJECT ? json_get(error, "message") : error);

    return err_set(e, -EIO, "LLM_ERROR", "The provider reports: %s", text && *text ? text : "an error without a text");
}

int wire_too_early(struct err *e)
{
    return err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "The provider ended its answer before it was complete.");
}

int wire_no_answer(struct err *e)
{
    return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "The provider's reply holds no answer of a model.");
}

int wire_put(int (*on)(void *arg, struct slice text), void *arg, struct json_value text)
{
    struct slice bytes = json_string(text);

    return bytes.n > 0 ? on(arg, bytes) : 0;
}

int wire_models(struct slice body, const char *list, const char *id, const char *name, struct arena *a, struct llm_models *ret, struct err *e)
{
    struct json_value root = { 0 }, items, item;
    struct llm_model *models;
    size_t n = 0;
    int r = wire_parse(a, body, &root, e);

    if (r < 0)
        return r;
    items = json_get(root, list);
    if (json_type(items) != JSON_ARRAY)
        return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "The provider's list of models has no `%s`.", list);
    models = arena_array(a, json_length(items) + 1, sizeof(*models));
    for (struct json_iter it = json_iter(items); n < LIMIT_MODELS && json_next(&it, NULL, &item);) {
        const char *item_id = json_cstr(json_get(item, id)), *item_name = json_cstr(json_get(item, name));

        if (item_id && *item_id)
            models[n++] = (struct llm_model){ item_id, item_name && *item_name ? item_name : item_id };
    }
    *ret = (struct llm_models){ models, n };
    return 0;
}
