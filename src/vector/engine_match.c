#include "vector/engine.h"
#include "vector/vector_filter.h"
#include <stdlib.h>

/* Where matching rows go: into a mask of a view, or as numbers into a buffer. */
struct match {
    const struct vector_filter *filter;
    const struct slab_view *view;
    uint64_t *mask;
    size_t n;
    struct buf *rows;                   /* NULL: the mask is wanted */
};

static int note(struct match *m, int64_t row)
{
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

/* An arena a row: the parsed metadata of a whole namespace would not fit one. */
static int visit(void *arg, int64_t row, const char *metadata, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value value = { 0 };
    struct match *m = arg;
    int r;

    r = json_parse(a, slice_of(metadata), &value, e);
    if (r < 0 || !vector_filter_matches(m->filter, value))
        return r;
    return note(m, row);
}

/* The string every match's documentId must be, when there is one: the index knows those rows. */
static const char *document_of(const struct vector_filter *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->items[i].op == VECTOR_EQ && strcmp(f->items[i].key, "documentId") == 0)
            return json_cstr(f->items[i].value);
    return NULL;
}

static int run(struct engine *engine, const struct vectors_db_space *of, struct json_value filter, struct match *m,
               struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct vector_filter f = { 0 };
    const char *document;
    int r;

    r = vector_filter_parse(a, filter, &f, e);
    if (r < 0)
        return r;
    m->filter = &f;
    document = document_of(&f);
    if (document)
        r = vectors_db_each_of_document(engine->db, of->id, document, visit, m, e);
    else
        r = vectors_db_each_metadata(engine->db, of->id, 0, visit, m, e);
    m->filter = NULL;
    return r;
}

int engine_match(struct engine *engine, const struct slab_view *view, const struct vectors_db_space *of,
                 struct json_value filter, uint64_t **ret_mask, size_t *ret_n, struct err *e)
{
    struct match m = { .view = view, .mask = xcalloc(slab_n_words(view->n), sizeof(uint64_t)) };
    int r;

    r = run(engine, of, filter, &m, e);
    if (r < 0) {
        free(m.mask);
        return r;
    }
    *ret_mask = m.mask;
    *ret_n = m.n;
    return 0;
}

int engine_match_rows(struct engine *engine, const struct vectors_db_space *of, struct json_value filter,
                      struct buf *ret_rows, struct err *e)
{
    struct match m = { .rows = ret_rows };
    int r;

    r = run(engine, of, filter, &m, e);
    return r < 0 ? r : buf_check(ret_rows, e);
}
