/* Static files: what is found, what is not, and the answer. Streams of large files: tests/api/static_files.test.mjs. */
#include "base/hash.h"
#include "base/limits.h"
#include "http/files.h"
#include "http/local.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/hearth-files-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void set_time(const char *name, time_t at)
{
    const struct timespec times[] = { { .tv_sec = at }, { .tv_sec = at } };

    assert_int_equal(utimensat(AT_FDCWD, in_folder(name), times, 0), 0);
}

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    assert_int_equal(mkdir(in_folder("assets"), 0700), 0);
    assert_int_equal(mkdir(in_folder("www"), 0700), 0);
    assert_int_equal(mkdir(in_folder("www/assets"), 0700), 0);
    assert_int_equal(mkdir(in_folder("www/.git"), 0700), 0);
    put("secret.txt", "secret");
    put("www/index.html", "<p>home");
    put("www/a.js", "long text");
    put("www/a.js.gz", "packed");
    put("www/old.css", "new text");
    put("www/old.css.gz", "old");
    put("www/assets/x-1.JS", "x");
    put("www/.env", "secret");
    put("www/.git/config", "secret");
    put("www/with space.txt", "s");
    set_time("www/old.css.gz", 1000);
    set_time("www/index.html", 784111777);
    assert_int_equal(symlink("../secret.txt", in_folder("www/link.txt")), 0);
    assert_int_equal(symlink("index.html", in_folder("www/inner.html")), 0);
    assert_int_equal(symlink("..", in_folder("www/up")), 0);
    assert_int_equal(mkfifo(in_folder("www/pipe.txt"), 0600), 0);
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = { "www/pipe.txt",
                                         "www/up",
                                         "www/inner.html",
                                         "www/link.txt",
                                         "www/big.bin",
                                         "www/with space.txt",
                                         "www/.git/config",
                                         "www/.env",
                                         "www/assets/x-1.JS",
                                         "www/old.css.gz",
                                         "www/old.css",
                                         "www/a.js.gz",
                                         "www/a.js",
                                         "www/index.html",
                                         "secret.txt",
                                         "www/.git",
                                         "www/assets",
                                         "www",
                                         "assets",
                                         "" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        remove(in_folder(names[i]));
    return 0;
}

static const struct http_embedded_file table[] = {
    { "page.css", { "body{}", 6 } }, { "page.css.gz", { "gz", 2 } }, { "s.js", { "s", 1 } }, { .name = NULL }
};

static struct http_exchange *request(const char *name, const char *value)
{
    struct http_exchange *x = http_local_new(HTTP_GET, "/", "", (struct slice){ 0 });

    if (name) {
        x->request.headers = arena_array(x->arena, 1, sizeof(struct http_header));
        x->request.headers[0] = (struct http_header){ name, value };
        x->request.n_headers = 1;
    }
    return x;
}

static const char *header_of(const struct http_exchange *x, const char *name)
{
    for (size_t i = 0; i < x->response.n_headers; i++)
        if (strcmp(x->response.headers[i].name, name) == 0)
            return x->response.headers[i].value;
    return NULL;
}

/* Finds, answers, and compares the body; text NULL: not found. */
static struct http_exchange *expect(const struct http_files *set, struct http_exchange *x, const char *path,
                                    const char *text)
{
    struct http_file file;
    struct err e = { 0 };
    int r = http_files_find(set, x, path, &file, &e);

    if (r == 0) {
        assert_int_equal(http_file_answer(&file, x, &e), 0);
        http_file_clear(&file);
        http_file_clear(&file);
    }
    if (!text)
        assert_string_equal(e.code, "NOT_FOUND");
    else if (r < 0 || strcmp(buf_str(&x->response.body), text) != 0)
        fail_msg("%s: %d %s", path, r, buf_str(&x->response.body));
    return x;
}

static struct http_files www(bool is_app)
{
    static char path[64];

    snprintf(path, sizeof(path), "%s/www", folder);
    return (struct http_files){ .folder = path, .is_app = is_app, .immutable = "assets/" };
}

