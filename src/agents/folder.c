#include "agents/folder.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "os/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OPEN_ATTEMPTS = 16 /* of a path that is renamed while it is resolved */, FOLDER_LOCKS = 16, PART_BYTES = 255 };

/* Folders share locks by the hash of their path, so that no lock has to be kept for each. */
static pthread_mutex_t folder_locks[FOLDER_LOCKS] = {
    [0 ... FOLDER_LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER,
};

static pthread_mutex_t *folder_lock(const struct folder *folder)
{
    size_t sum = 5381;

    for (const char *p = folder->path; *p; p++)
        sum = sum * 33 + (unsigned char)*p;
    pthread_mutex_lock(&folder_locks[sum % FOLDER_LOCKS]);
    return &folder_locks[sum % FOLDER_LOCKS];
}

static void folder_unlock(pthread_mutex_t **lock)
{
    pthread_mutex_unlock(*lock);
}

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

char *folder_path(struct arena *a, const char *data_dir, int64_t thread_id, const char *created_at)
{
    char digits[32] = "";
    size_t n = 0;

    for (const char *p = created_at; *p && n + 1 < sizeof(digits); p++)
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    return arena_printf(a, "%s/threads/%lld-%s", data_dir, (long long)thread_id, digits);
}

int folder_open(const char *path, int64_t quota_bytes, struct folder *ret, struct err *e)
{
    int fd, r = dir_make(path, e);

    if (r < 0)
        return r;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "The folder of the thread cannot be opened");
    *ret = (struct folder){ fd, path, quota_bytes };
    return 0;
}

void folder_close(struct folder *folder)
{
    close_fd(&folder->fd);
    folder->fd = -1;
}

/* ---- names ---- */

static int refuse_name(const char *why, struct err *e)
{
    return err_set(e, -EINVAL, "FILE_NAME", "`path` %s.", why);
}

