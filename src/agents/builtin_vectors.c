/* search_vectors, embed: the caller's own vectors and the grants of the routes that do the same (vectors.read,
 * llm.embed). */
#include "agents/builtin_private.h"

#include "base/limits.h"
#include "identity/permissions.h"
#include "models/embed_texts.h"
#include "models/vector_space.h"

enum { TOP_K_DEFAULT = 5, WORKSPACE_CHARS = 128 };

struct search_arguments {
    const char *query, *workspace;
    int64_t top_k;
    struct json_value filter;
};
struct embed_arguments {
    struct field_strings input;
};

static const struct field search_fields[] = {
    FIELD_STRING(struct search_arguments, query, "query", FIELD_REQUIRED, .min = 1, .max = LIMIT_VECTOR_TEXT_BYTES),
    FIELD_STRING(struct search_arguments, workspace, "workspace", .min = 1, .max = WORKSPACE_CHARS,
                 .def_str = VECTOR_WORKSPACE_DEFAULT),
    FIELD_INT(struct search_arguments, top_k, "top_k", .min = 1, .max = LIMIT_TOOL_HITS, .def = TOP_K_DEFAULT),
    FIELD_OBJECT(struct search_arguments, filter, "filter"),
    FIELD_END,
};
static const struct field embed_fields[] = {
    FIELD_STRINGS(struct embed_arguments, input, "input", FIELD_REQUIRED, .min = 1, .max = LIMIT_TOOL_EMBED_TEXTS),
    FIELD_END,
};

/* The turn's grant (agent.chat, llm.chat) stands for no other one. */
static struct models_call own_call(const struct builtin_call *c)
{
    struct models_call call = *c->call;

    call.is_permitted = false;
    return call;
}

/* Made by the model that made the namespace's vectors, when that is known. */
static int embed_query(struct models_call *call, const struct vector_space *space, const char *text,
                       struct embed_made *ret, struct err *e)
{
    const struct slice one = slice_of(text);
    struct embed_job job = { .texts = &one, .n = 1, .purpose = EMBED_QUERY };
    int r = models_permit(call, PERM_LLM_EMBED, e);

    call->is_permitted = true; /* for this: taken once */
    if (r == 0)
        r = vector_space_model(space, &job.model, e);
    if (r == 0)
        r = embed_texts(call, &job, ret, e);
    if (r == 0 && job.model)
        ret->model = job.model; /* the name under which the vectors were stored, whatever the provider answers */
    call->is_permitted = false;
    return r;
}

static int search(struct models_call *call, const struct search_arguments *in, struct vector_hits *ret, struct err *e)
{
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct embed_made made = { 0 };
    struct vector_query query = { .top_k = in->top_k, .filter = in->filter, .min_score = -2 };
    int r = vector_space_open(call, in->workspace, &space, e);

    if (r == 0)
        r = embed_query(call, &space, in->query, &made, e);
    if (r < 0)
        return r;
    query.vector = made.items;
    query.n_dimensions = made.n_dimensions;
    query.text = space.vectors->ops->has_text ? in->query : NULL;
    return vector_space_query(&space, &query, made.model, ret, e);
}

static int answer_hits(struct arena *a, const struct vector_hits *hits, struct mcp_result *ret, struct err *e)
{
    struct json_writer w;
    struct buf out;

    builtin_answer_begin(&w, &out);
    json_begin_array_as(&w, "results");
    for (size_t i = 0; i < hits->n; i++) {
        json_begin_object(&w);
        json_add_string(&w, "id", hits->items[i].id);
        json_add_double(&w, "score", hits->items[i].score);
        json_add_raw(&w, "metadata",
                     hits->items[i].metadata && *hits->items[i].metadata ? hits->items[i].metadata : "{}");
        json_end(&w);
    }
    json_end(&w);
    return builtin_answer_finish(&w, a, ret, e);
}

int builtin_vectors_search(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    struct models_call call = own_call(c);
    struct search_arguments in = { 0 };
    struct vector_hits hits = { 0 };
    int r = fields_read(search_fields, c->arguments, &in, call.arena, "", e);

    if (r == 0)
        r = search(&call, &in, &hits, e);
    return r < 0 ? r : answer_hits(call.arena, &hits, ret, e);
}

static int answer_vectors(struct arena *a, const struct embed_made *made, struct mcp_result *ret, struct err *e)
{
    struct json_writer w;
    struct buf out;

    builtin_answer_begin(&w, &out);
    json_add_string(&w, "model", made->model);
    json_add_int(&w, "dimensions", (int64_t)made->n_dimensions);
    json_begin_array_as(&w, "embeddings");
    for (size_t i = 0; i < made->n; i++)
        json_add_floats(&w, NULL, made->items + i * made->n_dimensions, made->n_dimensions);
    json_end(&w);
    return builtin_answer_finish(&w, a, ret, e);
}

/* Texts as the route takes them: not empty, at most LIMIT_EMBED_TEXT bytes. */
static int read_texts(struct arena *a, const struct field_strings *input, struct slice **ret, struct err *e)
{
    struct slice *texts = arena_array(a, input->n, sizeof(*texts));
    char path[32];

    for (size_t i = 0; i < input->n; i++) {
        texts[i] = slice_of(input->items[i]);
        snprintf(path, sizeof(path), "input[%zu]", i);
        if (texts[i].n == 0 || texts[i].n > LIMIT_EMBED_TEXT)
            return err_add_field(e, path, "must be a text of 1 to %d bytes", LIMIT_EMBED_TEXT);
    }
    *ret = texts;
    return 0;
}

int builtin_vectors_embed(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    struct models_call call = own_call(c);
    struct embed_arguments in = { 0 };
    struct embed_made made = { 0 };
    struct slice *texts = NULL;
    int r = fields_read(embed_fields, c->arguments, &in, call.arena, "", e);

    if (r == 0)
        r = read_texts(call.arena, &in.input, &texts, e);
    if (r == 0)
        r = embed_texts(&call, &(struct embed_job){ .texts = texts, .n = in.input.n }, &made, e);
    return r < 0 ? r : answer_vectors(call.arena, &made, ret, e);
}
