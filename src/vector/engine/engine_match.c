#include "vector/engine/engine.h"
#include "vector/vector_filter.h"
#include <stdlib.h>

/* Where matching rows are noted: in a mask of a view, or as row numbers in a buffer. */
struct match {
    const struct vector_filter *filter;
    const struct slab_view *view;
    uint64_t *mask;
    size_t n;
    struct buf *rows; /* NULL: rows are noted in the mask */
};

/* Takes rows from the index of documents without reading their metadata. */
static int note(void *arg, int64_t row, const char *metadata, struct err *e)
{
    struct match *m = arg;
    size_t slot;

    if (m->rows) {
        buf_add(m->rows, &row, sizeof(row));
        return 0;
    }
    if (!slab_view_find(m->view, row, &slot))
        return ENGINE_STALE;
    m->mask[slot / SLAB_BLOCK_ROWS] |= UINT64_C(1) << slot % SLAB_BLOCK_ROWS;
    m->n++;
    return 0;
}

/* Uses one arena for each row, as the parsed metadata of a whole namespace would not fit into one. */
static int visit(void *arg, int64_t row, const char *metadata, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value value = { 0 };
    struct match *m = arg;
    int r;

    r = json_parse(a, slice_of(metadata), &value, e);
    if (r < 0 || !vector_filter_matches(m->filter, value))
        return r;
    return note(m, row, metadata, e);
}

/* The documentId that every match must have, for use with the index of documents; NULL: the filter requires none. */
static const char *document_of(const struct vector_filter *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->items[i].op == VECTOR_EQ && strcmp(f->items[i].key, "documentId") == 0)
            return json_cstr(f->items[i].value);
    return NULL;
}

/* Finds matches in the file, by the index of documents or among all rows of the namespace. */
static int match_in_file(struct engine *engine, const struct vectors_db_space *of, const struct vector_filter *f,
                         struct match *m, struct err *e)
{
    const char *document = document_of(f);

    m->filter = f;
    if (document)
        return vectors_db_each_of_document(engine->db, of->id, document, f->n == 1 ? note : visit, m, e);
    return vectors_db_each_metadata(engine->db, of->id, 0, visit, m, e);
}

int engine_match(struct engine *engine, const struct engine_match_request *request, uint64_t *ret_mask, size_t *ret_n,
                 struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct match m = { .view = request->view, .mask = ret_mask };
    struct vector_filter f = { 0 };
    const struct columns_match_request wanted = {
        .db = engine->db, .view = request->view, .of = request->of, .filter = &f
    };
    int r;

    r = vector_filter_parse(a, request->filter, &f, e);
    if (r < 0)
        return r;
    if (!document_of(&f))
        r = columns_match(&request->space->columns, &wanted, ret_mask, ret_n, e);
    if (!document_of(&f) && r != -E2BIG)
        return r;
    memset(ret_mask, 0, slab_n_words(request->view->n) * sizeof(*ret_mask));
    r = match_in_file(engine, request->of, &f, &m, e);
    *ret_n = m.n;
    return r;
}

int engine_match_rows(struct engine *engine, const struct vectors_db_space *of, struct json_value filter,
                      struct buf *ret_rows, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct match m = { .rows = ret_rows };
    struct vector_filter f = { 0 };
    int r;

    r = vector_filter_parse(a, filter, &f, e);
    if (r == 0)
        r = match_in_file(engine, of, &f, &m, e);
    return r < 0 ? r : buf_check(ret_rows, e);
}
