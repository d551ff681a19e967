#include "llm/file.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "net/url.h"

#include <string.h>
#include <strings.h>

enum { MAGIC_BYTES = 9, MAGIC_BASE64 = 12 };

static const struct file_type {
    const char *type, *ending;
    struct slice magic;
} types[] = {
    { "application/pdf", "pdf", SLICE_LIT("%PDF-") },
    { "image/png", "png", SLICE_LIT("\x89PNG\r\n") },
    { "image/jpeg", "jpg", SLICE_LIT("\xFF\xD8\xFF") },
    { "image/jpeg", "jpeg", { 0 } },
    { "image/gif", "gif", SLICE_LIT("GIF8") },
    { "image/webp", "webp", { 0 } },
    { "text/plain", "txt", { 0 } },
    { "text/markdown", "md", { 0 } },
    { "text/csv", "csv", { 0 } },
    { "text/html", "html", { 0 } },
    { "application/json", "json", { 0 } },
    { "application/xml", "xml", { 0 } },
    { "application/msword", "doc", { 0 } },
    { "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx", { 0 } },
    { "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx", { 0 } },
    { "application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx", { 0 } },
    { "application/zip", "zip", SLICE_LIT("PK\x03\x04") },
};

static bool is_textual(const char *type)
{
    static const char *const textual[] = { "application/json", "application/xml",    "application/javascript",
                                           "application/yaml", "application/x-yaml", "application/csv" };

    for (size_t i = 0; i < ARRAY_SIZE(textual); i++)
        if (strcmp(type, textual[i]) == 0)
            return true;
    return strncmp(type, "text/", 5) == 0;
}

static bool is_image(const char *type)
{
    return strncmp(type, "image/", 6) == 0;
}

/* ---- the type ---- */

static bool says_nothing(const char *type)
{
    return !type || !*type || strcmp(type, "application/octet-stream") == 0 ||
           strcmp(type, "binary/octet-stream") == 0 || strcmp(type, "*/*") == 0;
}

static const char *type_by_magic(struct slice first)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (types[i].magic.n > 0 && first.n >= types[i].magic.n &&
            memcmp(first.p, types[i].magic.p, types[i].magic.n) == 0)
            return types[i].type;
    return NULL;
}

static const char *type_by_name(const char *file_name)
{
    const char *dot = file_name ? strrchr(file_name, '.') : NULL;

    for (size_t i = 0; dot && i < ARRAY_SIZE(types); i++)
        if (strcasecmp(types[i].ending, dot + 1) == 0)
            return types[i].type;
    return NULL;
}

static const char *type_of(const char *reported, struct slice first, const char *file_name)
{
    const char *by_name = type_by_name(file_name), *by_magic;

    if (!says_nothing(reported))
        return reported;
    by_magic = type_by_magic(first);
    if (by_magic && by_name && strcmp(by_magic, "application/zip") == 0) /* office documents are zip archives */
        return by_name;
    return by_magic ? by_magic : by_name ? by_name : "application/octet-stream";
}

const char *llm_file_name(struct arena *a, const struct llm_block *block)
{
    if (block->file_name && *block->file_name)
        return block->file_name;
    for (size_t i = 0; block->media_type && i < ARRAY_SIZE(types); i++)
        if (strcmp(types[i].type, block->media_type) == 0)
            return arena_printf(a, "file.%s", types[i].ending);
    return "file";
}

static int refuse_text(const char *path, const char *type, struct err *e)
{
    return err_add_field(e, path, "must hold UTF-8 text, for its type is %.60s", type);
}

static int put_text(struct arena *a, struct slice bytes, const char *type, const char *path, struct llm_block *block,
                    struct err *e)
{
    if (!utf8_is_valid(bytes) || (bytes.n > 0 && memchr(bytes.p, 0, bytes.n)))
        return refuse_text(path, type, e);
    *block = (struct llm_block){ .kind = LLM_BLOCK_TEXT,
                                 .text = arena_printf(a, "[%s]\n%.*s",
                                                      block->file_name && *block->file_name ? block->file_name : "file",
                                                      (int)bytes.n, bytes.p) };
    return 0;
}

/* ---- data URLs ---- */

