/* A private folder for one test, removed at its end.
 *
 *     AUTO(folder_remove) struct folder f = folder_make();
 *     r = store_open(f.path, &store, &e);
 */
#pragma once

#include "base/util.h"
#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct folder {
    char path[64];
    char file[96];
    char side[96]; /* a folder that is not there yet */
};

static inline struct folder folder_make(void)
{
    struct folder f = { .path = "/tmp/hearth-unit-XXXXXX" };

    assert(mkdtemp(f.path));
    snprintf(f.file, sizeof(f.file), "%s/t.db", f.path);
    snprintf(f.side, sizeof(f.side), "%s/t.side", f.path);
    return f;
}

/* Number of files whose name contains text; ret_path (may be NULL) gets the path of one. */
static inline size_t folder_count(const struct folder *f, const char *text, char ret_path[512])
{
    DIR *dir = opendir(f->path);
    size_t n = 0;

    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] == '.' || !strstr(entry->d_name, text))
            continue;
        if (ret_path)
            snprintf(ret_path, 512, "%s/%s", f->path, entry->d_name);
        n++;
    }
    closedir(dir);
    return n;
}

/* With the files of its folders. */
static inline void folder_remove(struct folder *f)
{
    struct folder inner;
    char path[512];

    while (folder_count(f, "", path) > 0) {
        if (unlink(path) == 0)
            continue;
        snprintf(inner.path, sizeof(inner.path), "%s", path);
        folder_remove(&inner);
    }
    rmdir(f->path);
}
