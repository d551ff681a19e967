#include "api/resources/vector_texts.h"

#include "api/resources/embed.h"
#include "api/resources/metered.h"
#include "base/limits.h"
#include "identity/permissions.h"

static int check_record(const struct sent_record *record, size_t i, struct err *e)
{
    char path[48];

    snprintf(path, sizeof(path), "vectors[%zu].vector", i);
    if (record->has_array && record->has_base64)
        return err_add_field(e, path, "must not be given together with `vector_b64`");
    if (record->vector.n == 0 && !record->text)
        return err_add_field(e, path, "is required, unless `vector_b64` or `text` is given");
    return 0;
}

int vector_texts_check(const struct field_list *records, struct err *e)
{
    const struct sent_record *items = records->items;
    int r;

    for (size_t i = 0; i < records->n; i++) {
        r = check_record(&items[i], i, e);
        if (r < 0)
            return r;
    }
    if (vector_texts_count(records) > LIMIT_EMBED_TEXTS)
        return err_add_field(e, "vectors", "must have at most %d texts without a vector", LIMIT_EMBED_TEXTS);
    return 0;
}

size_t vector_texts_count(const struct field_list *records)
{
    const struct sent_record *items = records->items;
    size_t n = 0;

    for (size_t i = 0; i < records->n; i++)
        n += items[i].vector.n == 0;
    return n;
}

/* The grant of the route is that of vectors: the grant of embeddings is checked here. */
static int embed_in_space(struct request *req, const struct vector_space *space, struct embed_job *job,
                          const char **model, struct embed_made *ret, struct err *e)
{
    struct models_call *call = metered_call(req);
    int r;

    call->is_permitted = false;
    r = models_permit(call, PERM_LLM_EMBED, e);
    if (r == 0 && !*model)
        r = vector_space_model(space, model, e);
    job->model = *model;
    if (r == 0)
        r = embed_for(req, job, ret, e);
    if (r == 0 && !*model)
        *model = ret->model;
    return r;
}

int vector_texts_fill(struct request *req, const struct vector_space *space, const struct field_list *records,
                      const char **model, struct err *e)
{
    struct sent_record *items = records->items;
    size_t n = vector_texts_count(records), k = 0;
    struct slice *texts = arena_array(req->arena, n, sizeof(*texts));
    struct embed_job job = { .texts = texts, .n = n, .purpose = EMBED_DOCUMENT };
    struct embed_made made = { 0 };
    int r;

    if (n == 0)
        return 0;
    for (size_t i = 0; i < records->n; i++)
        if (items[i].vector.n == 0)
            texts[k++] = slice_of(items[i].text);
    r = embed_in_space(req, space, &job, model, &made, e);
    k = 0;
    for (size_t i = 0; r == 0 && i < records->n; i++)
        if (items[i].vector.n == 0)
            items[i].vector =
                (struct json_floats){ .items = made.items + made.n_dimensions * k++, .n = made.n_dimensions };
    return r;
}

static void print_with_text(struct buf *out, const struct sent_record *record)
{
    struct json_value value;
    struct json_writer w;
    struct slice key;

    json_write_init(&w, out);
    json_begin_object(&w);
    json_add_string(&w, "text", record->text);
    for (struct json_iter it = json_iter(record->metadata); !out->overflowed && json_next(&it, &key, &value);)
        json_add_value(&w, key.p, value);
    json_end(&w);
}

int vector_texts_metadata(struct arena *a, const struct sent_record *record, size_t i, const char **ret, struct err *e)
{
    char field[48];
    struct buf out;

    buf_init(&out, LIMIT_VECTOR_METADATA);
    if (record->text && json_is_absent(json_get(record->metadata, "text")))
        print_with_text(&out, record);
    else if (json_is_absent(record->metadata))
        buf_add_str(&out, "{}");
    else
        json_print(&out, record->metadata);
    if (out.overflowed) {
        buf_clear(&out);
        snprintf(field, sizeof(field), "vectors[%zu].metadata", i);
        return err_add_field(e, field, "must be at most %d bytes of JSON", LIMIT_VECTOR_METADATA);
    }
    *ret = buf_to_arena(&out, a);
    return 0;
}

int vector_texts_query(struct request *req, const struct vector_space *space, struct vector_query *query,
                       const char **model, struct err *e)
{
    const struct slice text = slice_of(query->text);
    struct embed_job job = { .texts = &text, .n = 1, .purpose = EMBED_QUERY };
    struct embed_made made = { 0 };
    int r = embed_in_space(req, space, &job, model, &made, e);

    if (r < 0)
        return r;
    query->vector = made.items;
    query->n_dimensions = made.n_dimensions;
    if (!space->vectors->ops->has_text)
        query->text = NULL;
    return 0;
}
