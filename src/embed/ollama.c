/* Ollama's POST /api/embed: {embeddings: [[..]]}; older servers answer one text with {embedding: [..]}. */
#include "embed/embed.h"

static void write_options(struct json_writer *w, const struct embed_service *service,
                          const struct embed_request *request)
{
    if (request->n_dimensions > 0)
        json_add_int(w, "dimensions", request->n_dimensions);
    json_add_bool(w, "truncate", false); /* else the server silently drops the end of a long text */
}

static int read_reply(struct json_value root, const struct embed_batch *batch, struct arena *a, struct embed_reply *ret,
                      struct err *e)
{
    struct json_value many = json_get(root, "embeddings"), one = json_get(root, "embedding"), item;
    struct json_value *vectors = arena_array(a, batch->n, sizeof(*vectors));
    struct json_iter it = json_iter(many);
    size_t n = 0;

    if (json_is_absent(many) && json_type(one) == JSON_ARRAY && batch->n > 1)
        return err_set(e, -E2BIG, "UPSTREAM_INVALID", "it takes one text at a time.");
    if (json_is_absent(many) && json_type(one) == JSON_ARRAY)
        vectors[n++] = one;
    while (n < batch->n && json_next(&it, NULL, &item) && json_type(item) == JSON_ARRAY)
        vectors[n++] = item;
    if (n < batch->n || json_length(many) > batch->n)
        return err_set(e, -EBADMSG, "UPSTREAM_INVALID",
                       "it answered without one of the `embeddings` for each of the %zu texts.", batch->n);
    *ret = (struct embed_reply){
        .vectors = vectors,
        .n = n,
        .model = json_cstr(json_get(root, "model")),
        .n_tokens = json_int(json_get(root, "prompt_eval_count")),
    };
    return 0;
}

const struct embed_protocol embed_ollama = { "api/embed", write_options, read_reply };
