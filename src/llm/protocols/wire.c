#include "llm/protocols/wire.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/memory.h"
#include "net/url.h"

#include <string.h>
#include <strings.h>
#include <math.h>

enum { SHORT_ID = 9 };

/* ---- requests ---- */

void wire_body_begin(struct wire_body *b)
{
    buf_init(&b->text, 2 * (size_t)LIMIT_BODY_CHAT);
    b->scratch = arena_new();
    json_write_init(&b->json, &b->text);
    json_begin_object(&b->json);
}

/* The arena takes over the memory: a second copy of a long chat would stay in memory as long as the request. */
static struct slice body_to_arena(struct wire_body *b, struct arena *a)
{
    struct slice body = buf_slice(&b->text);

    body.p = xrealloc(buf_take(&b->text), body.n + 1);
    arena_adopt(a, (char *)body.p, body.n + 1);
    return body;
}

static void add_headers(const struct llm_account *acc, bool has_body, struct arena *a, struct http_call_request *ret)
{
    struct http_call_header *headers = arena_array(a, acc->n_headers + 4, sizeof(*headers));
    const struct llm_preset *preset = acc->preset;
    size_t n = 0;

    if (has_body)
        headers[n++] = (struct http_call_header){ "content-type", "application/json" };
    if (acc->api_key && preset->auth_header)
        headers[n++] = (struct http_call_header){
            preset->auth_header, arena_printf(a, "%s%s", preset->auth_prefix ? preset->auth_prefix : "", acc->api_key)
        };
    if (preset->protocol->header.name)
        headers[n++] = preset->protocol->header;
    if (preset->header.name)
        headers[n++] = preset->header;
    for (size_t i = 0; i < acc->n_headers; i++)
        headers[n++] = acc->headers[i];
    ret->headers = headers;
    ret->n_headers = n;
}

int wire_request(const struct llm_account *acc, const char *path, struct wire_body *b, struct arena *a,
                 struct http_call_request *ret, struct err *e)
{
    struct http_call_request request = { .method = b ? "POST" : "GET" };
    char *url = NULL;
    int r = url_join(a, acc->base_url, path, &url, e);

    if (b) {
        json_end(&b->json);
        if (r == 0)
            r = buf_check(&b->text, e);
        if (r == 0)
            request.body = body_to_arena(b, a);
        buf_clear(&b->text);
        arena_freep(&b->scratch);
    }
    if (r < 0)
        return r;
    request.url = url;
    add_headers(acc, b != NULL, a, &request);
    *ret = request;
    return 0;
}

const char *wire_role(enum llm_role role)
{
    static const char *const names[] = {
        [LLM_SYSTEM] = "system", [LLM_USER] = "user", [LLM_ASSISTANT] = "assistant", [LLM_TOOL] = "tool"
    };

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

    buf_init(&text, 2 * (size_t)LIMIT_BODY_CHAT);
    for (size_t i = 0; i < m->n_blocks; i++) {
        if (m->blocks[i].kind != LLM_BLOCK_TEXT)
            continue;
        if (text.n > 0)
            buf_add_str(&text, "\n\n");
        buf_add_str(&text, m->blocks[i].text);
    }
    return buf_to_arena(&text, a);
}

static bool starts_with_error(const char *text)
{
    return strncasecmp(text, "error", 5) == 0;
}

const char *wire_result_text(struct arena *a, const struct llm_message *m)
{
    const char *text = wire_text(a, m);

    return m->is_error && !starts_with_error(text) ? arena_printf(a, "Error: %s", text) : text;
}

int wire_check_addresses(const struct llm_account *acc, const struct llm_request *request, struct err *e)
{
    bool (*takes)(const struct llm_block *block) = acc->preset->protocol->takes_address;

    for (size_t i = 0; i < request->n_messages; i++)
        for (size_t k = 0; k < request->messages[i].n_blocks; k++) {
            const struct llm_block *block = &request->messages[i].blocks[k];

            if (block->kind == LLM_BLOCK_FILE_URL && !(takes && takes(block)))
                return err_set(e, -EINVAL, "UNSUPPORTED_CONTENT",
                               "This provider takes no addresses of files: `messages[%zu]` holds one.", i);
        }
    return 0;
}

