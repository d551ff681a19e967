#include "../models/rig.h"

#include "agents/approvals.h"
#include "agents/builtin.h"
#include "base/json_schema.h"
#include "mcp/client.h"
#include "models/embed_texts.h"

/* A model's call, for an app that has no grants. Pages come from a server of this process. */
struct fixture_of_tools {
    struct models_rig models;
    struct rig web;
    struct guard *guard;
    struct models_call call;
    struct net_wait wait;
    struct builtin_services services;
    struct builtin_call c;
    atomic_bool is_gone;
    struct mcp_result result;
    struct err e;
    const char *tool; /* that the route hook was called for */
};

/* Stands for agents/approvals.c: a person who answers at once. */
static struct {
    struct approval_question question;
    struct approval_answer answer;
    int r;
} person;

int approvals_request(struct approvals *p, const struct approval_question *q, const struct net_wait *wait,
                      struct arena *a, struct approval_answer *ret, struct err *e)
{
    person.question = *q;
    *ret = person.answer;
    return person.r < 0 ? err_set(e, person.r, "SHUTTING_DOWN", "The service is stopping.") : 0;
}

static void add_header(struct http_exchange *x, const char *name, const char *value)
{
    http_response_header(x, name, value);
}

/* The path chooses the page. */
static void answer_page(void *arg, struct http_exchange *x)
{
    struct fixture_of_tools *f = arg;
    struct buf *body = &x->response.body;
    const char *path = x->request.path;

    x->response.content_type = "text/html; charset=utf-8";
    if (strcmp(path, "/page") == 0)
        buf_add_str(body, "<title>A page</title><p>Hello <b>there</b>.");
    else if (strcmp(path, "/long") == 0)
        for (int i = 0; i < 20000; i++)
            buf_add_str(body, "\xc3\xa4\xc3\xa4 x");
    else if (strcmp(path, "/huge") == 0)
        for (int i = 0; i < LIMIT_PAGE_BYTES / 16 + 1; i++)
            buf_add_str(body, "0123456789abcdef");
    else if (strcmp(path, "/pdf") == 0) {
        x->response.content_type = "application/pdf";
        buf_add_str(body, "%PDF-1.4");
    } else if (strcmp(path, "/packed") == 0) {
        add_header(x, "content-encoding", "gzip");
        buf_add_str(body, "\x1f\x8b");
    } else if (strcmp(path, "/hop") == 0 || strcmp(path, "/loop") == 0 || strcmp(path, "/inside") == 0 ||
               strcmp(path, "/file") == 0) {
        x->response.status = 302;
        add_header(x, "location",
                   strcmp(path, "/hop") == 0    ? "/page"
                   : strcmp(path, "/loop") == 0 ? "/loop"
                   : strcmp(path, "/file") == 0 ? "file:///etc/passwd"
                                                : arena_printf(f->web.a, "http://169.254.169.254/latest"));
    } else
        x->response.status = 404;
    http_exchange_send(x);
}

static int run_route(void *arg, const struct builtin_call *c, const char *tool, struct slice *ret, struct err *e)
{
    struct fixture_of_tools *f = arg;

    f->tool = tool;
    *ret = slice_of(json_to_str(c->call->arena, c->arguments));
    return 0;
}

static int set_up(void **state)
{
    struct fixture_of_tools *f = xcalloc(1, sizeof(*f));
    const char *hosts[1];

    models_open(&f->models);
    rig_open(&f->web, answer_page, f);
    hosts[0] = arena_printf(f->web.a, "127.0.0.1:%u", f->web.port);
    f->guard = guard_new(&(struct guard_config){ hosts, 1, true });
    f->models.models.file_guard = f->guard;
    f->call = call_of(&f->models);
    f->call.is_gone = &f->is_gone;
    f->wait = net_wait_of(60000, &f->is_gone, NULL);
    f->services = (struct builtin_services){ .run_route = run_route, .arg = f };
    f->c = (struct builtin_call){ .call = &f->call,
                                  .wait = &f->wait,
                                  .services = &f->services,
                                  .thread_dir = arena_printf(f->call.arena, "%s/thread", f->models.f.path) };
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture_of_tools *f = *state;

    rig_close(&f->web);
    models_close(&f->models);
    guard_free(f->guard);
    free(f);
    return 0;
}

