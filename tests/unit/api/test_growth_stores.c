/* The time to read replies of vector stores grows linearly with their length (growth.h). The text of a case is the
 * replies to one operation: one line per reply of a peer that speaks HTTP, one line per row of PostgreSQL (tabs between
 * columns, an empty line ends a statement). The last line is repeated again and again. */
#include "growth.h"

#include "base/hash.h"
#include "net/http_client.h"
#include "vector/pgvector/pgvector_session.h"
#include "vector/vector.h"

#include <libpq-fe.h>
#include <stdlib.h>

enum { COLUMNS_MAX = 8, TOP_K = 1000, PAGE = 1000 };

#define NS "sdk_f_x"

static struct slice rest; /* of the case's text */
static bool is_repeating;

static struct slice next_line(void)
{
    const char *newline = rest.n > 0 ? memchr(rest.p, '\n', rest.n) : NULL;
    struct slice line = { rest.p, newline ? (size_t)(newline - rest.p) : rest.n };

    if (newline || !is_repeating)
        rest = newline ? (struct slice){ newline + 1, rest.n - line.n - 1 } : (struct slice){ rest.p + line.n, 0 };
    return line;
}

/* ---- replaces net/http_call.c ---- */

int http_call(const struct http_call_request *request, struct arena *a, const atomic_bool *is_gone,
              struct http_answer *ret, struct err *e)
{
    struct slice line = next_line();

    *ret = (struct http_answer){ .status = 200, .body = { arena_slicedup(a, line), line.n } };
    return 0;
}

/* ---- replaces vector/pgvector/pgvector_session.c ---- */

void pg_pool_init(struct pg_pool *p, const char *url, const struct guard *guard)
{
    *p = (struct pg_pool){ 0 };
}
void pg_pool_clear(struct pg_pool *p)
{
}
void pg_session_close(struct pg_session *s)
{
}
bool pg_session_is_stale(const struct pg_session *s)
{
    return false;
}
bool pg_session_is_broken(const struct pg_session *s)
{
    return true;
}

int pg_session_open(struct pg_pool *p, const struct net_wait *wait, bool must_be_fresh, struct pg_session *ret,
                    struct err *e)
{
    *ret = (struct pg_session){ .pool = p, .wait = wait };
    return 0;
}

static PGresult *row_of(struct slice line)
{
    PGresult *row = PQmakeEmptyPGresult(NULL, PGRES_SINGLE_TUPLE);
    PGresAttDesc columns[COLUMNS_MAX] = { 0 };
    struct slice values[COLUMNS_MAX];
    int n = 0;

    for (const char *at = line.p; at && n < COLUMNS_MAX; n++) {
        const char *tab = memchr(at, '\t', (size_t)(line.p + line.n - at));

        columns[n].name = (char *)(uintptr_t) "c";
        values[n] = (struct slice){ at, (size_t)((tab ? tab : line.p + line.n) - at) };
        at = tab ? tab + 1 : NULL;
    }
    assert_true(PQsetResultAttrs(row, n, columns));
    for (int i = 0; i < n; i++)
        assert_true(PQsetvalue(row, 0, i, (char *)(uintptr_t)values[i].p, (int)values[i].n));
    return row;
}

int pg_run(struct pg_session *s, const struct pg_statement *st, struct err *e)
{
    struct pg_tally tally = { 0 };
    struct slice line;
    int r = 0;

    while (r == 0 && (line = next_line()).n > 0) {
        PGresult *row = row_of(line);

        r = pg_row_take((const struct pg_row *)row, st, &tally, e);
        PQclear(row);
    }
    return r;
}

/* ---- one operation of a store ---- */

static struct vectors *store_named(const char *name)
{
    static struct {
        const char *name;
        struct vectors *vectors;
    } stores[16];
    AUTO(arena_freep) struct arena *a = arena_new();
    struct json_value config = { 0 };
    struct err e = { 0 };
    size_t i = 0;

    while (stores[i].name && strcmp(stores[i].name, name) != 0)
        i++;
    assert_true(i + 1 < ARRAY_SIZE(stores));
    if (stores[i].name)
        return stores[i].vectors;
    assert_int_equal(hash_init(NULL), 0);
    assert_int_equal(
        json_parse(a,
                   SLICE_LIT("{\"url\":\"http://127.0.0.1:1\",\"connectionString\":\"postgresql://u:p@127.0.0.1/d\"}"),
                   &config, NULL),
        0);
    if (vectors_provider_find(name)->open("f", config, NULL, &stores[i].vectors, &e) < 0)
        fail_msg("%s: %s", name, e.text);
    stores[i].name = name;
    return stores[i].vectors;
}

