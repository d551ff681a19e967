/* The models folder, and the heads of GGUF files. */
#include "llm/local/model_files.h"

#include "base/buf.h"
#include "base/limits.h"
#include "os/files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { U32 = 4, STRING = 8, ARRAY = 9, LARGE = 1 << 16 };

/* ---- writing GGUF ---- */

static void add_number(struct buf *out, uint64_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_add_char(out, (char)(value >> (8 * i)));
}

static void add_text(struct buf *out, const char *text)
{
    add_number(out, strlen(text), 8);
    buf_add_str(out, text);
}

static void add_head(struct buf *out, unsigned version, size_t n_pairs)
{
    buf_add_str(out, "GGUF");
    add_number(out, version, 4);
    add_number(out, 1, 8);
    add_number(out, n_pairs, 8);
}

static void add_string(struct buf *out, const char *key, const char *value)
{
    add_text(out, key);
    add_number(out, STRING, 4);
    add_text(out, value);
}

static void add_count(struct buf *out, const char *key, uint64_t value)
{
    add_text(out, key);
    add_number(out, U32, 4);
    add_number(out, value, 4);
}

static void add_llama(struct buf *out)
{
    add_head(out, 3, 9);
    add_string(out, "general.architecture", "llama");
    add_string(out, "general.name", "A model");
    add_count(out, "llama.context_length", 131072);
    add_count(out, "llama.block_count", 16);
    add_count(out, "llama.embedding_length", 2048);
    add_count(out, "llama.attention.head_count", 32);
    add_text(out, "llama.attention.head_count_kv");
    add_number(out, ARRAY, 4);
    add_number(out, U32, 4);
    add_number(out, 2, 8);
    add_number(out, 4, 4);
    add_number(out, 8, 4);
    add_count(out, "qwen.block_count", 99);
    add_text(out, "tokenizer.ggml.tokens"); /* and the following keys are not read */
    add_number(out, 77, 4);
}

static void add_bert(struct buf *out)
{
    add_head(out, 2, 2);
    add_string(out, "general.architecture", "nomic");
    add_count(out, "nomic.pooling_type", 1);
}

/* ---- heads ---- */

static void a_head_reports_what_an_estimate_needs(void **state)
{
    struct gguf_info info = { .n_context = 0 };
    struct buf out;

    buf_init(&out, LARGE);
    add_llama(&out);
    assert_int_equal(gguf_parse(buf_slice(&out), &info, NULL), 0);
    assert_string_equal(info.architecture, "llama");
    assert_int_equal(info.n_context, 131072);
    assert_int_equal(info.n_layers, 16);
    assert_int_equal(info.n_heads_kv, 8); /* the largest of its layers */
    assert_false(gguf_is_embedding(&info));
    assert_int_equal(gguf_context_bytes(&info, 8192), 8192LL * 16 * 8 * (64 + 64) * 2);
    assert_int_equal(gguf_context_bytes(&(struct gguf_info){ .n_layers = 0 }, 1024), 128LL << 20);
    assert_true(
        gguf_context_bytes(&(struct gguf_info){ .n_layers = 1 << 20, .n_heads = 1 << 20, .key_length = 1 << 20 },
                           1 << 20) == INT64_MAX);
    buf_clear(&out);
}

static void models_of_vectors_are_reported_from_those_of_text(void **state)
{
    struct gguf_info info = { .n_context = 0 };
    struct buf out;

    buf_init(&out, LARGE);
    add_bert(&out);
    assert_int_equal(gguf_parse(buf_slice(&out), &info, NULL), 0);
    assert_true(gguf_is_embedding(&info));
    buf_clear(&out);
    assert_true(gguf_is_embedding(&(struct gguf_info){ .architecture = "jina-bert-v2" }));
}

static void what_is_no_model_is_reported(void **state)
{
    struct gguf_info info = { .n_context = 0 };
    struct err e = { 0 };
    struct buf out;

    assert_int_equal(gguf_parse(slice_of(""), &info, &e), -EBADMSG);
    assert_int_equal(gguf_parse(slice_of("GGU"), &info, &e), -EBADMSG);
    assert_int_equal(gguf_parse(slice_of("PK\3\4 and so on"), &info, &e), -EBADMSG);
    assert_non_null(strstr(e.text, "no GGUF file"));
    buf_init(&out, LARGE);
    add_head(&out, 9, 0);
    assert_int_equal(gguf_parse(buf_slice(&out), &info, &e), -EBADMSG);
    assert_non_null(strstr(e.text, "version 9"));
    buf_clear(&out);
}

/* Under the sanitizers: wherever a file is cut off, no byte after its end is read. */
static void a_head_that_is_cut_off_anywhere_is_read_as_far_as_it_goes(void **state)
{
    struct gguf_info info;
    struct buf out;
    size_t n_read = 0;

    buf_init(&out, LARGE);
    add_llama(&out);
    for (size_t n = 0; n <= out.n; n++) {
        AUTO(freep) char *copy = malloc(n + 1);

        assert_non_null(copy);
        memcpy(copy, out.p, n);
        n_read += gguf_parse((struct slice){ copy, n }, &info, NULL) == 0;
    }
    assert_in_range(n_read, 1, out.n);
    buf_clear(&out);
}

