/* Bodies of POST /v1/responses, read through their table into the neutral request and printed in the form in which they
 * are kept: the printed form must read back as the same. */
#include "api/compat/v1_response.h"
#include "api/compat/v1_responses_body.h"

#include <assert.h>
#include <string.h>

static size_t n_read;

static void read_text(const char *text)
{
    if (text)
        n_read += strlen(text);
}

static void read_message(const struct llm_message *m)
{
    for (size_t i = 0; i < m->n_blocks; i++) {
        read_text(m->blocks[i].text);
        read_text(m->blocks[i].url);
        read_text(m->blocks[i].base64);
        assert(m->blocks[i].kind != LLM_BLOCK_TEXT || m->blocks[i].text);
    }
    for (size_t i = 0; i < m->n_thoughts; i++) {
        read_text(m->thoughts[i].text);
        assert(*m->thoughts[i].signature);
    }
    assert(!m->order || m->n_order == m->n_thoughts + m->n_blocks + m->n_tool_calls);
    for (size_t i = 0; i < m->n_tool_calls; i++)
        read_text(m->tool_calls[i].arguments);
    assert(m->role != LLM_TOOL || m->tool_call_id);
}

/* A reference is to the first item, whatever its id. */
static int find_first(void *arg, const char *id, const char *path, struct json_value *ret, struct err *e)
{
    struct json_iter it = json_iter(*(struct json_value *)arg);
    struct slice response;
    size_t n;

    (void)!v1_response_item_place(id, &response, &n);
    (void)!v1_response_id(id).n;
    return json_next(&it, NULL, ret) ? 0 : err_add_field(e, path, "is not there");
}

static void read_again(struct arena *a, const struct v1_responses_body *body, const struct v1_items *before,
                       const struct llm_request *request)
{
    struct v1_responses_body again = *body;
    struct llm_request same = { 0 };
    struct err e = { 0 };
    struct buf out;

    buf_init(&out, MIB(16));
    v1_items_print(body->input, before, &out);
    assert(out.overflowed || json_parse(a, buf_slice(&out), &again.input, &e) == 0);
    if (!out.overflowed) {
        assert(v1_responses_request(&again, before, a, &same, &e) == 0);
        assert(same.n_messages == request->n_messages);
    }
    buf_clear(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct v1_responses_body *body = ARENA_NEW(a, struct v1_responses_body);
    struct json_value root = { 0 }, input;
    struct llm_request request = { 0 };
    struct err e = { 0 };
    int r = json_parse(a, (struct slice){ (const char *)data, size }, &root, &e);
    const struct v1_items before = { .find = find_first, .arg = &input };

    input = json_get(root, "input");
    if (r == 0)
        r = fields_read(v1_responses_fields, root, body, a, "", &e);
    if (r == 0)
        r = v1_responses_request(body, &before, a, &request, &e);
    assert((r < 0) == (*e.code != '\0'));
    for (size_t i = 0; i < request.n_messages; i++)
        read_message(&request.messages[i]);
    if (r == 0)
        read_again(a, body, &before, &request);
    return 0;
}