int wire_check_tool_results(const struct llm_request *request, struct err *e)
{
    for (size_t i = 0; i < request->n_messages; i++)
        for (size_t k = 0; request->messages[i].role == LLM_TOOL && k < request->messages[i].n_blocks; k++)
            if (request->messages[i].blocks[k].kind != LLM_BLOCK_TEXT)
                return err_set(
                    e, -EINVAL, "UNSUPPORTED_CONTENT",
                    "This provider takes a tool's result as text only: `messages[%zu]` holds something else.", i);
    return 0;
}

/* Nine letters and digits made from a hash of the id. */
static const char *short_id(struct arena *a, const char *id)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint64_t hash = hash_fast(slice_of(id));
    char *text = arena_alloc(a, SHORT_ID + 1);

    for (size_t i = 0; i < SHORT_ID; i++, hash /= 36)
        text[i] = digits[hash % 36];
    text[SHORT_ID] = '\0';
    return text;
}

const char *wire_tool_id(struct arena *a, const struct llm_account *acc, const char *id)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    bool is_short = acc->preset->quirks & LLM_QUIRK_SHORT_TOOL_IDS;
    size_t n = strlen(id), n_fit = strspn(id, alphabet);

    if (n_fit == n && (!is_short || (n == SHORT_ID && !strpbrk(id, "_-"))))
        return id;
    return is_short ? short_id(a, id) : arena_printf(a, "call_%s", short_id(a, id));
}

bool wire_is_plain(const struct llm_message *m)
{
    return m->n_blocks == 0 || (m->n_blocks == 1 && m->blocks[0].kind == LLM_BLOCK_TEXT);
}

bool wire_is_responses_signature(const char *signature)
{
    return strncmp(signature, WIRE_RESPONSES_SIGNATURE, strlen(WIRE_RESPONSES_SIGNATURE)) == 0;
}

static enum llm_piece usual_piece(const struct llm_message *m, size_t at)
{
    return at < m->n_thoughts ? LLM_PIECE_THOUGHT : at < m->n_thoughts + m->n_blocks ? LLM_PIECE_BLOCK : LLM_PIECE_CALL;
}

bool wire_next_piece(struct wire_pieces *pieces)
{
    const struct llm_message *m = pieces->m;
    size_t n = m->order ? m->n_order : m->n_thoughts + m->n_blocks + m->n_tool_calls;

    if (pieces->at == n)
        return false;
    pieces->kind = m->order ? (enum llm_piece)m->order[pieces->at] : usual_piece(m, pieces->at);
    pieces->index = pieces->n_reported[pieces->kind]++;
    pieces->at++;
    return true;
}

void wire_add_sampling(struct json_writer *w, const struct llm_request *request, const char *max_tokens_name)
{
    if (request->max_tokens > 0)
        json_add_int(w, max_tokens_name, request->max_tokens);
    if (request->has_top_p && !llm_model_is_reasoning(request->model))
        json_add_double(w, "top_p", request->top_p);
}

/* ---- answers ---- */

static int err_page(struct err *e)
{
    return err_set(e, -EBADMSG, "UPSTREAM_INVALID",
                   "A web page came in place of a model's answer: is the base URL right?");
}

void wire_events_init(struct wire_events *s, int (*on_event)(void *arg, const struct sse_event *ev), void *arg)
{
    *s = (struct wire_events){ .first = '\0' };
    sse_reader_init(&s->sse, on_event, arg);
    buf_init(&s->whole, LIMIT_LLM_ANSWER);
}

void wire_events_clear(struct wire_events *s)
{
    sse_reader_clear(&s->sse);
    buf_clear(&s->whole);
}

int wire_events_feed(struct wire_events *s, struct slice bytes, struct err *e)
{
    if (!s->is_begun) {
        const struct slice rest = slice_skip_blanks(bytes);

        s->is_begun = rest.n > 0;
        s->first = s->is_begun ? rest.p[0] : '\0';
    }
    if (s->first == '<')
        return err_page(e);
    if (s->first != '{')
        return sse_reader_feed(&s->sse, bytes, e);
    buf_add_slice(&s->whole, bytes);
    return s->whole.overflowed
               ? err_set(e, -EMSGSIZE, "UPSTREAM_TOO_LARGE", "The answer has more than %d bytes.", LIMIT_LLM_ANSWER)
               : 0;
}

