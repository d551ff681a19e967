/* The embeddings of the stand-in (stand_in/rules.h): the built-in vectors of words under a provider's conditions. */
#include "embed/embed.h"

#include "base/limits.h"
#include "embed/lexical.h"
#include "stand_in/rules.h"

enum { BYTES_A_NUMBER = 24 };

static void write_nothing(struct json_writer *w, const struct embed_service *service,
                          const struct embed_request *request)
{
}

static void write_vectors(const struct embed_batch *batch, struct json_writer *w)
{
    float vector[LEXICAL_DIMENSIONS];

    json_begin_array_as(w, "data");
    for (size_t i = 0; i < batch->n; i++) {
        lexical_embed(batch->texts[i], vector);
        json_begin_object(w);
        json_add_int(w, "index", (int64_t)i);
        json_add_floats(w, "embedding", vector, LEXICAL_DIMENSIONS);
        json_end(w);
    }
    json_end(w);
}

static struct http_inside *make_vectors(const struct embed_batch *batch, struct arena *a)
{
    struct http_inside *answer;
    struct json_writer w;
    size_t n_tokens = 0;
    struct buf out;

    for (size_t i = 0; i < batch->n; i++)
        n_tokens += stand_in_count_tokens(batch->texts[i]);
    buf_init(&out, batch->n * LEXICAL_DIMENSIONS * BYTES_A_NUMBER + 1024);
    json_write_init(&w, &out);
    json_begin_object(&w);
    json_add_string(&w, "model", STAND_IN_EMBED_MODEL);
    write_vectors(batch, &w);
    json_begin_object_as(&w, "usage");
    json_add_int(&w, "prompt_tokens", (int64_t)n_tokens);
    json_add_int(&w, "total_tokens", (int64_t)n_tokens);
    json_end(&w);
    json_end(&w);
    answer = stand_in_answer(a, slice_of(buf_to_arena(&out, a)));
    buf_clear(&out);
    return answer;
}

/* The rules of the first text that has one count for its batch. */
static struct http_inside *answer(const struct embed_request *request, const struct embed_batch *batch, struct arena *a)
{
    struct stand_in_rules rules = { 0 };
    struct http_inside *made;

    for (size_t i = 0; i < batch->n && !rules.fail_status && !rules.slow_ms; i++)
        stand_in_read_rules(a, batch->texts[i], &rules);
    if (rules.fail_status)
        return stand_in_obey(a, &rules);
    if (request->n_dimensions && request->n_dimensions != LEXICAL_DIMENSIONS)
        return stand_in_refuse(a, 400, -1,
                               arena_printf(a, "`dimensions` must be %d or absent.", (int)LEXICAL_DIMENSIONS));
    made = make_vectors(batch, a);
    made->piece_ms = rules.slow_ms;
    return made;
}

static int read_reply(struct json_value root, const struct embed_batch *batch, struct arena *a, struct embed_reply *ret,
                      struct err *e)
{
    return embed_openai.read(root, batch, a, ret, e);
}

const struct embed_protocol embed_stand_in = { .write = write_nothing, .read = read_reply, .answer = answer };