static int run(struct fixture_of_tools *f, const char *tool, const char *arguments)
{
    const struct builtin_tool *found = builtin_find(tool);
    struct err e = { 0 };

    assert_non_null(found);
    must(json_parse(f->call.arena, slice_of(arguments), &f->c.arguments, &e), &e);
    f->e = (struct err){ 0 };
    f->result = (struct mcp_result){ 0 };
    return found->run(&f->c, &f->result, &f->e);
}

/* The text of the only block. */
static const char *text(struct fixture_of_tools *f)
{
    struct json_iter it = json_iter(f->result.content);
    struct json_value block = { 0 };

    assert_int_equal(json_length(f->result.content), 1);
    assert_true(json_next(&it, NULL, &block));
    assert_string_equal(json_cstr(json_get(block, "type")), "text");
    return json_cstr(json_get(block, "text"));
}

static void assert_fails(struct fixture_of_tools *f, const char *tool, const char *arguments, const char *code)
{
    assert_true(run(f, tool, arguments) < 0);
    assert_string_equal(f->e.code, code);
    assert_true(*f->e.text);
}

/* ---- the table ---- */

static void each_row_has_a_name_a_description_and_a_schema_that_compiles(void **state)
{
    struct fixture_of_tools *f = *state;

    for (size_t i = 0; i < n_builtin_tools; i++) {
        const struct builtin_tool *tool = &builtin_tools[i];
        const struct json_schema *schema = NULL;
        struct json_value v = { 0 };
        struct err e = { 0 };

        assert_ptr_equal(builtin_find(tool->name), tool);
        assert_true(tool->title && tool->description && tool->run);
        assert_true(!tool->permission || permission_find(tool->permission));
        assert_false(tool->is_read_only && tool->is_destructive);
        must(json_parse(f->call.arena, slice_of(tool->input_schema), &v, &e), &e);
        assert_string_equal(json_cstr(json_get(v, "type")), "object");
        must(json_schema_compile(f->call.arena, v, "schema", &schema, &e), &e);
    }
    assert_null(builtin_find("rm"));
    assert_int_equal(n_builtin_tools, 15);
}

