/* Files and images that messages name by address: fetched when the protocol accepts no addresses or a server is near,
 * through the guard, within limits. */
#include "llm/fetch.h"
#include "llm/file.h"

#include "base/budget.h"
#include "base/buf.h"

#include "../net/upstream.h"

static const char pdf[] = "%PDF-1.4 a page";

/* /hops?n redirects to /hops?n-1 and finally to /a.pdf; /large?n has n bytes. */
static void serve(void *arg, struct http_exchange *x)
{
    const struct http_request *q = &x->request;
    struct buf *body = &x->response.body;
    size_t n = strtoul(q->query ? q->query : "0", NULL, 10);

    atomic_fetch_add((atomic_int *)arg, 1);
    x->response.content_type = "application/octet-stream";
    if (strcmp(q->path, "/hops") == 0) {
        x->response.status = 302;
        http_response_header(x, "location", n > 1 ? arena_printf(x->arena, "hops?%zu", n - 1) : "/a.pdf");
    } else if (strcmp(q->path, "/large") == 0) {
        memset(buf_reserve(body, n), 0, n);
        body->n = n;
    } else if (strcmp(q->path, "/missing") == 0) {
        x->response.status = 404;
    } else if (strcmp(q->path, "/inward") == 0) {
        x->response.status = 307;
        http_response_header(x, "location", "http://169.254.169.254/latest/meta-data");
    } else if (strcmp(q->path, "/notes.txt") == 0) {
        x->response.content_type = "Text/Plain; charset=utf-8";
        buf_add_str(body, "Gr\xc3\xbc\xc3\x9f"
                          "e");
    } else if (strcmp(q->path, "/latin") == 0) {
        x->response.content_type = "text/plain";
        buf_add_str(body, "Gr\xfc\xdf"
                          "e");
    } else if (strcmp(q->path, "/dot") == 0) {
        buf_add_str(body, "\x89PNG\r\n\x1a\n");
    } else if (strcmp(q->path, "/packed") == 0) {
        http_response_header(x, "content-encoding", "gzip");
        buf_add_str(body, "xx");
    } else if (strcmp(q->path, "/empty") != 0) {
        buf_add_str(body, pdf);
    }
    http_exchange_send(x);
}

struct world {
    struct rig rig;
    atomic_int n_requested;
    struct guard *guard;
    struct net_wait wait;
    struct llm_block blocks[LIMIT_FETCHED_FILES + 2];
    struct llm_message message;
    struct llm_request request;
    struct err e;
};

static void world_open(struct world *w)
{
    rig_open(&w->rig, serve, &w->n_requested);
    w->guard = guard_new(&(struct guard_config){ 0 });
    w->wait = net_wait_of(LIMIT_FETCH_MS, NULL, NULL);
}

static void world_close(struct world *w)
{
    rig_close(&w->rig);
    w->guard = guard_free(w->guard);
}

static void name_file(struct world *w, size_t i, const char *path, const char *file_name)
{
    assert_int_equal(llm_file_of_address(rig_url(&w->rig, path), "x", &w->blocks[i], NULL), 0);
    w->blocks[i].file_name = file_name;
}

/* second: an account to fall back on; NULL: none. */
static int fetch_for(struct world *w, const struct llm_account *first, const struct llm_account *second, size_t n)
{
    struct llm_account_state states[2] = { { .account = *first } };
    struct llm_picks picks = { .states = { &states[0], &states[1] }, .n = second ? 2 : 1 };

    if (second)
        states[1].account = *second;
    w->e = (struct err){ 0 };
    w->message = (struct llm_message){ .role = LLM_USER, .blocks = w->blocks, .n_blocks = n };
    w->request = (struct llm_request){ .messages = &w->message, .n_messages = 1 };
    assert_true(llm_has_addresses(&w->request));
    return llm_fetch_files(&picks, w->guard, &w->wait, w->rig.a, &w->request, &w->e);
}

static int fetch(struct world *w, const char *preset, size_t n)
{
    return fetch_for(w, &(struct llm_account){ .name = preset, .preset = llm_preset_find(preset) }, NULL, n);
}

