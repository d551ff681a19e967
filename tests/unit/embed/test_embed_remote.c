#include "embed/embed.h"

#include "../net/upstream.h"
#include "base/base64.h"
#include "base/fields.h"
#include "http/peer.h"

/* A provider whose vector of the text "7" is [7, 1]. */
struct provider {
    const char *shape; /* "openai", "base64", "ollama", "legacy" */
    const char *fault; /* the fault of its answers; NULL: none */
    int n_faults;      /* number of faulty answers; later answers are correct */
    atomic_int n_requests;
    in_port_t ports[64]; /* of the clients' ends: one for each connection */
    size_t n_ports;
    size_t most_texts;
    char heard[512]; /* the last request's body */
    char path[128], query[64], authorization[64];
};

static void write_vector(struct json_writer *w, const char *name, const char *text)
{
    json_begin_array_as(w, name);
    json_add_double(w, NULL, strtod(text, NULL));
    json_add_int(w, NULL, 1);
    json_end(w);
}

static void write_base64(struct json_writer *w, const char *text)
{
    const float vector[] = { strtof(text, NULL), 1 };
    struct buf out;

    buf_init(&out, 64);
    base64_encode(&out, (struct slice){ (const char *)vector, sizeof(vector) });
    json_add_slice(w, "embedding", buf_slice(&out));
    buf_clear(&out);
}

/* Last text first: the order must come from the places, not be assumed. */
static void write_openai(struct json_writer *w, const struct field_strings *texts, const char *shape, const char *fault)
{
    json_begin_array_as(w, "data");
    for (size_t i = texts->n; i-- > 0;) {
        if (i == 0 && fault && strcmp(fault, "one is missing") == 0)
            continue;
        json_begin_object(w);
        json_add_int(w, "index", fault && strcmp(fault, "a place twice") == 0 ? 0 : (int64_t)i);
        if (i == 0 && fault && strcmp(fault, "other dimensions") == 0)
            json_add_raw(w, "embedding", "[1,2,3]");
        else if (i == 0 && fault && strcmp(fault, "no numbers") == 0)
            json_add_raw(w, "embedding", "[1,\"x\"]");
        else if (i == 0 && fault && strcmp(fault, "empty") == 0)
            json_add_raw(w, "embedding", "[]");
        else if (i == 0 && fault && strcmp(fault, "infinite") == 0)
            json_add_string(w, "embedding", "AACAfwAAgD8="); /* [inf, 1] */
        else if (i == 0 && fault && strcmp(fault, "no base64") == 0)
            json_add_string(w, "embedding", "AACAP*AAgD8=");
        else if (strcmp(shape, "base64") == 0)
            write_base64(w, texts->items[i]);
        else
            write_vector(w, "embedding", texts->items[i]);
        json_end(w);
    }
    json_end(w);
    json_add_string(w, "model", "told-model");
    json_add_raw(w, "usage", "{\"prompt_tokens\":5}");
}

static void write_ollama(struct json_writer *w, const struct field_strings *texts)
{
    json_begin_array_as(w, "embeddings");
    for (size_t i = 0; i < texts->n; i++)
        write_vector(w, NULL, texts->items[i]);
    json_end(w);
    json_add_int(w, "prompt_eval_count", 5);
}

static void write_answer(struct provider *p, struct http_exchange *x, const struct field_strings *texts,
                         const char *fault)
{
    struct json_writer w;

    json_write_init(&w, &x->response.body);
    json_begin_object(&w);
    if (strcmp(p->shape, "openai") == 0 || strcmp(p->shape, "base64") == 0)
        write_openai(&w, texts, p->shape, fault);
    else if (strcmp(p->shape, "ollama") == 0)
        write_ollama(&w, texts);
    else
        write_vector(&w, "embedding", texts->items[0]);
    json_end(&w);
}

static void note_connection(struct provider *p, const struct http_exchange *x)
{
    in_port_t port = x->request.connection->remote.in.sin_port;

    for (size_t i = 0; i < p->n_ports; i++)
        if (p->ports[i] == port)
            return;
    assert_true(p->n_ports < ARRAY_SIZE(p->ports));
    p->ports[p->n_ports++] = port;
}

