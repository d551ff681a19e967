#include "llm/local/model_files.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENDING ".gguf"
#define PART "-00000-of-00000"

/* ---- names ---- */

static bool is_model_name(const char *name)
{
    size_t n = strlen(name);

    return name[0] != '.' && n > strlen(ENDING) && strcasecmp(name + n - strlen(ENDING), ENDING) == 0 &&
           !strcasestr(name, "mmproj") && utf8_is_valid(slice_of(name));
}

/* "m-00002-of-00003": part 2 of 3, and *n becomes the length of "m". Anything else is part 1 of 1. */
static void read_part(const char *name, size_t *n, unsigned *ret_part, unsigned *ret_parts)
{
    const char *at = name + *n - MIN(*n, strlen(PART));
    unsigned part, parts;
    int n_read = 0;

    *ret_part = *ret_parts = 1;
    if (*n <= strlen(PART) || sscanf(at, "-%5u-of-%5u%n", &part, &parts, &n_read) != 2 || n_read != (int)strlen(PART) ||
        part < 1 || part > parts)
        return;
    *n -= strlen(PART);
    *ret_part = part;
    *ret_parts = parts;
}

/* ---- files ---- */

static int64_t size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
}

static int64_t written_s(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (int64_t)st.st_mtime : 0;
}

static void add_parts(struct arena *a, const char *dir, const char *name, struct model_file *file)
{
    for (unsigned part = 2; part <= file->n_parts; part++) {
        int64_t n = size_of(arena_printf(a, "%s/%s-%05u-of-%05u%s", dir, file->id, part, file->n_parts,
                                         name + strlen(name) - strlen(ENDING)));

        file->n_missing += n < 0;
        file->n_bytes += MAX(n, (int64_t)0);
    }
}

/* False: the file is not a model, or not a model's first part. */
static bool read_file(struct arena *a, const char *dir, const char *name, struct model_file *ret)
{
    const char *path = arena_printf(a, "%s/%s", dir, name);
    size_t n = strlen(name) - strlen(ENDING);
    struct gguf_info info = { .n_context = 0 };
    unsigned part, parts;

    read_part(name, &n, &part, &parts);
    *ret = (struct model_file){ .id = arena_strndup(a, name, n),
                                .path = path,
                                .n_bytes = size_of(path),
                                .created_s = written_s(path),
                                .n_parts = parts };
    if (ret->n_bytes < 0 || part != 1)
        return false;
    if (gguf_read(path, &info, NULL) == 0)
        ret->info = info;
    add_parts(a, dir, name, ret);
    return strcmp(info.architecture, "clip") != 0; /* "clip": a projector whose name does not show it */
}

static int compare(const void *one, const void *other)
{
    const struct model_file *a = one, *b = other;
    int r = (int)gguf_is_embedding(&a->info) - (int)gguf_is_embedding(&b->info);

    return r ? r : strcmp(a->id, b->id);
}

/* Keeps one file of each id: "m.gguf" and "m-00001-of-00002.gguf" have the same id. */
static size_t drop_twins(struct model_file *items, size_t n)
{
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++)
        if (n_kept == 0 || strcmp(items[n_kept - 1].id, items[i].id) != 0)
            items[n_kept++] = items[i];
    return n_kept;
}

int model_files_list(const char *dir, struct arena *a, struct model_files *ret, struct err *e)
{
    DIR *folder = opendir(dir);
    struct model_files files = { NULL, 0 };
    struct dirent *entry;

    if (!folder && errno != ENOENT)
        return err_errno(e, errno, "The models folder %.300s cannot be read", dir);
    files.items = arena_array(a, folder ? LIMIT_MODEL_FILES : 1, sizeof(*files.items));
    while (folder && files.n < LIMIT_MODEL_FILES && (entry = readdir(folder)))
        if (is_model_name(entry->d_name) && read_file(a, dir, entry->d_name, &files.items[files.n]))
            files.n++;
    if (folder)
        closedir(folder);
    qsort(files.items, files.n, sizeof(*files.items), compare);
    files.n = drop_twins(files.items, files.n);
    *ret = files;
    return 0;
}

const struct model_file *model_files_find(const struct model_files *files, const char *id)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->items[i].id, id) == 0)
            return &files->items[i];
    return NULL;
}