static const struct llm_block *block_of(const struct world *w, size_t i)
{
    return &w->request.messages[0].blocks[i];
}

static void a_file_becomes_what_its_type_says(void **state)
{
    AUTO(world_close) struct world w = { 0 };

    world_open(&w);
    name_file(&w, 0, "/some/a%20b.pdf?signature=x#page", NULL);
    name_file(&w, 1, "/notes.txt", "own name.txt");
    name_file(&w, 2, "/dot", NULL);
    w.blocks[4] = (struct llm_block){ LLM_BLOCK_TEXT, .text = "and this" };
    w.blocks[3] = (struct llm_block){ LLM_BLOCK_TEXT, .text = "stays" };
    if (fetch(&w, "groq", 5) < 0)
        fail_msg("%s", w.e.text);
    assert_int_equal(block_of(&w, 0)->kind, LLM_BLOCK_FILE_DATA);
    assert_string_equal(block_of(&w, 0)->media_type, "application/pdf");
    assert_string_equal(block_of(&w, 0)->file_name, "a b.pdf");
    assert_string_equal(block_of(&w, 0)->base64, "JVBERi0xLjQgYSBwYWdl");
    assert_int_equal(block_of(&w, 1)->kind, LLM_BLOCK_TEXT);
    assert_string_equal(block_of(&w, 1)->text, "[own name.txt]\nGr\xc3\xbc\xc3\x9f"
                                               "e");
    assert_int_equal(block_of(&w, 2)->kind, LLM_BLOCK_IMAGE_DATA);
    assert_string_equal(block_of(&w, 2)->media_type, "image/png");
    assert_string_equal(block_of(&w, 4)->text, "and this");
    assert_false(llm_has_addresses(&w.request));
    assert_int_equal(w.blocks[0].kind, LLM_BLOCK_FILE_URL); /* the caller's blocks are unchanged */
}