/* The policy `dangerous` of an agent lets read-only tools run: none of these may be among them. */
static void what_changes_or_sends_something_is_not_read_only(void **state)
{
    static const char *const names[] = { "fetch_url",  "add_activity", "update_activity", "trigger_agent",
                                         "write_file", "edit_file",    "run_command" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_false(builtin_find(names[i])->is_read_only);
    assert_true(builtin_find("run_command")->needs_approval);
}

static void tools_that_are_routes_hand_their_arguments_to_the_route(void **state)
{
    struct fixture_of_tools *f = *state;

    must(run(f, "add_activity", "{\"raw_data\":{\"n\":1}}"), &f->e);
    assert_string_equal(f->tool, "add_activity");
    assert_string_equal(text(f), "{\"raw_data\":{\"n\":1}}");
    assert_int_equal(json_int(json_get(json_get(f->result.structured, "raw_data"), "n")), 1);
    f->services.run_route = NULL;
    assert_fails(f, "task_status", "{\"uuid\":\"x\"}", "NOT_SERVING");
}

/* ---- vectors ---- */

static void vectors_need_the_grants_of_the_routes_even_in_a_turn_that_was_permitted(void **state)
{
    struct fixture_of_tools *f = *state;

    f->call.is_permitted = true; /* agent.chat was taken */
    assert_fails(f, "search_vectors", "{\"query\":\"x\"}", "PERMISSION_REQUIRED");
    assert_fails(f, "embed", "{\"input\":[\"x\"]}", "PERMISSION_REQUIRED");
    allow(&f->models, PERM_LLM_EMBED);
    must(run(f, "embed", "{\"input\":[\"x\",\"y\"]}"), &f->e);
    assert_int_equal(json_length(json_get(f->result.structured, "embeddings")), 2);
    assert_fails(f, "search_vectors", "{\"query\":\"x\"}", "PERMISSION_REQUIRED");
    assert_true(f->call.is_permitted);
}

static void vectors_are_searched_in_the_callers_own_namespace(void **state)
{
    struct fixture_of_tools *f = *state;
    struct models_call call = f->call;
    AUTO(vector_space_clear) struct vector_space space = { 0 };
    struct embed_made made = { 0 };
    const struct slice one = SLICE_LIT("a cat on a mat");
    struct vector_record record = { .id = "cat", .metadata = "{\"text\":\"a cat on a mat\"}" };
    struct err e = { 0 };

    allow(&f->models, PERM_LLM_EMBED);
    allow(&f->models, PERM_VECTORS_READ);
    allow(&f->models, PERM_VECTORS_WRITE);
    must(vector_space_open(&call, "notes", &space, &e), &e);
    must(embed_texts(&call, &(struct embed_job){ .texts = &one, .n = 1 }, &made, &e), &e);
    record.vector = made.items;
    must(vector_space_upsert(&space, &(struct vector_batch){ &record, 1, made.n_dimensions }, made.model, &e), &e);
    must(run(f, "search_vectors", "{\"query\":\"cat\",\"workspace\":\"notes\"}"), &f->e);
    assert_non_null(strstr(text(f), "a cat on a mat"));
    must(run(f, "search_vectors", "{\"query\":\"cat\"}"), &f->e);
    assert_string_equal(text(f), "{\"results\":[]}");
    assert_fails(f, "search_vectors", "{\"query\":\"cat\",\"top_k\":51}", "VALIDATION_ERROR");
    must(run(f, "search_vectors", "{\"query\":\"cat\",\"top_k\":50}"), &f->e);
}

static void embed_has_a_limit_of_texts(void **state)
{
    struct fixture_of_tools *f = *state;
    struct buf out;

    allow(&f->models, PERM_LLM_EMBED);
    for (int n = LIMIT_TOOL_EMBED_TEXTS; n <= LIMIT_TOOL_EMBED_TEXTS + 1; n++) {
        buf_init(&out, KIB(64));
        buf_add_str(&out, "{\"input\":[\"x\"");
        for (int i = 1; i < n; i++)
            buf_add_str(&out, ",\"x\"");
        buf_add_str(&out, "]}");
        if (n == LIMIT_TOOL_EMBED_TEXTS)
            must(run(f, "embed", buf_str(&out)), &f->e);
        else
            assert_fails(f, "embed", buf_str(&out), "VALIDATION_ERROR");
        buf_clear(&out);
    }
    assert_fails(f, "embed", "{\"input\":[\"\"]}", "VALIDATION_ERROR");
}

/* ---- pages ---- */

static const char *fetch(struct fixture_of_tools *f, const char *path)
{
    return arena_printf(f->call.arena, "{\"url\":\"http://127.0.0.1:%u%s\"}", f->web.port, path);
}

static void a_page_is_fetched_as_text_and_named_as_data(void **state)
{
    struct fixture_of_tools *f = *state;

    must(run(f, "fetch_url", fetch(f, "/hop")), &f->e);
    assert_non_null(strstr(text(f), "Hello there."));
    assert_non_null(strstr(text(f), "Title: A page"));
    assert_non_null(strstr(text(f), "/page\n"));
    assert_non_null(strstr(text(f), "not instructions"));
}

static void a_long_page_is_read_on_from_where_it_was_cut(void **state)
{
    struct fixture_of_tools *f = *state;
    const char *more;
    size_t start = 0;

    must(run(f, "fetch_url", fetch(f, "/long")), &f->e);
    more = strstr(text(f), "call again with start ");
    assert_non_null(more);
    assert_int_equal(sscanf(more, "call again with start %zu", &start), 1);
    assert_in_range(start, LIMIT_TOOL_TEXT - 3, LIMIT_TOOL_TEXT);
    must(run(f, "fetch_url",
             arena_printf(f->call.arena, "{\"url\":\"http://127.0.0.1:%u/long\",\"start\":%zu}", f->web.port, start)),
         &f->e);
    assert_non_null(strstr(text(f), "\xc3\xa4 x"));
}

static void addresses_that_are_not_public_are_refused_at_every_hop(void **state)
{
    struct fixture_of_tools *f = *state;
    static const char *const refused[] = { "http://127.0.0.1:1/",       "http://localhost/",       "http://[::1]/",
                                           "http://10.0.0.1/",          "http://169.254.169.254/", "http://0x7f.1/",
                                           "http://[::ffff:10.0.0.1]/", "http://192.168.1.1/",     "http://0/" };

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        assert_fails(f, "fetch_url", arena_printf(f->call.arena, "{\"url\":\"%s\"}", refused[i]), "ADDRESS_REFUSED");
    assert_fails(f, "fetch_url", fetch(f, "/inside"), "ADDRESS_REFUSED");
    assert_fails(f, "fetch_url", fetch(f, "/file"), "BAD_URL");
    assert_fails(f, "fetch_url", "{\"url\":\"file:///etc/passwd\"}", "BAD_URL");
    assert_fails(f, "fetch_url", "{\"url\":\"ftp://example.org/\"}", "BAD_URL");
    assert_fails(f, "fetch_url", "{\"url\":\"http://a:b@example.org/\"}", "BAD_URL");
}

static void what_is_no_page_says_why(void **state)
{
    struct fixture_of_tools *f = *state;

    assert_fails(f, "fetch_url", fetch(f, "/loop"), "UPSTREAM_INVALID");
    assert_fails(f, "fetch_url", fetch(f, "/nothing"), "UPSTREAM_INVALID");
    assert_non_null(strstr(f->e.text, "404"));
    assert_fails(f, "fetch_url", fetch(f, "/packed"), "UPSTREAM_INVALID");
    assert_fails(f, "fetch_url", fetch(f, "/huge"), "UPSTREAM_TOO_LARGE");
    assert_fails(f, "fetch_url", fetch(f, "/pdf"), "NO_TEXT");
    assert_non_null(strstr(f->e.text, "application/pdf"));
    assert_fails(f, "fetch_url", fetch(f, "/loop?secret=1"), "UPSTREAM_INVALID");
    assert_null(strstr(f->e.text, "secret"));
}

static void a_silent_page_ends_with_the_turn(void **state)
{
    struct fixture_of_tools *f = *state;
    struct raw_peer silent;
    const char *hosts[1];
    struct guard *guard;

    raw_open(&silent, "", RAW_HANG);
    hosts[0] = arena_printf(f->call.arena, "127.0.0.1:%u", silent.port);
    guard = guard_new(&(struct guard_config){ hosts, 1, true });
    f->models.models.file_guard = guard;
    f->wait = net_wait_of(50, &f->is_gone, NULL);
    assert_true(run(f, "fetch_url", arena_printf(f->call.arena, "{\"url\":\"http://127.0.0.1:%u/\"}", silent.port)) <
                0);
    assert_string_equal(f->e.code, "UPSTREAM_TIMEOUT");
    f->wait = net_wait_of(60000, &f->is_gone, NULL);
    atomic_store(&f->is_gone, true);
    assert_int_equal(run(f, "fetch_url",
                         arena_printf(f->call.arena, "{\"url\":\"http://127.0.0.1:%u/\"}", silent.port)),
                     -ECANCELED);
    f->models.models.file_guard = f->guard;
    guard_free(guard);
    raw_close(&silent);
}

/* ---- files ---- */

static void files_are_written_read_edited_and_listed(void **state)
{
    struct fixture_of_tools *f = *state;

    must(run(f, "write_file", "{\"path\":\"a/b.txt\",\"content\":\"one two\"}"), &f->e);
    must(run(f, "edit_file", "{\"path\":\"a/b.txt\",\"old_text\":\"two\",\"new_text\":\"2\"}"), &f->e);
    must(run(f, "read_file", "{\"path\":\"a/b.txt\"}"), &f->e);
    assert_string_equal(text(f), "one 2");
    must(run(f, "list_files", "{\"recursive\":true}"), &f->e);
    assert_int_equal(json_length(json_get(f->result.structured, "files")), 2);
    assert_fails(f, "read_file", "{\"path\":\"../../etc/passwd\"}", "FILE_NAME");
    assert_fails(f, "write_file", "{\"path\":\"x\"}", "VALIDATION_ERROR");
    f->c.thread_dir = NULL;
    assert_fails(f, "read_file", "{\"path\":\"a/b.txt\"}", "NO_FOLDER");
}

static void a_long_file_is_read_in_parts_and_an_image_is_shown(void **state)
{
    struct fixture_of_tools *f = *state;
    char *content = arena_alloc(f->call.arena, LIMIT_TOOL_TEXT + 2);
    const char *path = arena_printf(f->call.arena, "%s/image.png", f->c.thread_dir);
    struct json_value block = { 0 };
    struct json_iter it;
    struct err e = { 0 };

    memset(content, 'x', LIMIT_TOOL_TEXT + 1);
    must(run(f, "write_file", arena_printf(f->call.arena, "{\"path\":\"long\",\"content\":\"%s\"}", content)), &f->e);
    must(run(f, "read_file", "{\"path\":\"long\"}"), &f->e);
    assert_non_null(strstr(text(f), "read on with start"));
    must(run(f, "read_file", arena_printf(f->call.arena, "{\"path\":\"long\",\"start\":%d}", LIMIT_TOOL_TEXT)), &f->e);
    assert_non_null(strstr(text(f), "\n\nx"));
    must(file_write(path, SLICE_LIT("\x89PNG\r\n\x1a\n\0\0"), 0600, &e), &e);
    must(run(f, "read_file", "{\"path\":\"image.png\"}"), &f->e);
    it = json_iter(f->result.content);
    assert_true(json_next(&it, NULL, &block));
    assert_string_equal(json_cstr(json_get(block, "type")), "image");
    assert_string_equal(json_cstr(json_get(block, "mimeType")), "image/png");
    assert_true(*json_cstr(json_get(block, "data")));
    must(file_write(path, SLICE_LIT("\0\0\0"), 0600, &e), &e);
    must(rename(path, arena_printf(f->call.arena, "%s/data", f->c.thread_dir)), NULL);
    assert_fails(f, "read_file", "{\"path\":\"data\"}", "NO_TEXT");
}

static void an_image_has_at_most_the_limit(void **state)
{
    struct fixture_of_tools *f = *state;
    struct arena *a = f->call.arena;
    const char *path = arena_printf(a, "%s/image.png", f->c.thread_dir);
    char *bytes = arena_alloc(a, LIMIT_TOOL_IMAGE_FILE + 1);
    struct err e = { 0 };

    memset(bytes, 0, LIMIT_TOOL_IMAGE_FILE + 1);
    memcpy(bytes, "\x89PNG\r\n\x1a\n", 8);
    must(run(f, "write_file", "{\"path\":\"first\",\"content\":\"makes the folder\"}"), &f->e);
    must(file_write(path, (struct slice){ bytes, LIMIT_TOOL_IMAGE_FILE }, 0600, &e), &e);
    must(run(f, "read_file", "{\"path\":\"image.png\"}"), &f->e);
    must(file_write(path, (struct slice){ bytes, LIMIT_TOOL_IMAGE_FILE + 1 }, 0600, &e), &e);
    assert_fails(f, "read_file", "{\"path\":\"image.png\"}", "FILE_TOO_LARGE");
}

/* ---- the rest ---- */

static char *long_text(struct arena *a, size_t n)
{
    char *text = arena_alloc(a, n + 1);

    memset(text, 'x', n);
    text[n] = '\0';
    return text;
}

static void now_knows_the_time_zones(void **state)
{
    struct fixture_of_tools *f = *state;
    static const char *const wrong[] = { "Mars/Olympus", "../../etc/passwd", ":/etc/passwd",     "/etc/localtime",
                                         "UTC-3",        "Europe",           "Europe/Berlin\\n", "" };

    must(run(f, "now", "{\"timezone\":\"UTC\"}"), &f->e);
    assert_string_equal(json_cstr(json_get(f->result.structured, "timezone")), "UTC");
    assert_non_null(strstr(json_cstr(json_get(f->result.structured, "time")), "+00:00"));
    if (access("/usr/share/zoneinfo/Asia/Kolkata", F_OK) == 0) {
        must(run(f, "now", "{\"timezone\":\"Asia/Kolkata\"}"), &f->e);
        assert_non_null(strstr(json_cstr(json_get(f->result.structured, "time")), "+05:30"));
    }
    must(run(f, "now", "{}"), &f->e);
    assert_true(*json_cstr(json_get(f->result.structured, "weekday")));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_fails(f, "now", arena_printf(f->call.arena, "{\"timezone\":\"%s\"}", wrong[i]), "VALIDATION_ERROR");
}

static void commands_are_off_until_a_person_turns_them_on(void **state)
{
    struct fixture_of_tools *f = *state;

    assert_false(builtin_find("run_command")->is_on(&f->call));
    assert_fails(f, "run_command", "{\"command\":\"true\"}", "TOOL_OFF");
    must(settings_set(f->models.settings, "tools.run_command", "true", NULL), NULL);
    assert_true(builtin_find("run_command")->is_on(&f->call));
    assert_fails(f, "run_command", "{\"command\":\"true\"}", "NOT_SERVING");
}

/* A command at its limits goes on to where no supervisor is. */
static void a_command_has_limits(void **state)
{
    struct fixture_of_tools *f = *state;
    struct arena *a = f->call.arena;

    must(settings_set(f->models.settings, "tools.run_command", "true", NULL), NULL);
    assert_fails(f, "run_command", arena_printf(a, "{\"command\":\"%s\"}", long_text(a, LIMIT_COMMAND_BYTES)),
                 "NOT_SERVING");
    assert_fails(f, "run_command", arena_printf(a, "{\"command\":\"%s\"}", long_text(a, LIMIT_COMMAND_BYTES + 1)),
                 "VALIDATION_ERROR");
    assert_fails(f, "run_command", arena_printf(a, "{\"command\":\"x\",\"timeout_s\":%d}", LIMIT_COMMAND_S),
                 "NOT_SERVING");
    assert_fails(f, "run_command", arena_printf(a, "{\"command\":\"x\",\"timeout_s\":%d}", LIMIT_COMMAND_S + 1),
                 "VALIDATION_ERROR");
}

static const char *question_of(struct arena *a, size_t n_question, size_t n_choices, size_t n_choice)
{
    const char *choices = "";

    for (size_t i = 0; i < n_choices; i++)
        choices = arena_printf(a, "%s%s\"%s\"", choices, i ? "," : "", long_text(a, n_choice));
    return arena_printf(a, "{\"question\":\"%s\",\"choices\":[%s]}", long_text(a, n_question), choices);
}

static void a_question_is_short_enough_to_be_read(void **state)
{
    struct fixture_of_tools *f = *state;
    struct arena *a = f->call.arena;

    f->c.approvals = (struct approvals *)f;
    person.r = 0;
    person.answer = (struct approval_answer){ .outcome = APPROVAL_ALLOWED };
    must(run(f, "ask_person", question_of(a, LIMIT_QUESTION_CHARS, LIMIT_QUESTION_CHOICES, LIMIT_QUESTION_CHARS)),
         &f->e);
    assert_int_equal(json_length(person.question.choices), LIMIT_QUESTION_CHOICES);
    assert_fails(f, "ask_person", question_of(a, LIMIT_QUESTION_CHARS + 1, 1, 1), "VALIDATION_ERROR");
    assert_fails(f, "ask_person", question_of(a, 1, LIMIT_QUESTION_CHOICES + 1, 1), "VALIDATION_ERROR");
    assert_fails(f, "ask_person", question_of(a, 1, 1, LIMIT_QUESTION_CHARS + 1), "VALIDATION_ERROR");
    f->c.approvals = NULL;
}

static void a_question_waits_for_a_person_and_has_limits(void **state)
{
    struct fixture_of_tools *f = *state;
    struct json_value reply = { 0 };
    struct err e = { 0 };

    assert_fails(f, "ask_person", "{\"question\":\"which?\"}", "NOT_SERVING");
    f->c.approvals = (struct approvals *)f;
    f->c.session_id = "s1";
    must(json_parse(f->call.arena, SLICE_LIT("\"red\""), &reply, &e), &e);
    person.answer = (struct approval_answer){ .outcome = APPROVAL_ALLOWED, .reply = reply };
    must(run(f, "ask_person", "{\"question\":\"which?\",\"choices\":[\"red\",\"blue\"]}"), &f->e);
    assert_string_equal(text(f), "red");
    assert_string_equal(person.question.text, "which?");
    assert_string_equal(person.question.kind, "question");
    assert_string_equal(person.question.session_id, "s1");
    assert_int_equal(json_length(person.question.choices), 2);
    person.answer = (struct approval_answer){ .outcome = APPROVAL_UNANSWERED };
    assert_fails(f, "ask_person", "{\"question\":\"which?\"}", "NOT_ANSWERED");
    assert_true(json_is_absent(person.question.choices));
    person.answer = (struct approval_answer){ .outcome = APPROVAL_DENIED };
    assert_fails(f, "ask_person", "{\"question\":\"which?\"}", "NOT_ANSWERED");
    person.r = -ECANCELED;
    assert_int_equal(run(f, "ask_person", "{\"question\":\"which?\"}"), -ECANCELED);
    person.r = 0;
    assert_fails(f, "ask_person", "{}", "VALIDATION_ERROR");
    assert_fails(f, "ask_person", "{\"question\":\"q\",\"choices\":[\"\"]}", "VALIDATION_ERROR");
    f->c.approvals = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TOOL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TOOL_TEST(each_row_has_a_name_a_description_and_a_schema_that_compiles),
        TOOL_TEST(what_changes_or_sends_something_is_not_read_only),
        TOOL_TEST(tools_that_are_routes_hand_their_arguments_to_the_route),
        TOOL_TEST(vectors_need_the_grants_of_the_routes_even_in_a_turn_that_was_permitted),
        TOOL_TEST(vectors_are_searched_in_the_callers_own_namespace),
        TOOL_TEST(embed_has_a_limit_of_texts),
        TOOL_TEST(a_page_is_fetched_as_text_and_named_as_data),
        TOOL_TEST(a_long_page_is_read_on_from_where_it_was_cut),
        TOOL_TEST(addresses_that_are_not_public_are_refused_at_every_hop),
        TOOL_TEST(what_is_no_page_says_why),
        TOOL_TEST(a_silent_page_ends_with_the_turn),
        TOOL_TEST(files_are_written_read_edited_and_listed),
        TOOL_TEST(a_long_file_is_read_in_parts_and_an_image_is_shown),
        TOOL_TEST(an_image_has_at_most_the_limit),
        TOOL_TEST(a_command_has_limits),
        TOOL_TEST(a_question_is_short_enough_to_be_read),
        TOOL_TEST(now_knows_the_time_zones),
        TOOL_TEST(commands_are_off_until_a_person_turns_them_on),
        TOOL_TEST(a_question_waits_for_a_person_and_has_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
