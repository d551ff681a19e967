/* Texts in place of vectors, in upserts and queries: they are embedded with the model of the namespace's vectors, which
 * takes the grant llm.embed as well. On a worker of the long pool; results are in the request's arena. */
#pragma once

#include "api/route.h"
#include "models/vector_space.h"

struct sent_record {
    const char *id;
    struct json_floats vector;  /* n 0: made of `text` */
    bool has_array, has_base64; /* how the vector was sent */
    const char *text;           /* NULL: none */
    struct json_value metadata;
};

/* Records of `struct sent_record`: each has a vector or a text, at most LIMIT_EMBED_TEXTS only a text. */
int vector_texts_check(const struct field_list *records, struct err *e) MUST_CHECK;
size_t vector_texts_count(const struct field_list *records); /* those without a vector */
/* Fills the vectors that are missing. *model: of the caller, NULL: not told; afterwards what made the vectors. */
int vector_texts_fill(struct request *req, const struct vector_space *space, const struct field_list *records,
                      const char **model, struct err *e) MUST_CHECK;
/* The i-th record's metadata as JSON, with its text unless the metadata has one. -EINVAL when that is longer than
 * LIMIT_VECTOR_METADATA, beyond which nothing is printed. */
int vector_texts_metadata(struct arena *a, const struct sent_record *record, size_t i, const char **ret,
                          struct err *e) MUST_CHECK;
/* Gives the query the vector of its text. The words count as well where the store can search them. */
int vector_texts_query(struct request *req, const struct vector_space *space, struct vector_query *query,
                       const char **model, struct err *e) MUST_CHECK;