static void only_regular_files_below_the_folder_are_found(void **state)
{
    static const struct {
        const char *path, *text;
    } cases[] = {
        { "index.html", "<p>home" },
        { "a.js", "long text" },
        { "assets/x-1.JS", "x" },
        { "with space.txt", "s" },
        { "a.js.gz", "packed" },
        { "", NULL },
        { ".", NULL },
        { "..", NULL },
        { "../secret.txt", NULL },
        { "assets/../../secret.txt", NULL },
        { "/secret.txt", NULL },
        { "/etc/passwd", NULL },
        { "assets", NULL },
        { "assets/", NULL },
        { "assets//x-1.JS", NULL },
        { "a.js/", NULL },
        { "a.js/x", NULL },
        { ".env", NULL },
        { ".git/config", NULL },
        { "link.txt", NULL },
        { "inner.html", NULL },
        { "up/secret.txt", NULL },
        { "pipe.txt", NULL },
        { "..\\secret.txt", NULL },
        { "nothing.js", NULL },
    };
    struct http_files set = www(false);
    char name[600];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        http_local_free(expect(&set, request(NULL, NULL), cases[i].path, cases[i].text));
    memset(name, 'n', sizeof(name));
    name[256] = '\0'; /* NAME_MAX is 255 */
    http_local_free(expect(&set, request(NULL, NULL), name, NULL));
    set.folder = "/nonexistent";
    http_local_free(expect(&set, request(NULL, NULL), "a.js", NULL));
}

static void an_app_answers_unknown_paths_with_its_index(void **state)
{
    static const struct {
        const char *path, *text;
    } cases[] = {
        { "", "<p>home" },         { "chat", "<p>home" },   { "chat/7/edit", "<p>home" }, { "chat/", "<p>home" },
        { "assets/x-2.js", NULL }, { "favicon.ico", NULL }, { "../x", "<p>home" },        { "v1.2/page", "<p>home" },
    };
    const struct http_files set = www(true);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_exchange *x = expect(&set, request(NULL, NULL), cases[i].path, cases[i].text);

        if (cases[i].text)
            assert_string_equal(header_of(x, "cache-control"), "no-cache");
        http_local_free(x);
    }
}

static void types_follow_the_extension(void **state)
{
    static const struct {
        const char *path, *type;
    } cases[] = {
        { "index.html", "text/html; charset=utf-8" },          { "a.js", "text/javascript; charset=utf-8" },
        { "assets/x-1.JS", "text/javascript; charset=utf-8" }, { "old.css", "text/css; charset=utf-8" },
        { "with space.txt", "text/plain; charset=utf-8" },     { "a.js.gz", "application/gzip" },
    };
    const struct http_files set = www(false);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_exchange *x = request(NULL, NULL);
        struct http_file file;

        assert_int_equal(http_files_find(&set, x, cases[i].path, &file, NULL), 0);
        assert_string_equal(file.type, cases[i].type);
        http_file_clear(&file);
        http_local_free(x);
    }
}

static void a_packed_sibling_is_sent_to_those_who_accept_it(void **state)
{
    const struct http_files files = www(false), embedded = { .embedded = table };
    const struct {
        const struct http_files *set;
        const char *accepts, *path, *text, *encoding;
    } cases[] = {
        { &files, "gzip", "a.js", "packed", "gzip" },      { &files, "br, gzip;q=0.5", "a.js", "packed", "gzip" },
        { &files, "gzip;q=0", "a.js", "long text", NULL }, { &files, "br", "a.js", "long text", NULL },
        { &files, "gzip", "old.css", "new text", NULL }, /* the sibling is older */
        { &files, "gzip", "index.html", "<p>home", NULL }, { &embedded, "gzip", "page.css", "gz", "gzip" },
        { &embedded, "br", "page.css", "body{}", NULL },   { &embedded, "gzip", "s.js", "s", NULL },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_exchange *x =
            expect(cases[i].set, request("accept-encoding", cases[i].accepts), cases[i].path, cases[i].text);
        const char *encoding = header_of(x, "content-encoding");

        assert_string_equal(encoding ? encoding : "none", cases[i].encoding ? cases[i].encoding : "none");
        assert_string_equal(header_of(x, "vary"), "accept-encoding");
        http_local_free(x);
    }
}