static void answer(void *arg, struct http_exchange *x)
{
    static const struct field fields[] = { { .kind = FIELD_KIND_STRINGS, .name = "input", .offset = 0 }, FIELD_END };
    struct provider *p = arg;
    const char *fault = p->n_requests++ < p->n_faults ? p->fault : NULL,
               *authorization = http_header(&x->request, "authorization");
    struct field_strings texts = { 0 };
    struct json_value root = { 0 };

    note_connection(p, x);
    assert_int_equal(json_parse(x->arena, x->request.body, &root, NULL), 0);
    assert_int_equal(fields_read(fields, root, &texts, x->arena, "", NULL), 0);
    p->most_texts = MAX(p->most_texts, texts.n);
    snprintf(p->heard, sizeof(p->heard), "%.*s", (int)x->request.body.n, x->request.body.p);
    snprintf(p->path, sizeof(p->path), "%s", x->request.path);
    snprintf(p->query, sizeof(p->query), "%s", x->request.query);
    snprintf(p->authorization, sizeof(p->authorization), "%s", authorization ? authorization : "");
    x->response.status = 200;
    if (fault && fault[0] >= '1' && fault[0] <= '9') {
        x->response.status = (int)strtol(fault, NULL, 10);
        http_response_header(x, "retry-after", strstr(fault, "late") ? "60" : "0");
        buf_add_str(&x->response.body, "{\"error\":\"no\"}");
    } else if (fault && strcmp(fault, "no JSON") == 0) {
        buf_add_str(&x->response.body, "<html>");
    } else {
        write_answer(p, x, &texts, fault);
    }
    http_exchange_send(x);
}

static int refuse(const void *arg, int status, struct slice body, struct err *e)
{
    int r = status == 429 ? -EBUSY : status >= 500 ? -EAGAIN : -EIO;

    return err_set(e, r, "REFUSED", "it said %d %.*s", status, (int)body.n, body.p);
}

static int64_t retry_after_ms(const struct http_answer *answer)
{
    const char *text = http_answer_header(answer, "retry-after");

    return text ? strtol(text, NULL, 10) * 1000 : 0;
}

/* ---- one call ---- */

static const struct http_call_header headers[] = { { "content-type", "application/json" },
                                                   { "authorization", "Bearer k" } };

struct case_of {
    struct rig rig;
    struct provider provider;
    struct embed_service service;
    struct embed_request request;
    const char *path;
};

static void open_case(struct case_of *c, const struct embed_protocol *protocol, const char *shape, size_t n_texts,
                      size_t max_batch)
{
    struct slice *texts;

    c->provider.shape = shape;
    rig_open(&c->rig, answer, &c->provider);
    texts = arena_array(c->rig.a, n_texts, sizeof(*texts));
    for (size_t i = 0; i < n_texts; i++)
        texts[i] = slice_of(arena_printf(c->rig.a, "%zu", i + 1));
    c->service = (struct embed_service){ "double", protocol, .max_batch = max_batch, .n_parallel = 3 };
    c->request = (struct embed_request){ .texts = texts, .n = n_texts, .model = "asked-model" };
}

static void close_case(struct case_of *c)
{
    rig_close(&c->rig);
}

static void nothing(void *arg)
{
}

static int run(struct case_of *c, struct embed_vectors *ret, struct err *e)
{
    const struct embed_account account = {
        .name = "double",
        .service = &c->service,
        .base_url = rig_url(&c->rig, c->path ? c->path : "/v1"),
        .headers = headers,
        .n_headers = 2,
        .n_retries = 2,
        .total_ms = WAIT_MS,
        .retry_after_max_ms = 1000,
        .refuse = refuse,
        .retry_after_ms = retry_after_ms,
    };

    int r = embed_remote(&account, &c->request, c->rig.a, ret, e);

    loop_call(c->rig.loop, nothing, NULL); /* what the provider noted of answered requests is seen by this thread */
    return r;
}

static void assert_in_order(const struct embed_vectors *v, size_t n)
{
    assert_int_equal(v->n, n);
    assert_int_equal(v->n_dimensions, 2);
    for (size_t i = 0; i < n; i++)
        assert_true(v->items[2 * i] == (float)(i + 1) && v->items[2 * i + 1] == 1);
}