/* f: a query with a filter that the peer applies only in part. */
static int query(struct vectors *v, const struct net_wait *wait, struct arena *a, char op, struct err *e)
{
    static const float vector[] = { 1, 2 };
    struct vector_query q = {
        .vector = vector, .n_dimensions = ARRAY_SIZE(vector), .top_k = TOP_K, .min_score = -2, .with_vectors = op == 'Q'
    };
    struct vector_hits hits = { 0 };

    if (op == 'f')
        assert_int_equal(json_parse(a, SLICE_LIT("{\"k\":{\"$ne\":2},\"s\":\"t\"}"), &q.filter, NULL), 0);
    return v->ops->query(v, wait, NS, &q, a, &hits, e);
}

static int upsert(struct vectors *v, const struct net_wait *wait, struct err *e)
{
    static const float vector[] = { 1, 2 };
    const struct vector_record record = { "a", vector, "{\"k\":1}" };

    return v->ops->upsert(v, wait, NS, &(struct vector_batch){ &record, 1, ARRAY_SIZE(vector) }, e);
}

static int remove_matches(struct vectors *v, const struct net_wait *wait, struct arena *a, struct err *e)
{
    struct vector_removal removal = { 0 };
    int64_t n = 0;

    assert_int_equal(json_parse(a, SLICE_LIT("{\"k\":{\"$ne\":2}}"), &removal.filter, NULL), 0);
    return v->ops->remove(v, wait, NS, &removal, &n, e);
}

static int operate(struct vectors *v, struct arena *a, char op, struct err *e)
{
    const struct net_wait wait = net_wait_of(600000, NULL, NULL);
    struct field_strings names = { 0 };
    struct vector_hits hits = { 0 };

    switch (op) {
    case 'l':
        return v->ops->list(v, &wait, NS, &(struct vector_list_request){ .limit = PAGE, .with_vectors = true }, a,
                            &hits, e);
    case 'n':
        return v->ops->namespaces(v, &wait, "sdk_f_", a, &names, e);
    case 'u':
        return upsert(v, &wait, e);
    case 'd':
        return remove_matches(v, &wait, a, e);
    case 'k':
        return v->ops->check(v, &wait, e);
    default:
        return query(v, &wait, a, op, e);
    }
}

static void read_store(struct arena *a, struct slice text, const struct growing *g)
{
    struct vectors *v = store_named(g->store);
    struct err e = { 0 };

    rest = text;
    is_repeating = strcmp(g->store, "pgvector") != 0;
    if (operate(v, a, g->op, &e) < 0)
        fail_msg("%s: %s", g->name, e.text);
}

/* ---- what grows ---- */

#define QDRANT(letter) read_store, .store = "qdrant", .op = letter
#define Q_COLLECTION "{\"result\":{\"config\":{\"params\":{\"vectors\":{\"size\":2,\"distance\":\"Cosine\"}}}}}\n"
#define Q_COUNT "{\"result\":{\"count\":100000}}\n"
#define Q_POINT                                                                                                        \
    "{\"id\":1,\"score\":0.5,\"vector\":[1,0],\"payload\":{\"hearth_id\":\"p%\",\"hearth_length\":2,\"metadata\":{\"s\":\"t\"}}}"