static void a_protocol_that_takes_addresses_gets_them(void **state)
{
    static const struct {
        const char *preset, *path, *name;
        int n_requested;
    } cases[] = {
        { "openai", "/a.pdf", NULL, 0 },   { "openai", "/notes.txt", NULL, 0 }, { "anthropic", "/a.PDF?x=1", NULL, 0 },
        { "anthropic", "/x", "a.pdf", 0 }, { "anthropic", "/x", NULL, 1 },      { "anthropic", "/notes.txt", NULL, 1 },
        { "ollama", "/a.pdf", NULL, 1 },   { "groq", "/a.pdf", NULL, 1 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(world_close) struct world w = { 0 };

        world_open(&w);
        name_file(&w, 0, cases[i].path, cases[i].name);
        assert_int_equal(fetch(&w, cases[i].preset, 1), 0);
        assert_int_equal(atomic_load(&w.n_requested), cases[i].n_requested);
        assert_int_equal(block_of(&w, 0)->kind == LLM_BLOCK_FILE_URL, cases[i].n_requested == 0);
    }
}

static void what_cannot_be_had_is_reported_with_its_place_and_without_its_address(void **state)
{
    static const struct {
        const char *path, *code, *reason, *words;
    } cases[] = {
        { "/missing?secret", "FILE_NOT_FETCHED", "UPSTREAM_INVALID",
          "`messages[0].content[0]`: the file at 127.0.0.1 could not be fetched: its server answers with the status 404." },
        { "/empty", "FILE_NOT_FETCHED", "UPSTREAM_INVALID", "it is empty" },
        { "/packed", "FILE_NOT_FETCHED", "UPSTREAM_INVALID", "compressed (gzip)" },
        { "/hops?6", "FILE_NOT_FETCHED", "UPSTREAM_INVALID", "more than 5 times" },
        { "/inward", "FILE_NOT_FETCHED", "ADDRESS_REFUSED", "cloud metadata" },
        { "/large?25165825", "FILE_NOT_FETCHED", "UPSTREAM_TOO_LARGE", "more than 25165824 bytes" },
        { "/latin", "VALIDATION_ERROR", NULL, "must hold UTF-8 text" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(world_close) struct world w = { 0 };

        world_open(&w);
        name_file(&w, 0, cases[i].path, NULL);
        assert_int_equal(fetch(&w, "groq", 1), -EINVAL);
        assert_string_equal(w.e.code, cases[i].code);
        if (!strstr(w.e.text, cases[i].words))
            fail_msg("%s", w.e.text);
        assert_null(strstr(w.e.text, "secret"));
        if (cases[i].reason)
            assert_string_equal(w.e.extras[0].value, cases[i].reason);
    }
}

static void as_many_redirects_as_the_limit_says(void **state)
{
    AUTO(world_close) struct world w = { 0 };

    world_open(&w);
    name_file(&w, 0, "/hops?5", NULL);
    assert_int_equal(LIMIT_FETCH_REDIRECTS, 5);
    assert_int_equal(fetch(&w, "groq", 1), 0);
    assert_int_equal(atomic_load(&w.n_requested), 6);
    assert_string_equal(block_of(&w, 0)->media_type, "application/pdf");
}

static bool has_left(void *arg)
{
    return atomic_load(&((struct raw_peer *)arg)->has_left);
}

/* Such a body would count for nothing. The file that the redirect names is fetched all the same. */
static void the_body_of_a_redirect_is_not_read(void **state)
{
    static const enum raw_end ends[] = { RAW_ENDLESS, RAW_HANG };

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        AUTO(world_close) struct world w = { 0 };
        struct raw_peer peer;

        world_open(&w);
        raw_open(&peer,
                 arena_printf(w.rig.a, "HTTP/1.1 302 Found\r\nlocation: %s\r\ncontent-length: 99999999999\r\n\r\nx",
                              rig_url(&w.rig, "/a.pdf")),
                 ends[i]);
        assert_int_equal(
            llm_file_of_address(arena_printf(w.rig.a, "http://127.0.0.1:%u/", peer.port), "x", &w.blocks[0], NULL), 0);
        if (fetch(&w, "groq", 1) < 0)
            fail_msg("%s", w.e.text);
        assert_string_equal(block_of(&w, 0)->media_type, "application/pdf");
        assert_true(wait_until(has_left, &peer));
        raw_close(&peer);
    }
}

static void the_body_of_a_refusal_is_not_read(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct raw_peer peer;

    world_open(&w);
    raw_open(&peer, "HTTP/1.1 404 Not Found\r\n\r\nx", RAW_ENDLESS);
    assert_int_equal(
        llm_file_of_address(arena_printf(w.rig.a, "http://127.0.0.1:%u/", peer.port), "x", &w.blocks[0], NULL), 0);
    assert_int_equal(fetch(&w, "groq", 1), -EINVAL);
    if (!strstr(w.e.text, "the status 404"))
        fail_msg("%s", w.e.text);
    assert_true(wait_until(has_left, &peer));
    raw_close(&peer);
}

static void as_many_files_as_the_limit_says(void **state)
{
    AUTO(world_close) struct world w = { 0 };

    world_open(&w);
    for (size_t i = 0; i < LIMIT_FETCHED_FILES + 1; i++)
        name_file(&w, i, "/a.pdf", NULL);
    assert_int_equal(fetch(&w, "groq", LIMIT_FETCHED_FILES), 0);
    assert_int_equal(fetch(&w, "groq", LIMIT_FETCHED_FILES + 1), -EINVAL);
    assert_string_equal(w.e.fields[0].field, "messages[0].content[16]");
}

static void all_files_together_have_as_many_bytes_as_the_limit_says(void **state)
{
    AUTO(world_close) struct world w = { 0 };

    world_open(&w);
    name_file(&w, 0, "/large?25165820", NULL);
    name_file(&w, 1, "/large?4", NULL);
    assert_int_equal(LIMIT_FETCHED_BYTES, 25165824);
    assert_int_equal(fetch(&w, "groq", 2), 0);
    name_file(&w, 1, "/large?5", NULL);
    assert_int_equal(fetch(&w, "groq", 2), -EINVAL);
    name_file(&w, 1, "/large?4", NULL);
    name_file(&w, 2, "/a.pdf", NULL);
    assert_int_equal(fetch(&w, "groq", 3), -EINVAL);
    assert_non_null(strstr(w.e.text, "content[2]"));
}

static void the_service_itself_is_no_address(void **state)
{
    AUTO(world_close) struct world w = { 0 };

    world_open(&w);
    guard_add_own_port(w.guard, w.rig.port);
    name_file(&w, 0, "/a.pdf", NULL);
    assert_int_equal(fetch(&w, "groq", 1), -EINVAL);
    assert_string_equal(w.e.extras[0].value, "ADDRESS_REFUSED");
    assert_int_equal(atomic_load(&w.n_requested), 0);
}

static void who_leaves_or_waits_too_long_or_holds_too_much_is_not_served(void **state)
{
    AUTO(world_close) struct world w = { 0 };
    struct budget_holder *holder = budget_holder_get(HOLDER_APP, "reader");
    const atomic_bool is_gone = true;

    world_open(&w);
    name_file(&w, 0, "/large?3145728", NULL);
    w.wait.is_gone = &is_gone;
    assert_int_equal(fetch(&w, "groq", 1), -ECANCELED);
    w.wait = net_wait_of(0, NULL, NULL);
    assert_int_equal(fetch(&w, "groq", 1), -EINVAL);
    assert_string_equal(w.e.extras[0].value, "UPSTREAM_TIMEOUT");
    w.wait = net_wait_of(LIMIT_FETCH_MS, NULL, NULL);
    w.wait.holder = holder;
    budget_set_limit(BUDGET_MEMORY, (int64_t)MIB(5));
    budget_force(holder, BUDGET_MEMORY, (int64_t)MIB(1));
    assert_int_equal(fetch(&w, "groq", 1), -EBUSY);
    assert_string_equal(w.e.code, "BUDGET_EXCEEDED");
    budget_set_limit(BUDGET_MEMORY, (int64_t)MIB(64));
    assert_int_equal(fetch(&w, "groq", 1), 0);
    assert_true(budget_held(holder, BUDGET_MEMORY) > (int64_t)MIB(8));
    budget_give(holder, BUDGET_MEMORY, (int64_t)MIB(1));
    budget_holder_unref(holder);
}

static void name_image(struct world *w, size_t i, const char *path)
{
    w->blocks[i] = (struct llm_block){ LLM_BLOCK_IMAGE_URL, .url = rig_url(&w->rig, path), .detail = "low" };
}

static struct llm_account account_at(const char *preset, const char *base_url)
{
    return (struct llm_account){ .name = preset, .preset = llm_preset_find(preset), .base_url = base_url };
}

static void servers_that_get_no_addresses(void **state)
{
    static const struct {
        const char *base_url;
        bool is_near;
    } cases[] = {
        { "http://127.0.0.1:8080/v1", true },   { "http://127.9.9.9", true },
        { "http://localhost:11434", true },     { "http://LOCALHOST.:1/v1", true },
        { "http://a.localhost", true },         { "http://[::1]:8080", true },
        { "http://0.0.0.0:8000/v1", true },     { "http://[::]:8000", true },
        { "http://2130706433/v1", true },       { "http://127.1/v1", true },
        { "http://0x7f.0.0.1", true },          { "http://[::ffff:7f00:1]", true },
        { "http://192.168.1.4:8000", true },    { "http://10.0.0.1", true },
        { "http://[fd00::1]:1", true },         { "http://169.254.1.1", true },
        { "https://box:4000", true },           { "https://api.openai.com/v1", false },
        { "https://8.8.8.8/v1", false },        { "http://[2606:4700::1]", false },
        { "http://[::ffff:808:808]", false },   { "https://127.0.0.1.example", false },
        { "https://localhost.example", false },
    };
    struct llm_account own = account_at("openai", NULL);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct llm_account acc = account_at("openai", cases[i].base_url);

        if (llm_is_server_near(&acc) != cases[i].is_near)
            fail_msg("%s", cases[i].base_url);
    }
    assert_false(llm_is_server_near(&own));
    own.runner = (struct llamacpp *)&own; /* only compared */
    assert_true(llm_is_server_near(&own));
}

