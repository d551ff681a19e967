/* A file of a message: a data URL as a caller writes it, and fetched bytes after a first line with their type and a
 * second line with their name. The result is a text, or base64 with a type. */
#include "llm/file.h"

#include "base/base64.h"
#include "base/utf8.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_block(struct arena *a, const struct llm_block *block)
{
    assert(*llm_file_name(a, block));
    if (block->kind == LLM_BLOCK_TEXT)
        assert(utf8_is_valid(slice_of(block->text)));
    else
        assert(block->media_type && *block->media_type && strlen(block->base64) % 4 == 0);
}

static struct slice take_line(struct slice *rest)
{
    const char *end = rest->n > 0 ? memchr(rest->p, '\n', rest->n) : NULL;
    struct slice line = { rest->p, end ? (size_t)(end - rest->p) : 0 };

    if (end)
        *rest = (struct slice){ end + 1, rest->n - line.n - 1 };
    return line;
}

static void read_bytes(struct slice all)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice type = take_line(&all), name = take_line(&all);
    struct llm_block block = { .kind = LLM_BLOCK_FILE_URL,
                               .file_name = arena_strndup(a, name.p ? name.p : "", name.n) },
                     image;
    const char *header = arena_strndup(a, type.p ? type.p : "", type.n);
    struct err e = { 0 };

    if (!utf8_is_valid(slice_of(block.file_name)))
        block.file_name = NULL;
    image = block;
    if (llm_image_of_bytes(a, all, header, "x", &image, &e) == 0)
        assert(image.kind == LLM_BLOCK_IMAGE_DATA && image.base64);
    else
        assert(*e.code);
    e = (struct err){ 0 };
    if (llm_file_of_bytes(a, all, header, "x", &block, &e) == 0)
        check_block(a, &block);
    else
        assert(*e.code);
}

static void read_data_url(struct slice all)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct llm_block block = { .kind = LLM_BLOCK_FILE_DATA };
    const char *url = arena_printf(a, "data:%s", arena_slicedup(a, all));
    struct err e = { 0 };

    if (!utf8_is_valid(slice_of(url)))
        return;
    if (llm_file_of_data_url(a, url, "x", &block, &e) == 0)
        check_block(a, &block);
    else
        assert(*e.code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice all = { (const char *)data, size };

    read_bytes(all);
    read_data_url(all);
    return 0;
}