int llm_split_data_url(struct arena *a, const char *url, const char *path, struct llm_block *block, struct err *e)
{
    const char *type = url + strlen("data:"), *comma = strchr(url, ',');
    size_t n_type = strcspn(type, ";,");

    if (!comma || comma - url < 7 || memcmp(comma - 7, ";base64", 7) != 0)
        return err_add_field(e, path, "must be a data URL in base64: data:<type>;base64,<data>");
    if (!base64_is_padded(comma + 1))
        return err_add_field(e, path, "must hold base64 with its padding");
    block->media_type = n_type ? arena_strndup(a, type, n_type) : "application/octet-stream";
    block->base64 = comma + 1;
    return 0;
}

static const char *type_of_base64(const struct llm_block *block)
{
    struct slice head = { block->base64, MIN(strlen(block->base64), (size_t)MAGIC_BASE64) };
    struct buf first;
    const char *type;

    buf_init(&first, MAGIC_BYTES);
    if (base64_decode(&first, head) < 0)
        buf_reset(&first);
    type = type_of(block->media_type, buf_slice(&first), block->file_name);
    buf_clear(&first);
    return type;
}

static int put_base64_text(struct arena *a, const char *path, struct llm_block *block, struct err *e)
{
    struct buf bytes;
    int r;

    buf_init(&bytes, LIMIT_BODY_CHAT);
    r = base64_decode(&bytes, slice_of(block->base64));
    r = r < 0 ? refuse_text(path, block->media_type, e)
              : put_text(a, buf_slice(&bytes), block->media_type, path, block, e);
    buf_clear(&bytes);
    return r;
}

int llm_file_of_data_url(struct arena *a, const char *url, const char *path, struct llm_block *block, struct err *e)
{
    int r = llm_split_data_url(a, url, path, block, e);

    if (r < 0)
        return r;
    block->media_type = type_of_base64(block);
    block->kind = is_image(block->media_type) ? LLM_BLOCK_IMAGE_DATA : LLM_BLOCK_FILE_DATA;
    return is_textual(block->media_type) ? put_base64_text(a, path, block, e) : 0;
}

/* ---- fetched bytes ---- */

/* "Text/HTML; charset=utf-8": "text/html". */
static char *plain_type(struct arena *a, const char *header)
{
    char *type = arena_strndup(a, header ? header : "", header ? strcspn(header, "; \t") : 0);

    for (char *c = type; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c | 0x20) : *c;
    return type;
}

static void put_data(struct arena *a, struct slice bytes, const char *type, struct llm_block *block)
{
    struct buf text;

    buf_init(&text, 2 * (size_t)LIMIT_BODY_CHAT);
    base64_encode_data(&text, bytes);
    block->kind = is_image(type) ? LLM_BLOCK_IMAGE_DATA : LLM_BLOCK_FILE_DATA;
    block->media_type = type;
    block->url = NULL;
    block->base64 = buf_to_arena(&text, a);
}

int llm_file_of_bytes(struct arena *a, struct slice bytes, const char *reported, const char *path,
                      struct llm_block *block, struct err *e)
{
    const char *type = type_of(plain_type(a, reported), bytes, block->file_name);

    if (is_textual(type))
        return put_text(a, bytes, type, path, block, e);
    put_data(a, bytes, type, block);
    return 0;
}

int llm_image_of_bytes(struct arena *a, struct slice bytes, const char *reported, const char *path,
                       struct llm_block *block, struct err *e)
{
    const char *type = type_of(plain_type(a, reported), bytes, block->file_name);

    if (!is_image(type))
        return err_add_field(e, path, "must be an image, but what its address gives is of the type %.60s", type);
    put_data(a, bytes, type, block);
    return 0;
}

/* ---- addresses ---- */

bool llm_is_web_address(const char *text)
{
    return strncasecmp(text, "https://", 8) == 0 || strncasecmp(text, "http://", 7) == 0;
}

int llm_file_of_address(const char *url, const char *path, struct llm_block *block, struct err *e)
{
    AUTO(arena_freep) struct arena *scratch = arena_new();
    struct url parts = { 0 };

    if (strlen(url) > LIMIT_FILE_ADDRESS_BYTES)
        return err_add_field(e, path, "must have an address of at most %d bytes", LIMIT_FILE_ADDRESS_BYTES);
    if (url_parse(scratch, url, &parts, NULL) < 0)
        return err_add_field(e, path, "must have an address like https://host/path, without a user name or password");
    block->kind = LLM_BLOCK_FILE_URL;
    block->url = url;
    return 0;
}