static void vectors_come_in_the_order_of_the_texts_whatever_the_batches(void **state)
{
    static const struct {
        size_t n_texts, max_batch;
        int n_requests;
    } sizes[] = { { 1, 500, 1 }, { 5, 5, 1 }, { 6, 5, 2 }, { 100, 7, 15 }, { 3, 1, 3 } };

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        AUTO(close_case) struct case_of c = { 0 };
        struct embed_vectors v = { 0 };
        struct err e = { 0 };

        open_case(&c, &embed_openai, "openai", sizes[i].n_texts, sizes[i].max_batch);
        if (run(&c, &v, &e) < 0)
            fail_msg("%s", e.text);
        assert_in_order(&v, sizes[i].n_texts);
        assert_string_equal(v.model, "told-model");
        assert_int_equal(v.n_tokens, 5 * sizes[i].n_requests);
        assert_int_equal(c.provider.n_requests, sizes[i].n_requests);
        assert_in_range(c.provider.most_texts, 1, sizes[i].max_batch);
    }
}

static void the_connections_of_helper_threads_are_used_again(void **state)
{
    AUTO(close_case) struct case_of c = { 0 };
    struct embed_vectors v = { 0 };

    open_case(&c, &embed_openai, "openai", 12, 1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(run(&c, &v, NULL), 0);
    assert_int_equal(c.provider.n_requests, 60);
    assert_in_range(c.provider.n_ports, 1, c.service.n_parallel);
}

static void the_request_is_that_of_the_protocol(void **state)
{
    AUTO(close_case) struct case_of c = { 0 };
    struct embed_vectors v = { 0 };

    open_case(&c, &embed_openai, "openai", 2, 500);
    c.request.n_dimensions = 2;
    assert_int_equal(run(&c, &v, NULL), 0);
    assert_string_equal(c.provider.path, "/v1/embeddings");
    assert_string_equal(c.provider.authorization, "Bearer k");
    assert_string_equal(c.provider.heard, "{\"model\":\"asked-model\",\"input\":[\"1\",\"2\"],\"dimensions\":2}");
}

static void each_service_is_reported_what_it_wants_to_know(void **state)
{
    static const struct {
        const char *id;
        enum embed_purpose purpose;
        int64_t n_dimensions;
        const char *heard;
    } cases[] = {
        { "openai", EMBED_QUERY, 2,
          "{\"model\":\"asked-model\",\"input\":[\"1\"],\"dimensions\":2,\"encoding_format\":\"base64\"}" },
        { "voyageai", EMBED_QUERY, 2,
          "{\"model\":\"asked-model\",\"input\":[\"1\"],\"output_dimension\":2,\"encoding_format\":\"base64\",\"input_type\":\"query\",\"truncation\":false}" },
        { "voyageai", EMBED_DOCUMENT, 0,
          "{\"model\":\"asked-model\",\"input\":[\"1\"],\"encoding_format\":\"base64\",\"input_type\":\"document\",\"truncation\":false}" },
        { "voyageai", EMBED_ANY, 0,
          "{\"model\":\"asked-model\",\"input\":[\"1\"],\"encoding_format\":\"base64\",\"truncation\":false}" },
        { "cohere", EMBED_QUERY, 0, "{\"model\":\"asked-model\",\"input\":[\"1\"]}" },
        { "ollama", EMBED_QUERY, 2,
          "{\"model\":\"asked-model\",\"input\":[\"1\"],\"dimensions\":2,\"truncate\":false}" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(close_case) struct case_of c = { 0 };
        struct embed_vectors v = { 0 };

        open_case(&c, &embed_openai, strcmp(cases[i].id, "ollama") == 0 ? "ollama" : "base64", 1, 500);
        c.service = *embed_service_of(cases[i].id);
        c.request.purpose = cases[i].purpose;
        c.request.n_dimensions = cases[i].n_dimensions;
        assert_int_equal(run(&c, &v, NULL), 0);
        assert_string_equal(c.provider.heard, cases[i].heard);
    }
}

static void vectors_may_come_as_base64(void **state)
{
    AUTO(close_case) struct case_of c = { 0 };
    struct embed_vectors v = { 0 };

    open_case(&c, &embed_openai, "base64", 100, 7);
    assert_int_equal(run(&c, &v, NULL), 0);
    assert_in_order(&v, 100);
}

static void an_address_of_azures_deployments_is_asked_in_their_way(void **state)
{
    static const struct {
        const char *path, *requested, *query;
    } cases[] = {
        { "/openai/v1", "/openai/v1/embeddings", "" },
        { "/openai/deployments", "/openai/deployments/asked-model/embeddings", "api-version=2024-10-21" },
        { "/openai/deployments/", "/openai/deployments/asked-model/embeddings", "api-version=2024-10-21" },
        { "/openai/deployments/mine", "/openai/deployments/mine/embeddings", "api-version=2024-10-21" },
        { "/openai/deployments/mine?api-version=2023-05-15", "/openai/deployments/mine/embeddings",
          "api-version=2023-05-15" },
        { "/openai/deployments?api-version=2023-05-15", "/openai/deployments/asked-model/embeddings",
          "api-version=2023-05-15" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(close_case) struct case_of c = { .path = cases[i].path };
        struct embed_vectors v = { 0 };

        open_case(&c, &embed_openai, "openai", 1, 500);
        c.service = *embed_service_of("azure");
        assert_int_equal(run(&c, &v, NULL), 0);
        assert_string_equal(c.provider.path, cases[i].requested);
        assert_string_equal(c.provider.query, cases[i].query);
        assert_int_equal(embed_is_deployment(&c.service, cases[i].path), *cases[i].query != '\0');
    }
    assert_false(embed_is_deployment(embed_service_of("openai"), "https://x/openai/deployments"));
}

static void a_deployments_name_is_no_path(void **state)
{
    AUTO(close_case) struct case_of c = { .path = "/openai/deployments" };
    struct embed_vectors v = { 0 };
    struct err e = { 0 };

    open_case(&c, &embed_openai, "openai", 1, 500);
    c.service = *embed_service_of("azure");
    c.request.model = "../secrets?x=";
    assert_int_equal(run(&c, &v, &e), -EINVAL);
    assert_string_equal(e.code, "INVALID_MODEL");
    assert_int_equal(c.provider.n_requests, 0);
}

static void ollama_is_asked_in_its_own_way(void **state)
{
    AUTO(close_case) struct case_of c = { 0 };
    struct embed_vectors v = { 0 };

    open_case(&c, &embed_ollama, "ollama", 40, 32);
    assert_int_equal(run(&c, &v, NULL), 0);
    assert_in_order(&v, 40);
    assert_string_equal(c.provider.path, "/v1/api/embed");
    assert_string_equal(v.model, "asked-model");
    assert_int_equal(c.provider.n_requests, 2);
}

static void a_server_that_takes_one_text_at_a_time_gets_them_so(void **state)
{
    AUTO(close_case) struct case_of c = { 0 };
    struct embed_vectors v = { 0 };

    open_case(&c, &embed_ollama, "legacy", 10, 32);
    assert_int_equal(run(&c, &v, NULL), 0);
    assert_in_order(&v, 10);
}

static void what_may_pass_is_tried_again(void **state)
{
    static const char *const faults[] = { "503", "429", "500" };

    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        AUTO(close_case) struct case_of c = { .provider = { .fault = faults[i], .n_faults = 1 } };
        struct embed_vectors v = { 0 };

        open_case(&c, &embed_openai, "openai", 3, 500);
        assert_int_equal(run(&c, &v, NULL), 0);
        assert_in_order(&v, 3);
        assert_int_equal(c.provider.n_requests, 2);
    }
}

static void what_will_not_pass_ends_the_call(void **state)
{
    static const struct {
        const char *fault;
        int r, n_requests;
        const char *says;
    } faults[] = {
        { "401", -EIO, 1, "it said 401 {\"error\":\"no\"}" },
        { "429 late", -EBUSY, 1, "it said 429 {\"error\":\"no\"}" },
        { "503", -EAGAIN, 3, "it said 503 {\"error\":\"no\"}" },
        { "no JSON", -EBADMSG, 1, "it answered with something that is no JSON." },
        { "one is missing", -EBADMSG, 1, "it answered without one `embedding` for each of the 3 texts." },
        { "a place twice", -EBADMSG, 1, "it answered without one `embedding` for each of the 3 texts." },
        { "other dimensions", -EBADMSG, 1, "it answered with vectors of 3 and 2 dimensions." },
        { "no numbers", -EBADMSG, 1, "it answered with a vector that does not consist of numbers." },
        { "empty", -EBADMSG, 1, "it answered with a vector of 0 dimensions." },
        { "infinite", -EBADMSG, 1, "it answered with a vector that does not consist of numbers." },
        { "no base64", -EBADMSG, 1, "it answered with a vector that does not consist of numbers." },
        { "400", -EIO, 1, "One of `input[0]` to `input[2]`: it said 400 {\"error\":\"no\"}" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        AUTO(close_case) struct case_of c = { .provider = { .fault = faults[i].fault, .n_faults = 99 } };
        struct embed_vectors v = { 0 };
        struct err e = { 0 };

        open_case(&c, &embed_openai, "openai", 3, 500);
        assert_int_equal(run(&c, &v, &e), faults[i].r);
        assert_string_equal(e.text, faults[i].says);
        assert_int_equal(c.provider.n_requests, faults[i].n_requests);
        assert_null(v.items);
        assert_int_equal(v.retry_after_ms, strcmp(faults[i].fault, "429 late") == 0 ? 60000 : 0);
    }
}

static void after_a_failure_no_further_batch_is_begun(void **state)
{
    AUTO(close_case) struct case_of c = { .provider = { .fault = "401", .n_faults = 99 } };
    struct embed_vectors v = { 0 };

    open_case(&c, &embed_openai, "openai", 100, 1);
    assert_int_equal(run(&c, &v, NULL), -EIO);
    assert_in_range(c.provider.n_requests, 1, 3 + 3);
}

static void a_client_that_leaves_ends_the_call(void **state)
{
    AUTO(close_case) struct case_of c = { .provider = { .fault = "503", .n_faults = 99 } };
    atomic_bool is_gone = true;
    struct embed_vectors v = { 0 };

    open_case(&c, &embed_openai, "openai", 3, 500);
    c.request.is_gone = &is_gone;
    assert_int_equal(run(&c, &v, NULL), -ECANCELED);
}

static void a_text_that_is_surely_too_long_is_refused_before_anything_is_sent(void **state)
{
    AUTO(close_case) struct case_of c = { 0 };
    struct embed_vectors v = { 0 };
    struct err e = { 0 };
    struct slice texts[2] = { SLICE_LIT("1"), SLICE_LIT("1234567890123") };

    open_case(&c, &embed_openai, "openai", 2, 500);
    c.service.max_tokens = 2;
    c.request.texts = texts;
    assert_int_equal(run(&c, &v, &e), -EINVAL);
    assert_string_equal(e.code, "INPUT_TOO_LONG");
    assert_non_null(strstr(e.text, "`input[1]`"));
    assert_int_equal(c.provider.n_requests, 0);
    texts[1].n = 12;
    assert_int_equal(run(&c, &v, NULL), 0);
}

static void every_row_is_whole_and_others_are_asked_as_generic_ones(void **state)
{
    for (const struct embed_service *s = embed_services; s->id; s++) {
        assert_ptr_equal(embed_service_of(s->id), s);
        assert_non_null(s->protocol);
        assert_in_range(s->max_batch, 1, 2048);
        assert_in_range(s->n_parallel, 1, 8);
    }
    assert_string_equal(embed_service_of("nobody")->id, "generic-openai");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_come_in_the_order_of_the_texts_whatever_the_batches),
        cmocka_unit_test(the_connections_of_helper_threads_are_used_again),
        cmocka_unit_test(the_request_is_that_of_the_protocol),
        cmocka_unit_test(each_service_is_reported_what_it_wants_to_know),
        cmocka_unit_test(vectors_may_come_as_base64),
        cmocka_unit_test(an_address_of_azures_deployments_is_asked_in_their_way),
        cmocka_unit_test(a_deployments_name_is_no_path),
        cmocka_unit_test(ollama_is_asked_in_its_own_way),
        cmocka_unit_test(a_server_that_takes_one_text_at_a_time_gets_them_so),
        cmocka_unit_test(what_may_pass_is_tried_again),
        cmocka_unit_test(what_will_not_pass_ends_the_call),
        cmocka_unit_test(after_a_failure_no_further_batch_is_begun),
        cmocka_unit_test(a_client_that_leaves_ends_the_call),
        cmocka_unit_test(a_text_that_is_surely_too_long_is_refused_before_anything_is_sent),
        cmocka_unit_test(every_row_is_whole_and_others_are_asked_as_generic_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
