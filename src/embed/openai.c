/* OpenAI's POST /embeddings; Azure, Gemini, Mistral, Cohere, Voyage and local servers accept the same, with the
 * differences listed in services.c. */
#include "embed/embed.h"

static void write_options(struct json_writer *w, const struct embed_service *service,
                          const struct embed_request *request)
{
    if (request->n_dimensions > 0)
        json_add_int(w, service->dimensions ? service->dimensions : "dimensions", request->n_dimensions);
    if (service->has_base64)
        json_add_string(w, "encoding_format", "base64");
    if (service->has_input_type && request->purpose != EMBED_ANY)
        json_add_string(w, "input_type", request->purpose == EMBED_QUERY ? "query" : "document");
    if (service->truncates)
        json_add_bool(w, "truncation", false);
}

/* Each vector names its place; servers that omit the place keep the order. */
static int place_of(struct json_value item, size_t position, size_t n, size_t *ret)
{
    struct json_value index = json_get(item, "index");
    int64_t place = json_type(index) == JSON_INT ? json_int(index) : (int64_t)position;

    if (place < 0 || (size_t)place >= n)
        return -EBADMSG;
    *ret = (size_t)place;
    return 0;
}

static int place_all(struct json_value data, const struct embed_batch *batch, struct json_value *vectors)
{
    struct json_iter it = json_iter(data);
    struct json_value item;
    size_t place;

    for (size_t i = 0; json_next(&it, NULL, &item); i++) {
        if (place_of(item, i, batch->n, &place) < 0 || !json_is_absent(vectors[place]))
            return -EBADMSG;
        vectors[place] = json_get(item, "embedding");
        if (json_type(vectors[place]) != JSON_ARRAY && json_type(vectors[place]) != JSON_STRING)
            return -EBADMSG;
    }
    return 0;
}

static int read_reply(struct json_value root, const struct embed_batch *batch, struct arena *a, struct embed_reply *ret,
                      struct err *e)
{
    struct json_value data = json_get(root, "data");
    struct json_value *vectors = arena_array(a, batch->n, sizeof(*vectors));

    if (json_length(data) != batch->n || place_all(data, batch, vectors) < 0)
        return err_set(e, -EBADMSG, "UPSTREAM_INVALID",
                       "it answered without one `embedding` for each of the %zu texts.", batch->n);
    *ret = (struct embed_reply){
        .vectors = vectors,
        .n = batch->n,
        .model = json_cstr(json_get(root, "model")),
        .n_tokens = json_int(json_get(json_get(root, "usage"), "prompt_tokens")),
    };
    return 0;
}

const struct embed_protocol embed_openai = { "embeddings", write_options, read_reply };
