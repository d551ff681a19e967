/* A backup. For any bytes, only files of the named members appear, each within its limit and all within their common
 * limit. */
#include "backup/archive.h"
#include "os/files.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const struct archive_member members[] = { { "hearth-backup.json", 512 },
                                                 { "hearth.db", 0 },
                                                 { "master.key", 32 } };
static const struct archive_limits limits = { members, ARRAY_SIZE(members), 4096 };

static int64_t take_size(struct arena *a, const char *folder, const struct archive_member *member)
{
    const char *path = arena_printf(a, "%s/%s", folder, member->name);
    struct stat st;

    if (lstat(path, &st) < 0)
        return 0;
    assert(S_ISREG(st.st_mode) && st.st_nlink == 1 && (st.st_mode & 07777) == 0600);
    assert(!member->max_bytes || st.st_size <= member->max_bytes);
    unlink(path);
    return st.st_size;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    char folder[] = "/tmp/hearth-fuzz-XXXXXX";
    int fd = memfd_create("archive", MFD_CLOEXEC), r;
    bool has_digest = false;
    int64_t sum = 0;

    assert(fd >= 0 && mkdtemp(folder) && write(fd, bytes, n) == (ssize_t)n);
    r = archive_unpack(arena_printf(a, "/proc/self/fd/%d", fd), &limits, folder, &has_digest, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        sum += take_size(a, folder, &members[i]);
    assert(r < 0 || sum <= limits.max_bytes);
    assert(rmdir(folder) == 0); /* the folder is empty */
    close(fd);
    return 0;
}