struct slice wire_events_whole(const struct wire_events *s)
{
    return buf_slice(&s->whole);
}

/* ---- readers ---- */

static struct wire_reader *base_of(struct llm_reader *r)
{
    return (struct wire_reader *)r;
}

static int take_data(struct wire_reader *r, struct slice data)
{
    return r->has_ended ? 0 : r->how->on_data((struct llm_reader *)r, data);
}

static int on_event(void *arg, const struct sse_event *ev)
{
    return take_data(arg, ev->data);
}

static int on_line(void *arg, struct slice line)
{
    return take_data(arg, line);
}

static void clear_reader(void *arg)
{
    struct wire_reader *r = arg;

    if (r->how->is_lines)
        line_reader_clear(&r->lines);
    else
        wire_events_clear(&r->events);
}

struct llm_reader *wire_reader_new(const struct wire_reading *how, struct arena *a, const struct llm_sink *sink)
{
    struct wire_reader *r = arena_alloc(a, how->size);

    r->how = how;
    r->arena = a;
    r->sink = *sink;
    if (how->is_lines)
        line_reader_init(&r->lines, on_line, r);
    else
        wire_events_init(&r->events, on_event, r);
    arena_defer(a, clear_reader, r);
    return (struct llm_reader *)r;
}

int wire_on_bytes(struct llm_reader *reader, struct slice bytes, struct err *e)
{
    struct wire_reader *r = base_of(reader);

    r->e = e;
    return r->how->is_lines ? line_reader_feed(&r->lines, bytes, e) : wire_events_feed(&r->events, bytes, e);
}

/* The last line may lack its newline. If the last line was cut, it is not JSON, and the stream ended too early. */
static int close_lines(struct wire_reader *r, struct err *e)
{
    struct err why;
    int result;

    err_init(&why);
    r->e = &why;
    result = line_reader_end(&r->lines);
    r->e = NULL;
    if (r->has_ended)
        return result;
    return result < 0 && result != -EBADMSG ? err_set(e, result, why.code, "%s", why.text) : wire_too_early(e);
}

int wire_on_close(struct llm_reader *reader, struct err *e)
{
    struct wire_reader *r = base_of(reader);
    struct slice whole;

    if (r->has_ended)
        return 0;
    if (r->how->is_lines)
        return close_lines(r, e);
    r->e = e;
    whole = wire_events_whole(&r->events);
    if (whole.n > 0)
        return r->how->on_whole(reader, whole, e);
    return r->how->on_last ? r->how->on_last(reader) : wire_too_early(e);
}

int wire_parse(struct arena *a, struct slice text, struct json_value *ret, struct err *e)
{
    struct slice begin = slice_skip_blanks(text);
    int r = json_parse(a, text, ret, NULL);

    if (r == 0 && json_type(*ret) == JSON_OBJECT)
        return 0;
    if (r == -ENOMEM)
        return memory_refuse(e);
    if (begin.n > 0 && begin.p[0] == '<')
        return err_page(e);
    return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "The provider sent no answer that can be read: %s",
                   r < 0 ? "it is no JSON." : "it is no JSON object.");
}

/* {message}, {message: {detail}}, {error: ...}, {detail: "..." or [{msg}]}, [{error: ...}]: the forms that services
 * use. */
const char *wire_words(struct arena *a, struct json_value error)
{
    static const char *const members[] = { "error", "message", "detail", "msg" };
    struct json_value first = { 0 };
    const char *words = NULL, *raw = json_cstr(json_get(json_get(error, "metadata"), "raw"));
    struct json_iter it = json_iter(error);

    if (json_type(error) == JSON_STRING)
        return json_string(error).n > 0 ? json_cstr(error) : NULL;
    if (json_type(error) == JSON_ARRAY)
        return json_next(&it, NULL, &first) ? wire_words(a, first) : NULL;
    if (json_type(error) != JSON_OBJECT)
        return NULL;
    for (size_t i = 0; !words && i < ARRAY_SIZE(members); i++)
        words = wire_words(a, json_get(error, members[i]));
    /* OpenRouter sends "Provider returned error" and, separately, the provider's message */
    return words && raw && *raw ? arena_printf(a, "%s: %s", words, raw) : words;
}