static void replies_of_qdrant_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "points that are nearest", 120, Q_COLLECTION Q_COUNT "{\"result\":{\"points\":[", Q_POINT, NULL, "]}}",
          QDRANT('Q') },
        { "points with metadata that Hearth compares", 120, Q_COLLECTION Q_COUNT "{\"result\":{\"points\":[", Q_POINT,
          NULL, "]}}", QDRANT('f') },
        { "points of a page", 120, Q_COLLECTION "{\"result\":{\"points\":[", Q_POINT, NULL,
          "],\"next_page_offset\":null}}\n{\"result\":[" Q_POINT "]}", QDRANT('l') },
        { "pages", 60, Q_COLLECTION, "{\"result\":{\"points\":[" Q_POINT "],\"next_page_offset\":1%}}", "\n",
          "\n{\"result\":{\"points\":[],\"next_page_offset\":null}}\n{\"result\":[]}", QDRANT('l') },
        { "points that are removed", 120, Q_COLLECTION "{\"result\":{\"points\":[", Q_POINT, NULL,
          "]}}\n{\"result\":{}}", QDRANT('d') },
        { "members of metadata", 1500,
          Q_COLLECTION Q_COUNT "{\"result\":{\"points\":[{\"payload\":{\"hearth_id\":\"a\",\"metadata\":{\"s\":\"t\",",
          "\"m%\":1", NULL, "}}}]}}", QDRANT('f') },
        { "members of a payload", 1500, Q_COLLECTION Q_COUNT "{\"result\":{\"points\":[{\"payload\":{", "\"m%\":1",
          NULL, ",\"hearth_id\":\"a\"}}]}}", QDRANT('q') },
        { "dimensions", 1000,
          "{\"result\":{\"config\":{\"params\":{\"vectors\":{\"size\":%,\"distance\":\"Cosine\"}}}}}\n"
          "{\"result\":{\"points\":[{\"payload\":{\"hearth_id\":\"a\"}}]}}\n{\"result\":[{\"payload\":{\"hearth_id\":\"a\",\"hearth_length\":1},\"vector\":[",
          "0.%", NULL, "]}]}", QDRANT('l') },
        { "collections", 120, "{\"result\":{\"collections\":[", "{\"name\":\"sdk_f_%\"}", NULL,
          "]}}\n{\"result\":{\"points\":[{\"payload\":{\"hearth_namespace\":\"sdk_f_x\"}}]}}", QDRANT('n') },
        { "collections of others", 1200, "{\"result\":{\"collections\":[", "{\"name\":\"other%\"}", NULL, "]}}",
          QDRANT('n') },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

#define CHROMA(letter) read_store, .store = "chroma", .op = letter
#define C_COLLECTION_OF(n)                                                                                             \
    "{\"id\":\"11111111-1111-4111-8111-111111111111\",\"name\":\"" NS "\",\"dimension\":" n                            \
    ",\"metadata\":{\"hearth_namespace\":\"" NS "\"},"                                                                 \
    "\"configuration_json\":{\"hnsw\":{\"space\":\"cosine\"}}}"
#define C_COLLECTION C_COLLECTION_OF("2") "\n"
#define C_METADATA "{\"hearth_json\":\"{\\\"s\\\":\\\"t\\\"}\",\"hearth_length\":1}"

static void replies_of_chroma_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "ids that are nearest", 120, C_COLLECTION "100000\n{\"ids\":[[", "\"a%\"", NULL, "]]}", CHROMA('q') },
        { "metadatas", 1200, C_COLLECTION "100000\n{\"ids\":[[\"a\",\"b\"]],\"metadatas\":[[", C_METADATA, NULL, "]]}",
          CHROMA('f') },
        { "metadatas before the ids", 1200, C_COLLECTION "100000\n{\"metadatas\":[[", C_METADATA, NULL,
          "]],\"ids\":[[\"a\",\"b\"]]}", CHROMA('f') },
        { "distances", 2000, C_COLLECTION "100000\n{\"ids\":[[\"a\"]],\"distances\":[[", "0.%", NULL, "]]}",
          CHROMA('q') },
        { "lists of lists", 2000, C_COLLECTION "100000\n{\"ids\":[[\"a\"]],\"embeddings\":[[", "[0.5,0.%]", NULL,
          "]],\"metadatas\":[[{\"hearth_length\":1}]]}", CHROMA('Q') },
        { "members of metadata", 1500, C_COLLECTION "100000\n{\"ids\":[[\"a\"]],\"metadatas\":[[{", "\"m%\":1", NULL,
          ",\"hearth_length\":1}]]}", CHROMA('f') },
        { "members of metadata as text", 1500,
          C_COLLECTION "100000\n{\"ids\":[[\"a\"]],\"metadatas\":[[{\"hearth_json\":\"{\\\"s\\\":\\\"t\\\",",
          "\\\"m%\\\":1", NULL, "}\"}]]}", CHROMA('f') },
        { "ids of a page", 120, C_COLLECTION "{\"ids\":[", "\"a%\"", NULL, "]}\n{\"ids\":[]}", CHROMA('l') },
        { "ids that are removed", 120, C_COLLECTION "{\"ids\":[", "\"a%\"", NULL, "]}\n{}", CHROMA('d') },
        { "dimensions", 1000,
          C_COLLECTION_OF(
              "%") "\n{\"ids\":[\"a\"]}\n{\"ids\":[\"a\"],\"metadatas\":[{\"hearth_length\":1}],\"embeddings\":[[",
          "0.%", NULL, "]]}", CHROMA('l') },
        { "ids of those that are replaced", 2000,
          C_COLLECTION "{\"max_batch_size\":100}\n{\"metadatas\":[{\"old\":1}],\"ids\":[", "\"a%\"", NULL,
          ",\"a\"]}\n{}", CHROMA('u') },
        { "members of one that is replaced", 1500, C_COLLECTION "{\"ids\":[\"a\"],\"metadatas\":[{", "\"m%\":1", NULL,
          "}]}\n{}", CHROMA('u') },
        { "collections", 24, "[", C_COLLECTION_OF("2"), NULL, "]\n1", CHROMA('n') },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