static void a_near_server_gets_images_and_files_but_no_addresses(void **state)
{
    const struct llm_account near = account_at("openai", "http://127.0.0.1:1/v1"),
                             far = account_at("openai", "https://api.openai.com/v1");
    const struct {
        const struct llm_account *first, *second;
        bool is_fetched;
    } cases[] = { { &near, NULL, true }, { &far, &near, true }, { &near, &far, true }, { &far, &far, false } };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(world_close) struct world w = { 0 };

        world_open(&w);
        name_image(&w, 0, "/dot");
        name_file(&w, 1, "/a.pdf", NULL);
        assert_int_equal(fetch_for(&w, cases[i].first, cases[i].second, 2), 0);
        assert_int_equal(atomic_load(&w.n_requested), cases[i].is_fetched ? 2 : 0);
        assert_int_equal(llm_has_addresses(&w.request), !cases[i].is_fetched);
        assert_int_equal(block_of(&w, 0)->kind, cases[i].is_fetched ? LLM_BLOCK_IMAGE_DATA : LLM_BLOCK_IMAGE_URL);
        assert_string_equal(block_of(&w, 0)->detail, "low");
        if (cases[i].is_fetched)
            assert_string_equal(block_of(&w, 0)->base64, "iVBORw0KGgo=");
    }
}