static bool may_pass(struct json_value error)
{
    static const char *const types[] = { "overloaded_error", "api_error",           "timeout_error",
                                         "server_error",     "service_unavailable", "overloaded" };
    struct slice type = json_string(json_get(error, "type")), code = json_string(json_get(error, "code"));

    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (slice_eq_str(type, types[i]) || slice_eq_str(code, types[i]))
            return true;
    return json_int(json_get(error, "code")) >= 500;
}

static bool is_limit(struct json_value error)
{
    return json_int(json_get(error, "code")) == 429 ||
           slice_eq_str(json_string(json_get(error, "type")), "rate_limit_error") ||
           slice_eq_str(json_string(json_get(error, "code")), "rate_limit_exceeded");
}

int wire_reported_error(struct json_value error, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    const char *words = wire_words(scratch, error);

    if (!words)
        words = "an error without a text.";
    if (is_limit(error))
        return err_set(e, -EBUSY, "RATE_LIMIT", "The provider takes no more requests for now: %.*s", WIRE_QUOTED,
                       words);
    return err_set(e, may_pass(error) ? -EAGAIN : -EIO, "LLM_ERROR", "The provider reports: %.*s", WIRE_QUOTED, words);
}

int wire_too_early(struct err *e)
{
    return err_set(e, -ECONNRESET, "UPSTREAM_CLOSED", "The provider ended its answer before it was complete.");
}

int wire_no_answer(struct err *e)
{
    return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "The provider sent a reply that holds no answer of a model.");
}

int wire_put(int (*on)(void *arg, struct slice text), void *arg, struct json_value text)
{
    struct slice bytes = json_string(text);

    return bytes.n > 0 ? on(arg, bytes) : 0;
}

int64_t wire_tokens(struct json_value count, int64_t otherwise)
{
    if (json_type(count) != JSON_INT && json_type(count) != JSON_DOUBLE)
        return otherwise;
    return (int64_t)MAX(MIN(json_double(count), (double)LIMIT_TOKENS), (double)otherwise);
}

/* NULL: the name is not usable. */
static const char *model_name(struct json_value name)
{
    const char *text = json_cstr(name);

    return text && *text && strlen(text) <= LIMIT_MODEL_BYTES ? text : NULL;
}

int64_t wire_time_s(struct json_value time)
{
    const double year_9999 = 253402300799.0,
                 least_ms =
                     1e11; /* numbers from here on are milliseconds: as seconds they would be after the year 5138 */
    double s = json_double(time);
    int64_t ms = 0;

    if (json_type(time) == JSON_STRING && clock_parse(json_string(time), &ms) == 0)
        s = floor((double)ms / 1000);
    if (s >= least_ms)
        s /= 1000;
    return s > 0 && s <= year_9999 ? (int64_t)s : 0;
}

int wire_models(struct slice body, const struct wire_list *of, struct arena *a, struct llm_models *ret, struct err *e)
{
    struct json_value root = { 0 }, items, item;
    struct llm_model *models;
    size_t n = 0;
    int r = wire_parse(a, body, &root, e);

    if (r < 0)
        return r;
    items = json_get(root, of->list);
    if (json_type(items) != JSON_ARRAY)
        return err_set(e, -EBADMSG, "UPSTREAM_INVALID", "The provider's list of models has no `%s`.", of->list);
    models = arena_array(a, LIMIT_MODELS, sizeof(*models));
    for (struct json_iter it = json_iter(items); n < LIMIT_MODELS && json_next(&it, NULL, &item);) {
        const char *id = model_name(json_get(item, of->id)), *name = model_name(json_get(item, of->name));

        if (id)
            models[n++] = (struct llm_model){ id, name ? name : id, wire_time_s(json_get(item, of->created)) };
    }
    *ret = (struct llm_models){ models, n };
    return 0;
}