static int check_parts(const char *name, struct err *e)
{
    size_t n_parts = 0;

    for (const char *at = name; *at; n_parts++) {
        size_t n = strcspn(at, "/");

        if (n == 0 || n > PART_BYTES)
            return refuse_name("must have parts of 1 to 255 bytes between its slashes", e);
        if ((n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return refuse_name("must not have the parts . and ..", e);
        if (strncmp(at, FOLDER_OWN, sizeof(FOLDER_OWN) - 1) == 0)
            return refuse_name("must not have a part that begins with " FOLDER_OWN, e);
        at += n;
        if (*at == '/' && at[1] == '\0')
            return refuse_name("must not end with a slash", e);
        at += *at == '/';
    }
    return n_parts <= LIMIT_FOLDER_DEPTH
               ? 0
               : err_set(e, -EINVAL, "FILE_NAME", "`path` must have at most %d parts.", LIMIT_FOLDER_DEPTH);
}

int folder_check_name(const char *name, const char **ret, struct err *e)
{
    int r;

    while (strncmp(name, "./", 2) == 0)
        name += 2;
    if (!*name)
        return refuse_name("must name a file", e);
    if (*name == '/')
        return refuse_name("must be relative to the thread's folder, not begin with a slash", e);
    if (strlen(name) > LIMIT_FOLDER_PATH)
        return err_set(e, -EINVAL, "FILE_NAME", "`path` must have at most %d bytes.", LIMIT_FOLDER_PATH);
    if (!utf8_is_valid(slice_of(name)))
        return refuse_name("must be UTF-8", e);
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return refuse_name("must not have control characters", e);
    r = check_parts(name, e);
    if (r == 0)
        *ret = name;
    return r;
}

/* ---- opening below the folder ---- */

/* O_NONBLOCK: a pipe that a command made does not hold the thread. */
static int open_below(int fd, const char *name, int flags)
{
    const struct open_how how = {
        .flags = (uint64_t)flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    long r = -1;

    for (int i = 0; i < OPEN_ATTEMPTS && r < 0; i++) {
        r = syscall(SYS_openat2, fd, name, &how, sizeof(how));
        if (r < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return r < 0 ? -EAGAIN : (int)r;
}

static int explain(int r, const char *name, struct err *e)
{
    switch (r) {
    case -ENOENT:
        return err_set(e, r, "FILE_NOT_FOUND", "There is no %.200s in the thread's folder.", name);
    case -ELOOP:
    case -EXDEV:
        return err_set(e, -EPERM, "FILE_REFUSED", "%.200s is, or lies behind, a link; links are not followed.", name);
    case -ENOTDIR:
    case -EISDIR:
    case -ENXIO:
        return err_set(e, -EPERM, "FILE_REFUSED", "%.200s is no file, or a part of its path is no folder.", name);
    case -ENOSPC:
    case -EDQUOT:
        return err_set(e, r, "STORE_FULL", "There is no space left for %.200s.", name);
    default:
        return err_errno(e, -r, "%.200s in the thread's folder", name);
    }
}

static int open_folder_below(int fd, const char *name)
{
    return open_below(fd, name, O_RDONLY | O_DIRECTORY);
}

/* The folder that holds the file, and the file's last part. is_made: missing folders are made. */
static int open_parent(const struct folder *folder, const char *name, bool is_made, const char **ret_last)
{
    int fd = open_folder_below(folder->fd, ".");

    while (fd >= 0 && strchr(name, '/')) {
        char part[PART_BYTES + 1];
        size_t n = strcspn(name, "/");
        int next;

        memcpy(part, name, n);
        part[n] = '\0';
        if (is_made && mkdirat(fd, part, 0700) < 0 && errno != EEXIST)
            next = -errno;
        else
            next = open_folder_below(fd, part);
        close(fd);
        fd = next;
        name += n + 1;
    }
    *ret_last = name;
    return fd;
}

/* ---- reading ---- */

static int read_all(int fd, struct arena *a, size_t n, struct slice *ret)
{
    char *bytes = arena_alloc(a, n + 1);
    size_t done = 0;

    while (done < n) {
        ssize_t got = read(fd, bytes + done, n - done);

        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            break; /* shortened in the meantime */
        done += got > 0 ? (size_t)got : 0;
    }
    *ret = (struct slice){ bytes, done };
    return 0;
}

static int too_large(const char *name, struct err *e)
{
    return err_set(e, -EFBIG, "FILE_TOO_LARGE", "%.200s must have at most %d bytes.", name, LIMIT_FOLDER_FILE);
}

static int read_checked(const struct folder *folder, const char *name, struct arena *a, struct slice *ret,
                        struct err *e)
{
    AUTO(close_fd) int fd = open_below(folder->fd, name, O_RDONLY);
    struct stat st;
    int r;

    if (fd < 0)
        return explain(fd, name, e);
    if (fstat(fd, &st) < 0)
        return explain(-errno, name, e);
    if (!S_ISREG(st.st_mode))
        return explain(-EISDIR, name, e);
    if (st.st_size > LIMIT_FOLDER_FILE)
        return too_large(name, e);
    r = read_all(fd, a, (size_t)st.st_size, ret);
    return r < 0 ? explain(r, name, e) : 0;
}

int folder_read(const struct folder *folder, const char *name, struct arena *a, struct slice *ret, struct err *e)
{
    int r = folder_check_name(name, &name, e);

    return r < 0 ? r : read_checked(folder, name, a, ret, e);
}

/* ---- walking ---- */

struct walk {
    struct arena *arena;         /* of list */
    struct folder_entries *list; /* NULL: only the sums */
    struct folder_usage usage;
    bool is_deep, removes_unfinished;
    int r;
};

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void walk_add(struct walk *w, const char *prefix, const char *name, const struct stat *st)
{
    if (w->list->n == LIMIT_FOLDER_LIST) {
        w->list->is_cut = true;
        return;
    }
    w->list->items[w->list->n++] = (struct folder_entry){
        .name = arena_printf(w->arena, "%s%s", prefix, name),
        .n_bytes = S_ISDIR(st->st_mode) ? 0 : st->st_size,
        .modified_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000,
        .is_folder = S_ISDIR(st->st_mode),
    };
}

static void walk_folder(struct walk *w, int fd, const char *prefix, int depth);

static void walk_entry(struct walk *w, int fd, const char *name, const char *prefix, int depth)
{
    bool is_unfinished = strncmp(name, FOLDER_OWN, sizeof(FOLDER_OWN) - 1) == 0;
    struct stat st;

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (is_unfinished && w->removes_unfinished && S_ISREG(st.st_mode) && unlinkat(fd, name, 0) == 0)
        return;
    if (++w->usage.n_entries > LIMIT_FOLDER_ENTRIES) {
        w->r = -EDQUOT;
        return;
    }
    w->usage.n_bytes += S_ISREG(st.st_mode) ? MIN((int64_t)st.st_size, INT64_MAX / 2 - w->usage.n_bytes) : 0;
    if (w->list && !is_unfinished && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        walk_add(w, prefix, name, &st);
    if (S_ISDIR(st.st_mode) && w->is_deep && !(w->list && w->list->is_cut))
        walk_folder(w, open_folder_below(fd, name), w->list ? arena_printf(w->arena, "%s%s/", prefix, name) : "",
                    depth + 1);
}

/* Takes fd. */
static void walk_folder(struct walk *w, int fd, const char *prefix, int depth)
{
    DIR *dir = NULL;
    const struct dirent *entry;

    if (depth > LIMIT_FOLDER_WALK)
        w->r = -EDQUOT;
    else if (fd >= 0)
        dir = fdopendir(fd);
    if (!dir) {
        close_fd(&fd);
        return;
    }
    while (w->r == 0 && (entry = readdir(dir)))
        if (!is_dots(entry->d_name))
            walk_entry(w, dirfd(dir), entry->d_name, prefix, depth);
    closedir(dir);
}

static int too_full(struct err *e)
{
    return err_set(e, -EDQUOT, "FOLDER_FULL",
                   "The thread's folder has more than %d files, or is more than %d folders deep; remove some.",
                   LIMIT_FOLDER_ENTRIES, LIMIT_FOLDER_WALK);
}

static int measure(const struct folder *folder, bool removes_unfinished, struct folder_usage *ret, struct err *e)
{
    struct walk w = { .is_deep = true, .removes_unfinished = removes_unfinished };

    walk_folder(&w, open_folder_below(folder->fd, "."), "", 0);
    if (w.r < 0)
        return too_full(e);
    *ret = w.usage;
    return 0;
}

int folder_measure(const struct folder *folder, struct folder_usage *ret, struct err *e)
{
    return measure(folder, false, ret, e);
}

static int compare_entries(const void *one, const void *other)
{
    return strcmp(((const struct folder_entry *)one)->name, ((const struct folder_entry *)other)->name);
}

int folder_list(const struct folder *folder, const char *name, bool is_deep, struct arena *a,
                struct folder_entries *ret, struct err *e)
{
    struct folder_entries list = { .items = arena_array(a, LIMIT_FOLDER_LIST, sizeof(*list.items)) };
    struct walk w = { .arena = a, .list = &list, .is_deep = is_deep };
    bool is_root = !name || !*name || strcmp(name, ".") == 0 || strcmp(name, "./") == 0;
    size_t n = is_root ? 0 : strlen(name);
    int fd, r;

    if (n > 1 && name[n - 1] == '/') /* as folders are often written */
        name = arena_strndup(a, name, n - 1);
    r = is_root ? 0 : folder_check_name(name, &name, e);
    if (r < 0)
        return r;
    fd = open_folder_below(folder->fd, is_root ? "." : name);
    if (fd < 0)
        return explain(fd, is_root ? "" : name, e);
    walk_folder(&w, fd, is_root ? "" : arena_printf(a, "%s/", name), 0);
    list.is_cut = list.is_cut || w.r < 0;
    qsort(list.items, list.n, sizeof(*list.items), compare_entries);
    *ret = list;
    return 0;
}

/* ---- writing ---- */

static int64_t size_of(const struct folder *folder, const char *name)
{
    AUTO(close_fd) int fd = open_below(folder->fd, name, O_RDONLY);
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

/* Under the lock: nothing else of this service writes here, so what is unfinished is of a service that was killed. */
static int check_quota(const struct folder *folder, const char *name, size_t n_bytes, struct err *e)
{
    struct folder_usage usage = { 0 };
    int r = measure(folder, true, &usage, e);

    if (r < 0)
        return r;
    if (usage.n_bytes - size_of(folder, name) + (int64_t)n_bytes > folder->quota_bytes)
        return err_set(e, -EDQUOT, "FOLDER_FULL",
                       "The thread's folder may hold %lld bytes (setting tools.folder_mb) and has %lld already.",
                       (long long)folder->quota_bytes, (long long)usage.n_bytes);
    return usage.n_entries + LIMIT_FOLDER_DEPTH < LIMIT_FOLDER_ENTRIES ? 0 : too_full(e);
}

static int write_all(int fd, struct slice bytes)
{
    while (bytes.n > 0) {
        ssize_t n = write(fd, bytes.p, bytes.n);

        if (n < 0 && errno != EINTR)
            return -errno;
        n = MAX(n, (ssize_t)0);
        bytes = (struct slice){ bytes.p + n, bytes.n - (size_t)n };
    }
    return fsync(fd) < 0 ? -errno : 0;
}

/* The rename replaces a link or a file of this name, never what a link leads to; a folder stays. */
static int write_in(int parent, const char *last, struct slice bytes)
{
    char id[UUID_SIZE], unfinished[sizeof(FOLDER_OWN) + UUID_SIZE];
    int fd, r;

    uuid_v4(id);
    snprintf(unfinished, sizeof(unfinished), "%s%s", FOLDER_OWN, id);
    fd = openat(parent, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = write_all(fd, bytes);
    close(fd);
    if (r == 0 && renameat(parent, unfinished, parent, last) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(parent, unfinished, 0);
    else if (fsync(parent) < 0)
        r = -errno;
    return r;
}

static int write_checked(const struct folder *folder, const char *name, struct slice bytes, struct err *e)
{
    AUTO(close_fd) int parent = -1;
    const char *last;
    int r;

    if (bytes.n > LIMIT_FOLDER_FILE)
        return too_large(name, e);
    r = check_quota(folder, name, bytes.n, e);
    if (r < 0)
        return r;
    parent = open_parent(folder, name, true, &last);
    r = parent < 0 ? parent : write_in(parent, last, bytes);
    return r < 0 ? explain(r, name, e) : 0;
}

int folder_write(const struct folder *folder, const char *name, struct slice bytes, struct err *e)
{
    AUTO(folder_unlock) pthread_mutex_t *lock = folder_lock(folder);
    int r = folder_check_name(name, &name, e);

    return r < 0 ? r : write_checked(folder, name, bytes, e);
}

static const char *find(struct slice in, struct slice what)
{
    return in.n < what.n ? NULL : memmem(in.p, in.n, what.p, what.n);
}

/* The one place, or why there is none. Places that overlap count as two. */
static int find_once(const char *name, struct slice text, struct slice old, const char **ret, struct err *e)
{
    const char *at = old.n > 0 ? find(text, old) : NULL;

    if (old.n == 0)
        return err_add_field(e, "old_text", "must not be empty");
    if (!at)
        return err_set(e, -EINVAL, "EDIT_NOT_UNIQUE", "`old_text` does not occur in %.200s; nothing was changed.",
                       name);
    if (find((struct slice){ at + 1, text.n - (size_t)(at - text.p) - 1 }, old))
        return err_set(e, -EINVAL, "EDIT_NOT_UNIQUE",
                       "`old_text` occurs more than once in %.200s; nothing was changed. Give more of the text around.",
                       name);
    *ret = at;
    return 0;
}

static int edit_checked(const struct folder *folder, const char *name, struct slice old, struct slice new,
                        struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct slice text = { 0 };
    const char *at = NULL;
    struct buf made;
    int r = read_checked(folder, name, a, &text, e);

    if (r == 0)
        r = find_once(name, text, old, &at, e);
    if (r < 0 || !at)
        return r;
    buf_init(&made, LIMIT_FOLDER_FILE);
    buf_add(&made, text.p, (size_t)(at - text.p));
    buf_add_slice(&made, new);
    buf_add(&made, at + old.n, text.n - (size_t)(at - text.p) - old.n);
    r = made.overflowed ? too_large(name, e) : write_checked(folder, name, buf_slice(&made), e);
    buf_clear(&made);
    return r;
}

int folder_edit(const struct folder *folder, const char *name, struct slice old, struct slice new, struct err *e)
{
    AUTO(folder_unlock) pthread_mutex_t *lock = folder_lock(folder);
    int r = folder_check_name(name, &name, e);

    return r < 0 ? r : edit_checked(folder, name, old, new, e);
}
