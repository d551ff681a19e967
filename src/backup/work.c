#include "backup/work.h"

#include "backup/backup.h"
#include "backup/parts.h"
#include "base/log.h"
#include "os/files.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORK_LETTERS = 6 }; /* the random letters of mkdtemp(3) */

int backup_work_make(struct arena *a, const char *data_dir, const char *prefix, const char **ret, struct err *e)
{
    char *folder = arena_printf(a, "%s/%sXXXXXX", data_dir, prefix);

    if (!mkdtemp(folder))
        return err_errno(e, errno, "No folder can be made in %s", data_dir);
    *ret = folder;
    return 0;
}

void backup_work_remove(const char *folder)
{
    struct err e = { 0 };

    if (dir_remove(folder, &e) < 0)
        log_debug("backup", NULL, "a folder is left behind: %s", e.text);
}

/* --- files left by killed processes --- */

static bool is_work_name(const char *name, const char *prefix)
{
    size_t n = strlen(prefix), n_letters = 0;

    if (strncmp(name, prefix, n) != 0)
        return false;
    while (isalnum((unsigned char)name[n + n_letters]))
        n_letters++;
    return n_letters == WORK_LETTERS && name[n + n_letters] == '\0';
}

/* "hearth.db", "hearth.db.part", "hearth.db.part-journal", ... */
static bool is_work_file(const char *name)
{
    for (size_t i = 0; i < BACKUP_N_PARTS; i++) {
        size_t n = strlen(backup_parts[i].name);

        if (strncmp(name, backup_parts[i].name, n) == 0 && (name[n] == '\0' || name[n] == '.' || name[n] == '-'))
            return true;
    }
    return strncmp(name, BACKUP_MANIFEST, strlen(BACKUP_MANIFEST)) == 0 ||
           strncmp(name, RESTORE_PLAN, strlen(RESTORE_PLAN)) == 0;
}

/* Recognises our own folders, not just by name: mkdtemp() sets the mode 0700, and the folder holds only our files. */
static bool is_work_folder(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    struct stat st = { 0 };
    struct dirent *entry;
    bool is_ours = entries && fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0700 && st.st_uid == geteuid();

    while (is_ours && (entry = readdir(entries)))
        is_ours = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || is_work_file(entry->d_name);
    if (entries)
        closedir(entries);
    else if (fd >= 0)
        close(fd);
    return is_ours;
}

size_t backup_clean(const char *data_dir)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    DIR *entries = opendir(data_dir);
    struct dirent *entry;
    size_t n = 0;

    while (entries && (entry = readdir(entries))) {
        const char *name = entry->d_name;

        if ((is_work_name(name, BACKUP_WORK) || is_work_name(name, RESTORE_WORK)) &&
            is_work_folder(dirfd(entries), name)) {
            backup_work_remove(arena_printf(a, "%s/%s", data_dir, name));
            n++;
        }
    }
    if (entries)
        closedir(entries);
    return n;
}