static void an_image_is_an_image(void **state)
{
    static const char *const paths[] = { "/notes.txt", "/a.pdf", "/latin", "/large?9" };
    const struct llm_account near = account_at("groq", "http://127.0.0.1:1/v1");

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        AUTO(world_close) struct world w = { 0 };

        world_open(&w);
        name_image(&w, 0, paths[i]);
        assert_int_equal(fetch_for(&w, &near, NULL, 1), -EINVAL);
        assert_string_equal(w.e.fields[0].field, "messages[0].content[0]");
        assert_non_null(strstr(w.e.text, "must be an image"));
    }
}

static void images_count_with_the_files(void **state)
{
    const struct llm_account near = account_at("groq", "http://127.0.0.1:1/v1");
    AUTO(world_close) struct world w = { 0 };

    world_open(&w);
    for (size_t i = 0; i < LIMIT_FETCHED_FILES + 1; i++)
        name_image(&w, i, "/dot");
    assert_int_equal(fetch_for(&w, &near, NULL, LIMIT_FETCHED_FILES), 0);
    assert_int_equal(fetch_for(&w, &near, NULL, LIMIT_FETCHED_FILES + 1), -EINVAL);
    assert_string_equal(w.e.fields[0].field, "messages[0].content[16]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_becomes_what_its_type_says),
        cmocka_unit_test(a_protocol_that_takes_addresses_gets_them),
        cmocka_unit_test(what_cannot_be_had_is_reported_with_its_place_and_without_its_address),
        cmocka_unit_test(as_many_redirects_as_the_limit_says),
        cmocka_unit_test(the_body_of_a_redirect_is_not_read),
        cmocka_unit_test(the_body_of_a_refusal_is_not_read),
        cmocka_unit_test(as_many_files_as_the_limit_says),
        cmocka_unit_test(all_files_together_have_as_many_bytes_as_the_limit_says),
        cmocka_unit_test(the_service_itself_is_no_address),
        cmocka_unit_test(servers_that_get_no_addresses),
        cmocka_unit_test(a_near_server_gets_images_and_files_but_no_addresses),
        cmocka_unit_test(an_image_is_an_image),
        cmocka_unit_test(images_count_with_the_files),
        cmocka_unit_test(who_leaves_or_waits_too_long_or_holds_too_much_is_not_served),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
