/* read_file, write_file, list_files, edit_file: the files of the thread. */
#include "agents/builtin_private.h"

#include "agents/folder.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "llm/file.h"

struct file_arguments {
    const char *path, *content, *old_text, *new_text;
    int64_t start;
    bool is_deep;
};

static const struct field read_fields[] = {
    FIELD_STRING(struct file_arguments, path, "path", FIELD_REQUIRED, .max = LIMIT_FOLDER_PATH),
    FIELD_INT(struct file_arguments, start, "start", .max = LIMIT_FOLDER_FILE),
    FIELD_END,
};
static const struct field write_fields[] = {
    FIELD_STRING(struct file_arguments, path, "path", FIELD_REQUIRED, .max = LIMIT_FOLDER_PATH),
    FIELD_STRING(struct file_arguments, content, "content", FIELD_REQUIRED, .max = LIMIT_FOLDER_FILE),
    FIELD_END,
};
static const struct field list_fields[] = {
    FIELD_STRING(struct file_arguments, path, "path", .max = LIMIT_FOLDER_PATH),
    FIELD_BOOL(struct file_arguments, is_deep, "recursive"),
    FIELD_END,
};
static const struct field edit_fields[] = {
    FIELD_STRING(struct file_arguments, path, "path", FIELD_REQUIRED, .max = LIMIT_FOLDER_PATH),
    FIELD_STRING(struct file_arguments, old_text, "old_text", FIELD_REQUIRED, .max = LIMIT_FOLDER_FILE),
    FIELD_STRING(struct file_arguments, new_text, "new_text", FIELD_REQUIRED, .max = LIMIT_FOLDER_FILE),
    FIELD_END,
};

int builtin_files_open(const struct builtin_call *c, struct folder *ret, struct err *e)
{
    const int64_t quota_mb = settings_int(c->call->models->settings, SETTING_TOOLS_FOLDER_MB);

    if (!c->thread_dir)
        return err_set(e, -ENOTSUP, "NO_FOLDER", "This conversation has no thread, so it has no folder for files.");
    return folder_open(c->thread_dir, quota_mb << 20, ret, e);
}

static int begin(const struct builtin_call *c, const struct field *fields, struct file_arguments *ret,
                 struct folder *folder, struct err *e)
{
    int r = fields_read(fields, c->arguments, ret, c->call->arena, "", e);

    return r < 0 ? r : builtin_files_open(c, folder, e);
}

static int answer_file_text(struct arena *a, const char *path, struct slice bytes, int64_t start,
                            struct mcp_result *ret, struct err *e)
{
    const struct builtin_page page = builtin_page_of(bytes, start);

    if (page.start == 0 && page.n_left == 0)
        return builtin_answer_text(a, bytes, ret, e);
    return builtin_answer_printf(a, ret, e, "%s, bytes %zu to %zu of %zu%s\n\n%.*s", path, page.start,
                                 page.start + page.text.n, bytes.n,
                                 page.n_left > 0 ? "; read on with start at the last of these" : "", (int)page.text.n,
                                 page.text.p);
}

static int answer_file(const struct builtin_call *c, const struct file_arguments *in, struct slice bytes,
                       struct mcp_result *ret, struct err *e)
{
    struct arena *a = c->call->arena;
    struct llm_block image = { .file_name = in->path };

    if (bytes.n == 0 || (utf8_is_valid(bytes) && !memchr(bytes.p, '\0', bytes.n)))
        return answer_file_text(a, in->path, bytes, in->start, ret, e);
    if (llm_image_of_bytes(a, bytes, NULL, "path", &image, NULL) < 0)
        return err_set(e, -EINVAL, "NO_TEXT", "%.200s is neither text in UTF-8 nor an image (%zu bytes).", in->path,
                       bytes.n);
    if (bytes.n > LIMIT_TOOL_IMAGE_FILE)
        return err_set(e, -EFBIG, "FILE_TOO_LARGE", "The image %.200s must have at most %d bytes.", in->path,
                       LIMIT_TOOL_IMAGE_FILE);
    return builtin_answer_image(a, image.media_type, image.base64, ret, e);
}

int builtin_files_read(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    AUTO(folder_close) struct folder folder = { .fd = -1 };
    struct file_arguments in = { 0 };
    struct slice bytes = { 0 };
    int r = begin(c, read_fields, &in, &folder, e);

    if (r == 0)
        r = folder_read(&folder, in.path, c->call->arena, &bytes, e);
    return r < 0 ? r : answer_file(c, &in, bytes, ret, e);
}

int builtin_files_write(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    AUTO(folder_close) struct folder folder = { .fd = -1 };
    struct file_arguments in = { 0 };
    int r = begin(c, write_fields, &in, &folder, e);

    if (r == 0)
        r = folder_write(&folder, in.path, slice_of(in.content), e);
    return r < 0 ? r
                 : builtin_answer_printf(c->call->arena, ret, e, "Wrote %zu bytes to %s.", strlen(in.content), in.path);
}

int builtin_files_edit(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    AUTO(folder_close) struct folder folder = { .fd = -1 };
    struct file_arguments in = { 0 };
    int r = begin(c, edit_fields, &in, &folder, e);

    if (r == 0)
        r = folder_edit(&folder, in.path, slice_of(in.old_text), slice_of(in.new_text), e);
    return r < 0 ? r : builtin_answer_printf(c->call->arena, ret, e, "Replaced the text in %s.", in.path);
}

static void write_entry(struct json_writer *w, const struct folder_entry *entry)
{
    char time[TIME_TEXT_SIZE];

    clock_format(entry->modified_ms, time);
    json_begin_object(w);
    json_add_string(w, "path", entry->name);
    json_add_bool(w, "is_folder", entry->is_folder);
    if (!entry->is_folder)
        json_add_int(w, "bytes", entry->n_bytes);
    json_add_string(w, "modified_at", time);
    json_end(w);
}

static int answer_list(struct arena *a, const struct folder_entries *list, struct mcp_result *ret, struct err *e)
{
    struct json_writer w;
    struct buf out;

    builtin_answer_begin(&w, &out);
    json_begin_array_as(&w, "files");
    for (size_t i = 0; i < list->n; i++)
        write_entry(&w, &list->items[i]);
    json_end(&w);
    json_add_bool(&w, "has_more", list->is_cut);
    return builtin_answer_finish(&w, a, ret, e);
}

int builtin_files_list(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    AUTO(folder_close) struct folder folder = { .fd = -1 };
    struct file_arguments in = { 0 };
    struct folder_entries list = { 0 };
    int r = begin(c, list_fields, &in, &folder, e);

    if (r == 0)
        r = folder_list(&folder, in.path, in.is_deep, c->call->arena, &list, e);
    return r < 0 ? r : answer_list(c->call->arena, &list, ret, e);
}