#define POSTGRES(letter) read_store, .store = "pgvector", .op = letter

static void rows_of_postgres_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "rows that are nearest", 120, "2\n\n", "a%\t0.5\t{\"s\": \"t\"}\t[1,0]", "\n", "\n", POSTGRES('Q') },
        { "rows of a page", 120, "2\n\n", "a%\t0\t{}\t[1,0]", "\n", "\n", POSTGRES('l') },
        { "members of metadata", 1500, "2\n\na\t0\t{", "\"m%\": 1", NULL, "}\t[1,0]\n", POSTGRES('l') },
        { "numbers beyond 64 bits in metadata", 1000, "2\n\na\t0\t{\"m\": [", "99999999999999999999%", NULL,
          "]}\t[1,0]\n", POSTGRES('l') },
        { "digits of a number", 4000, "2\n\na\t0\t{\"m\": 1", "0", "", ".0e-40000}\t[1,0]\n", POSTGRES('l') },
        { "texts that are quotes", 1500, "2\n\na\t0\t{\"m\": \"", "\\\\\\\"", "", "\"}\t[1,0]\n", POSTGRES('l') },
        { "dimensions", 1000, "%\n\na\t0\t{}\t[", "0.%", NULL, "]\n", POSTGRES('l') },
        { "namespaces", 1200, "", "sdk_f_%", "\n", "\n", POSTGRES('n') },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

/* ---- peers that keep our members as they are ---- */

#define MEMBERS(id) "\"hearth_id\":\"" id "\",\"hearth_json\":\"{\\\"s\\\":\\\"t\\\"}\",\"hearth_length\":2"

#define MILVUS(letter) read_store, .store = "milvus", .op = letter
#define M_COLLECTION(n)                                                                                                \
    "{\"code\":0,\"data\":{\"fields\":[{\"name\":\"vector\",\"params\":[{\"key\":\"dim\",\"value\":\"" n               \
    "\"}]}],\"indexes\":[{"                                                                                            \
    "\"fieldName\":\"vector\",\"metricType\":\"COSINE\"}]}}\n"
#define M_COUNT "{\"code\":0,\"data\":[{\"count(*)\":900}]}\n"
#define M_ROW "{\"distance\":0.5,\"vector\":[1,0]," MEMBERS("p%") "}"