static void sizes_that_lie_are_not_believed(void **state)
{
    struct gguf_info info = { .n_context = 0 };
    struct buf out;

    buf_init(&out, LARGE);
    add_head(&out, 3, UINT64_MAX);
    add_string(&out, "general.architecture", "llama");
    add_count(&out, "llama.block_count", UINT32_MAX);
    add_text(&out, "llama.x");
    add_number(&out, ARRAY, 4);
    add_number(&out, U32, 4);
    add_number(&out, UINT64_MAX, 8);
    assert_int_equal(gguf_parse(buf_slice(&out), &info, NULL), 0);
    assert_int_equal(info.n_layers, 0);
    buf_clear(&out);
}

/* ---- the folder ---- */

struct folder {
    struct arena *a;
    char path[64];
};

static void set_up(struct folder *f)
{
    f->a = arena_new();
    snprintf(f->path, sizeof(f->path), "/tmp/hearth-models-XXXXXX");
    assert_non_null(mkdtemp(f->path));
}

static void tear_down(struct folder *f)
{
    assert_int_equal(dir_remove(f->path, NULL), 0);
    arena_free(f->a);
}

static void put(struct folder *f, const char *name, void (*add)(struct buf *out))
{
    struct buf out;

    buf_init(&out, LARGE);
    if (add)
        add(&out);
    else
        buf_add_str(&out, "0123456789");
    assert_int_equal(file_write(arena_printf(f->a, "%s/%s", f->path, name), buf_slice(&out), 0600, NULL), 0);
    buf_clear(&out);
}

static void files_become_models(void **state)
{
    struct model_files files = { NULL, 0 };
    struct folder f;
    const struct model_file *split;

    set_up(&f);
    put(&f, "zephyr-7b.Q4_K_M.gguf", add_llama);
    put(&f, "Alpha.GGUF", add_llama);
    put(&f, "all-vectors.gguf", add_bert);
    put(&f, "big-00001-of-00003.gguf", add_llama);
    put(&f, "big-00002-of-00003.gguf", NULL);
    put(&f, "late-00002-of-00002.gguf", NULL);
    put(&f, "mmproj-zephyr.gguf", add_llama);
    put(&f, ".hidden.gguf", add_llama);
    put(&f, "notes.txt", NULL);
    put(&f, "not-utf-8-\xff.gguf", add_llama);
    put(&f, "broken.gguf", NULL);
    assert_int_equal(mkdir(arena_printf(f.a, "%s/sub.gguf", f.path), 0700), 0);
    assert_int_equal(symlink("zephyr-7b.Q4_K_M.gguf", arena_printf(f.a, "%s/linked.gguf", f.path)), 0);
    assert_int_equal(symlink("nowhere", arena_printf(f.a, "%s/dangling.gguf", f.path)), 0);
    assert_int_equal(model_files_list(f.path, f.a, &files, NULL), 0);
    assert_int_equal(files.n, 6);
    for (size_t i = 0; i < files.n; i++) {
        static const char *const wanted[] = { "Alpha", "big", "broken", "linked", "zephyr-7b.Q4_K_M", "all-vectors" };

        assert_string_equal(files.items[i].id, wanted[i]);
    }
    split = model_files_find(&files, "big");
    assert_int_equal(split->n_parts, 3);
    assert_int_equal(split->n_missing, 1);
    assert_true(split->n_bytes > 10);
    assert_null(model_files_find(&files, "late"));
    assert_string_equal(model_files_find(&files, "broken")->info.architecture, "");
    tear_down(&f);
}

static void a_folder_that_is_not_there_has_no_models(void **state)
{
    struct model_files files = { NULL, 1 };
    struct err e = { 0 };
    struct folder f;

    set_up(&f);
    assert_int_equal(model_files_list(arena_printf(f.a, "%s/none", f.path), f.a, &files, &e), 0);
    assert_int_equal(files.n, 0);
    put(&f, "file", NULL);
    assert_int_equal(model_files_list(arena_printf(f.a, "%s/file", f.path), f.a, &files, &e), -ENOTDIR);
    assert_non_null(strstr(e.text, "models folder"));
    tear_down(&f);
}

static void more_files_than_the_limit_are_left_out(void **state)
{
    struct model_files files = { NULL, 0 };
    struct folder f;

    set_up(&f);
    for (int i = 0; i <= LIMIT_MODEL_FILES; i++)
        put(&f, arena_printf(f.a, "m%d.gguf", i), NULL);
    assert_int_equal(model_files_list(f.path, f.a, &files, NULL), 0);
    assert_int_equal(files.n, LIMIT_MODEL_FILES);
    tear_down(&f);
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    struct gguf_info info;
    struct err e = { 0 };

    assert_int_equal(gguf_read("/nowhere/m.gguf", &info, &e), -ENOENT);
    assert_string_equal(e.code, "BAD_MODEL_FILE");
    assert_non_null(strstr(e.text, "m.gguf cannot be read"));
    assert_int_equal(gguf_read("/dev/null", &info, &e), -EBADMSG);
    assert_non_null(strstr(e.text, "null is no GGUF file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_reports_what_an_estimate_needs),
        cmocka_unit_test(models_of_vectors_are_reported_from_those_of_text),
        cmocka_unit_test(what_is_no_model_is_reported),
        cmocka_unit_test(a_head_that_is_cut_off_anywhere_is_read_as_far_as_it_goes),
        cmocka_unit_test(sizes_that_lie_are_not_believed),
        cmocka_unit_test(files_become_models),
        cmocka_unit_test(a_folder_that_is_not_there_has_no_models),
        cmocka_unit_test(more_files_than_the_limit_are_left_out),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
