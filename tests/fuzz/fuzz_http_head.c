/* The bytes of one connection, as the server reads them: heads and bodies in sequence, in pieces whose size the first
 * byte chooses. Accepted heads must be clean; splitting must not change how a chunked body reads. */
#include "base/limits.h"
#include "http/chunked.h"
#include "http/head.h"
#include "http/list.h"

#include <assert.h>
#include <string.h>

enum { MAX_BODY = 1000 };

static void check_path(const char *path)
{
    assert(path[0] == '/' && !strchr(path, '\\'));
    assert(!strstr(path, "/../") && !strstr(path, "/./"));
    assert(strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
    for (const char *c = path; *c; c++)
        assert((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static void check_request(struct arena *a, const struct http_request *request, const struct http_framing *framing)
{
    check_path(request->path);
    assert(request->n_headers <= LIMIT_HEADERS);
    for (size_t i = 0; i < request->n_headers; i++)
        assert(request->headers[i].name[0] && !strpbrk(request->headers[i].value, "\r\n"));
    assert(!(framing->is_chunked && framing->content_length > 0));
    assert(framing->is_http10 || http_header(request, "host"));
    http_cookie(a, request, "sid");
}

/* The bytes arrive piece by piece. */
static enum http_refusal scan(struct http_head_scan *state, struct slice text, size_t piece, size_t *ret_bytes)
{
    enum http_refusal why = REFUSE_NONE;

    *ret_bytes = 0;
    for (size_t n = MIN(piece, text.n); !why && *ret_bytes == 0; n = MIN(n + piece, text.n)) {
        why = http_head_scan(state, (struct slice){ text.p, n }, ret_bytes);
        if (n == text.n)
            break;
    }
    return why;
}

static enum http_refusal feed_chunks(struct slice text, size_t piece, struct buf *body, size_t *ret_used)
{
    struct http_chunked state = { 0 };
    enum http_refusal why = REFUSE_NONE;
    size_t used;

    for (*ret_used = 0; *ret_used < text.n && !why && !http_chunked_is_done(&state); *ret_used += used) {
        struct slice now = { text.p + *ret_used, MIN(piece, text.n - *ret_used) };

        why = http_chunked_feed(&state, now, body, &used);
        assert(used <= now.n && body->n <= MAX_BODY);
    }
    return why;
}

static enum http_refusal take_chunks(struct slice text, size_t piece, size_t *ret_used)
{
    enum http_refusal why, why_whole;
    struct buf body, body_whole;
    size_t used_whole;

    buf_init(&body, MAX_BODY);
    buf_init(&body_whole, MAX_BODY);
    why = feed_chunks(text, piece, &body, ret_used);
    why_whole = feed_chunks(text, SIZE_MAX, &body_whole, &used_whole);
    assert(why == why_whole);
    assert(why || (*ret_used == used_whole && slice_eq(buf_slice(&body), buf_slice(&body_whole))));
    buf_clear(&body);
    buf_clear(&body_whole);
    return why;
}

/* Takes one request from the front; 0 when the rest is incomplete or refused. */
static size_t take_request(struct slice text, size_t piece)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct http_head_scan state = { 0 };
    struct http_request request = { 0 };
    struct http_framing framing = { 0 };
    size_t head_bytes, body_bytes = 0;
    char *head;

    if (scan(&state, text, piece, &head_bytes) || head_bytes == 0)
        return 0;
    head = arena_slicedup(a, (struct slice){ text.p, head_bytes });
    if (http_head_parse(a, head, &state, &request, &framing))
        return 0;
    check_request(a, &request, &framing);
    text = (struct slice){ text.p + head_bytes, text.n - head_bytes };
    if (framing.is_chunked && take_chunks(text, piece, &body_bytes))
        return 0;
    if (framing.content_length > text.n)
        return 0;
    return head_bytes + (framing.is_chunked ? body_bytes : framing.content_length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *)data + 1, size - 1 };
    size_t used;

    if (size == 0)
        return 0;
    while (text.n > 0 && (used = take_request(text, (size_t)data[0] + 1)) > 0)
        text = (struct slice){ text.p + used, text.n - used };
    return 0;
}