static void a_client_that_has_the_file_gets_no_body(void **state)
{
    const struct http_files set = www(false);
    struct http_exchange *x = expect(&set, request(NULL, NULL), "index.html", "<p>home");
    const char *etag = arena_strdup(x->arena, header_of(x, "etag"));
    const struct {
        const char *name, *value;
        bool is_held;
    } cases[] = {
        { "if-none-match", etag, true },
        { "if-none-match", "*", true },
        { "if-none-match", arena_printf(x->arena, "W/%s", etag), true },
        { "if-none-match", arena_printf(x->arena, "\"other\" , %s", etag), true },
        { "if-none-match", arena_printf(x->arena, "%sx", etag), false },
        { "if-none-match", "\"other\"", false },
        { "if-none-match", "", false },
        { "if-none-match", ",,, ", false },
        { "if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT", true },
        { "if-modified-since", "Sun, 06 Nov 1994 08:49:36 GMT", false },
        { "if-modified-since", "never", false },
    };

    assert_string_equal(header_of(x, "last-modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_exchange *again =
            expect(&set, request(cases[i].name, cases[i].value), "index.html", cases[i].is_held ? "" : "<p>home");

        assert_int_equal(again->response.status, cases[i].is_held ? 304 : 200);
        assert_string_equal(header_of(again, "etag"), etag);
        http_local_free(again);
    }
    http_local_free(x);
}

static void a_changed_file_has_another_tag_and_hashed_names_never_expire(void **state)
{
    const struct http_files set = www(false), embedded = { .embedded = table };
    struct http_exchange *before = expect(&set, request(NULL, NULL), "assets/x-1.JS", "x"), *after,
                         *css = expect(&embedded, request(NULL, NULL), "page.css", "body{}"),
                         *js = expect(&embedded, request(NULL, NULL), "s.js", "s");

    assert_string_equal(header_of(before, "cache-control"), "public, max-age=31536000, immutable");
    assert_string_equal(header_of(before, "x-content-type-options"), "nosniff");
    put("www/assets/x-1.JS", "y");
    set_time("www/assets/x-1.JS", 2000);
    after = expect(&set, request(NULL, NULL), "assets/x-1.JS", "y");
    assert_string_not_equal(header_of(before, "etag"), header_of(after, "etag"));
    assert_string_not_equal(header_of(css, "etag"), header_of(js, "etag"));
    assert_null(header_of(css, "last-modified"));
    http_local_free(expect(&embedded, request("if-none-match", header_of(js, "etag")), "s.js", ""));
    http_local_free(expect(&embedded, request(NULL, NULL), "other.js", NULL));
    http_local_free(expect(&embedded, request(NULL, NULL), "", NULL));
    http_local_free(before);
    http_local_free(after);
    http_local_free(css);
    http_local_free(js);
}

static void sizes_have_their_limits(void **state)
{
    static const struct {
        off_t n;
        int r_find, r_answer;
    } cases[] = {
        { LIMIT_FILE_WHOLE_BYTES, 0, 0 },
        { LIMIT_FILE_WHOLE_BYTES + 1, 0, 1 },
        { LIMIT_FILE_BYTES, 0, 1 },
        { LIMIT_FILE_BYTES + 1, -E2BIG, 0 },
    };
    const struct http_files set = www(false);

    put("www/big.bin", "");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_exchange *x = request(NULL, NULL);
        struct http_file file;
        struct err e = { 0 };

        assert_int_equal(truncate(in_folder("www/big.bin"), cases[i].n), 0);
        assert_int_equal(http_files_find(&set, x, "big.bin", &file, &e), cases[i].r_find);
        if (cases[i].r_find == 0)
            assert_int_equal(http_file_answer(&file, x, &e), cases[i].r_answer);
        else
            assert_string_equal(e.code, "TOO_LARGE");
        assert_int_equal(x->response.body.n, cases[i].r_find == 0 && cases[i].r_answer == 0 ? cases[i].n : 0);
        http_file_clear(&file);
        http_local_free(x);
    }
}

static void a_file_that_shrinks_is_an_error(void **state)
{
    const struct http_files set = www(false);
    struct http_exchange *x = request(NULL, NULL);
    struct http_file file;
    struct err e = { 0 };

    put("www/big.bin", "0123456789");
    assert_int_equal(http_files_find(&set, x, "big.bin", &file, &e), 0);
    assert_int_equal(truncate(in_folder("www/big.bin"), 5), 0);
    assert_int_equal(http_file_answer(&file, x, &e), -EIO);
    assert_int_equal(x->response.body.n, 0);
    assert_int_equal(x->response.n_headers, 0);
    http_file_clear(&file);
    http_local_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_regular_files_below_the_folder_are_found),
        cmocka_unit_test(an_app_answers_unknown_paths_with_its_index),
        cmocka_unit_test(types_follow_the_extension),
        cmocka_unit_test(a_packed_sibling_is_sent_to_those_who_accept_it),
        cmocka_unit_test(a_client_that_has_the_file_gets_no_body),
        cmocka_unit_test(a_changed_file_has_another_tag_and_hashed_names_never_expire),
        cmocka_unit_test(sizes_have_their_limits),
        cmocka_unit_test(a_file_that_shrinks_is_an_error),
    };

    if (hash_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