static void replies_of_milvus_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "rows that are nearest", 120, M_COLLECTION("2") M_COUNT "{\"code\":0,\"data\":[", M_ROW, NULL, "]}",
          MILVUS('Q') },
        { "rows that Hearth compares", 120, M_COLLECTION("2") M_COUNT "{\"code\":0,\"data\":[", M_ROW, NULL, "]}",
          MILVUS('f') },
        { "rows of a page", 120, M_COLLECTION("2") M_COUNT "{\"code\":0,\"data\":[", M_ROW, NULL,
          "]}\n{\"code\":0,\"data\":[" M_ROW "]}", MILVUS('l') },
        { "rows that are removed", 120, M_COLLECTION("2") M_COUNT "{\"code\":0,\"data\":[", M_ROW, NULL,
          "]}\n{\"code\":0}", MILVUS('d') },
        { "members of a row", 1500, M_COLLECTION("2") M_COUNT "{\"code\":0,\"data\":[{", "\"m%\":1", NULL,
          "," MEMBERS("a") "}]}", MILVUS('q') },
        { "fields of a collection", 1500, "{\"code\":0,\"data\":{\"fields\":[", "{\"name\":\"f%\"}", NULL,
          ",{\"name\":\"vector\",\"params\":[{\"key\":\"dim\",\"value\":2}]}],"
          "\"indexes\":[{\"fieldName\":\"vector\",\"metricType\":\"COSINE\"}]}}\n" M_COUNT "{\"code\":0,\"data\":[]}",
          MILVUS('l') },
        { "parameters of a field", 1500, "{\"code\":0,\"data\":{\"fields\":[{\"name\":\"vector\",\"params\":[",
          "{\"key\":\"k%\"}", NULL,
          ",{\"key\":\"dim\",\"value\":2}]}],"
          "\"indexes\":[{\"fieldName\":\"vector\",\"metricType\":\"COSINE\"}]}}\n" M_COUNT "{\"code\":0,\"data\":[]}",
          MILVUS('l') },
        { "dimensions", 1000,
          M_COLLECTION("%") M_COUNT
          "{\"code\":0,\"data\":[{" MEMBERS("a") "}]}\n{\"code\":0,\"data\":[{" MEMBERS("a") ",\"vector\":[",
          "0.%", NULL, "]}]}", MILVUS('l') },
        { "collections of others", 1200, "{\"code\":0,\"data\":[", "\"other%\"", NULL, "]}", MILVUS('n') },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

#define WEAVIATE(letter) read_store, .store = "weaviate", .op = letter
#define W_NAME "Hearth_3bca5ea6f4130c4f1c60144e6f5e0352caf94384"
#define W_CLASS(n)                                                                                                     \
    "{\"class\":\"" W_NAME "\",\"description\":\"Vectors of Hearth: " n " " NS                                         \
    "\",\"vectorIndexConfig\":{\"distance\":\"dot\"}}"
#define W_COUNT "{\"data\":{\"Aggregate\":{\"" W_NAME "\":[{\"meta\":{\"count\":900}}]}}}"
#define W_GET "{\"data\":{\"Get\":{\"" W_NAME "\":["
#define W_HIT "{" MEMBERS("p%") ",\"_additional\":{\"distance\":-0.5,\"vector\":[1,0]}}"
#define W_OBJECT "{\"id\":\"11111111-1111-4111-8111-111111111111\",\"properties\":{" MEMBERS("p%") "}}"

static void replies_of_weaviate_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "objects that are nearest", 120, W_CLASS("2") "\n" W_COUNT "\n" W_GET, W_HIT, NULL, "]}}}", WEAVIATE('Q') },
        { "objects that Hearth compares", 120, W_CLASS("2") "\n" W_COUNT "\n" W_GET, W_HIT, NULL, "]}}}",
          WEAVIATE('f') },
        { "objects of a page", 100, W_CLASS("2") "\n{\"objects\":[", W_OBJECT, NULL, "]}\n" W_GET W_HIT "]}}}",
          WEAVIATE('l') },
        { "objects that are removed", 100, W_CLASS("2") "\n{\"objects\":[", W_OBJECT, NULL, "]}\n{}", WEAVIATE('d') },
        { "members of an object", 1500, W_CLASS("2") "\n" W_COUNT "\n" W_GET "{", "\"m%\":1", NULL,
          "," MEMBERS("a") "}]}}}", WEAVIATE('q') },
        { "dimensions", 1000,
          W_CLASS("%") "\n{\"objects\":[" W_OBJECT "]}\n" W_GET "{" MEMBERS("a") ",\"_additional\":{\"vector\":[",
          "0.%", NULL, "]}}]}}}", WEAVIATE('l') },
        { "classes", 120, "{\"classes\":[", W_CLASS("2"), NULL, "]}\n" W_COUNT, WEAVIATE('n') },
        { "errors of one object", 1500, W_CLASS("2") "\n[{\"result\":{\"status\":\"SUCCESS\",\"errors\":{\"error\":[",
          "{\"message\":\"%\"}", NULL, "]}}}]", WEAVIATE('u') },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

#define PINECONE(letter) read_store, .store = "pinecone", .op = letter
#define P_STATS(n) "{\"dimension\":" n ",\"namespaces\":{\"" NS "\":{\"vectorCount\":900}}}\n"
#define P_MATCH "{\"id\":\"u\",\"score\":0.5,\"values\":[1,0],\"metadata\":{" MEMBERS("p%") "}}"
#define P_ID "{\"id\":\"11111111-1111-4111-8111-111111111111\"}"
#define P_FETCHED "{\"vectors\":{\"u\":" P_MATCH "}}"

