/* Astra DB, or another server of the Data API: the shared declarations of its files, and its interface to vector.c.
 * Private to src/vector.
 *
 * astra.c has the store and its changes, astra_read.c its commands and reading.
 */
#pragma once

#include "vector/remote/remote_store.h"

enum { ASTRA_DOCUMENTS_A_PAGE = 20, ASTRA_IDS_A_FILTER = 100, ASTRA_STATE_CHARS = 4096 };

extern const struct vectors_field astra_fields[];
int astra_open(const char *scope, struct json_value config, const struct guard *guard, struct vectors **ret,
               struct err *e) MUST_CHECK;

/* ---- commands ---- */

/* Opens the command's object; the caller ends it, astra_call() sends it and frees the body. */
void astra_begin(struct remote_body *b, const char *command);
/* Sends a command to the collection, or to the keyspace (collection NULL). A refusal is a reply with `errors`. */
int astra_call(const struct remote_op *op, struct arena *a, const char *collection, struct remote_body *b,
               struct remote_reply *ret, struct err *e) MUST_CHECK;
/* The same as astra_call(), but a refusal is an error. */
int astra_command(const struct remote_op *op, struct arena *a, const char *collection, struct remote_body *b,
                  struct remote_reply *ret, struct err *e) MUST_CHECK;
const char *astra_code(const struct remote_reply *reply); /* of the first error; "" */

/* The key of a record; with id "": the key of the namespace. */
const char *astra_key(struct arena *a, const char *ns, const char *id);
/* Begins the list of conditions that must all hold: first the namespace, then the caller's conditions. */
void astra_begin_filter(struct json_writer *w, const struct remote_collection *col);
void astra_add_keys(struct json_writer *w, struct arena *a, const struct remote_collection *col, const char *const *ids,
                    size_t n);
void astra_end_filter(struct json_writer *w);

/* ---- page by page ---- */

/* The state of reading a collection page by page. `state` is where the next page begins; "": at the start, and after
 * the end. */
struct astra_reading {
    const struct remote_collection *col;
    const char *const *ids;
    size_t n_ids;
    const char *projection;
    size_t n_dimensions;
    char state[ASTRA_STATE_CHARS];
};

void astra_write_reading(struct remote_body *b, struct arena *a, const struct astra_reading *what);
int astra_read_state(const struct remote_op *op, struct json_value data, size_t n_read, struct astra_reading *ret,
                     struct err *e) MUST_CHECK;

/* ---- functions of struct remote_peer ---- */

bool astra_can_express(const struct vector_condition *c);
int astra_nearest(const struct remote_op *op, const struct remote_collection *col, const struct remote_search *s,
                  int64_t n, struct arena *a, struct vector_hits *ret, struct err *e) MUST_CHECK;
int astra_read(const struct remote_op *op, const struct remote_collection *col,
               const struct remote_read_request *request, struct arena *a, struct vector_hits *ret,
               struct err *e) MUST_CHECK;
int astra_collect_ids(const struct remote_op *op, const struct remote_collection *col,
                      const struct vector_filter *filter, struct remote_ids *ids, struct err *e) MUST_CHECK;
int astra_count(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                struct err *e) MUST_CHECK;
int astra_probe(const struct remote_op *op, struct arena *a, const struct remote_collection *col, int64_t *ret,
                struct err *e) MUST_CHECK;
