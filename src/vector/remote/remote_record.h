/* A record as peers with flat fields only (Pinecone, Weaviate, Milvus, Astra) store it: Hearth's id, the namespace, the
 * vector's length before normalisation, the metadata as JSON text, and one token for each member of the metadata that
 * supports equality. A token is a hash of key and value: a peer only has to find the lists that contain one of several
 * strings, whatever the keys and values are.
 *
 * Private to src/vector; any thread.
 */
#pragma once

#include "vector/remote/remote_store.h"

#define REMOTE_ID "hearth_id"
#define REMOTE_NAMESPACE "hearth_namespace"
#define REMOTE_LENGTH "hearth_length"
#define REMOTE_JSON "hearth_json"
#define REMOTE_TOKENS "hearth_tokens"

enum {
    REMOTE_TOKEN_CHARS = 32,
    REMOTE_TOKENS_MAX =
        200, /* of a record; a record with more members has only REMOTE_MANY, which every condition matches */
};

#define REMOTE_MANY "many"

/* Adds the members to the open object. uuid: a further token, for peers that cannot filter by id; NULL: none. */
void remote_add_members(struct json_writer *w, const char *ns, const struct vector_record *record, double length,
                        const char *uuid);
/* Reads the members back from the object `members`. ret: as for remote_read_record(). */
int remote_read_members(const struct remote_op *op, struct arena *a, struct json_value members,
                        const struct remote_raw *more, size_t n_dimensions, struct vector_hit *ret,
                        struct err *e) MUST_CHECK;

/* Can tokens decide the condition? They decide equality and $in of strings, numbers and booleans. */
bool remote_has_tokens(const struct vector_condition *c);
/* The strings, REMOTE_MANY among them, of which every matching record has at least one. */
struct field_strings remote_tokens_of(struct arena *a, const struct vector_condition *c);
struct field_strings remote_uuids_of(struct arena *a, const char *const *ids, size_t n);
/* "a","b" */
const char *remote_quoted(struct arena *a, const struct field_strings *texts);