static void replies_of_pinecone_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "matches", 120, P_STATS("2") P_STATS("2") "{\"matches\":[", P_MATCH, NULL, "]}", PINECONE('Q') },
        { "matches that Hearth compares", 8, P_STATS("2") P_STATS("2") "{\"matches\":[", P_MATCH, NULL, "]}",
          PINECONE('f') },
        { "namespaces", 1000, "{\"dimension\":2,\"namespaces\":{", "\"sdk_f_%\":{\"vectorCount\":1}", NULL, "}}",
          PINECONE('n') },
        { "namespaces before the one", 1000, "{\"dimension\":2,\"namespaces\":{", "\"sdk_f_%\":{\"vectorCount\":1}",
          NULL, "}}\n" P_STATS("2") "{\"matches\":[]}", PINECONE('q') },
        { "ids of a page", 12, P_STATS("2") "{\"vectors\":[", P_ID, NULL, "]}\n" P_FETCHED, PINECONE('l') },
        { "members of metadata", 1500, P_STATS("2") P_STATS("2") "{\"matches\":[{\"metadata\":{", "\"m%\":1", NULL,
          "," MEMBERS("a") "}}]}", PINECONE('q') },
        { "dimensions", 1000,
          P_STATS("%") "{\"vectors\":[" P_ID "]}\n" P_FETCHED
                       "\n{\"vectors\":{\"u\":{\"metadata\":{" MEMBERS("a") "},\"values\":[",
          "0.%", NULL, "]}}}", PINECONE('l') },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

#define ASTRA(letter) read_store, .store = "astra", .op = letter
#define A_SPACE(n) "{\"data\":{\"document\":{\"hearth_dimensions\":" n "}}}\n"
#define A_COUNT "{\"status\":{\"count\":900}}\n"
#define A_DOCUMENT "{\"_id\":\"u\",\"$similarity\":0.75,\"$vector\":[1,0]," MEMBERS("p%") "}"

static void replies_of_astra_grow_with_their_length(void **state)
{
    static const struct growing cases[] = {
        { "documents that are nearest", 120, A_SPACE("2") A_COUNT "{\"data\":{\"documents\":[", A_DOCUMENT, NULL, "]}}",
          ASTRA('Q') },
        { "pages", 60, A_SPACE("2"), "{\"data\":{\"documents\":[" A_DOCUMENT "],\"nextPageState\":\"%\"}}", "\n",
          "\n{\"data\":{\"documents\":[" A_DOCUMENT "],\"nextPageState\":null}}", ASTRA('l') },
        { "members of a document", 1500, A_SPACE("2") A_COUNT "{\"data\":{\"documents\":[{", "\"m%\":1", NULL,
          "," MEMBERS("a") "}]}}", ASTRA('q') },
        { "dimensions", 1000,
          A_SPACE("%") "{\"data\":{\"documents\":[{" MEMBERS("a") "}]}}\n{\"data\":{\"documents\":[{" MEMBERS(
              "a") ",\"$vector\":[",
          "0.%", NULL, "]}]}}", ASTRA('l') },
        { "responses and errors", 1500, A_SPACE("2") "{\"errors\":[{\"errorCode\":\"DOCUMENT_ALREADY_EXISTS\"}",
          ",{\"message\":\"%\"}", "", "],\"status\":{\"documentResponses\":[{\"status\":\"OK\"}]}}", ASTRA('u') },
        { "namespaces", 2, "",
          "{\"data\":{\"documents\":[{\"hearth_namespace\":\"sdk_f_%\",\"hearth_dimensions\":2}],\"nextPageState\":\"%\"}}\n{\"status\":{\"count\":1}}",
          "\n", "\n{\"data\":{\"documents\":[]}}", ASTRA('n') },
    };

    assert_all_linear(cases, ARRAY_SIZE(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_of_qdrant_grow_with_their_length),
        cmocka_unit_test(replies_of_chroma_grow_with_their_length),
        cmocka_unit_test(rows_of_postgres_grow_with_their_length),
        cmocka_unit_test(replies_of_milvus_grow_with_their_length),
        cmocka_unit_test(replies_of_weaviate_grow_with_their_length),
        cmocka_unit_test(replies_of_pinecone_grow_with_their_length),
        cmocka_unit_test(replies_of_astra_grow_with_their_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
