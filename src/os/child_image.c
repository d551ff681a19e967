#include "os/child_image.h"

#include "os/child_image_made.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* linux/memfd.h of Linux 6.3 */
#endif

__asm__(".pushsection .rodata\n"
        ".global child_image_begin, child_image_end\n"
        "child_image_begin: .incbin \"" CHILD_IMAGE_PATH "\"\n"
        "child_image_end:\n"
        ".popsection\n");

extern const char child_image_begin[], child_image_end[];

static pthread_mutex_t image_mutex = PTHREAD_MUTEX_INITIALIZER;
static int image_fd = -1;

static int image_fill(int fd)
{
    const char *at = child_image_begin;

    while (at < child_image_end) {
        ssize_t n = write(fd, at, (size_t)(child_image_end - at));

        if (n < 0 && errno != EINTR)
            return -errno;
        at += MAX(n, 0);
    }
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 ? -errno : 0;
}

/* Kernels before 6.3 do not know the flag and do not need it. */
static int image_make(int *ret)
{
    int fd = memfd_create("hearth-child", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC), r;

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create("hearth-child", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    r = fd < 0 ? -errno : image_fill(fd);
    if (r < 0 && fd >= 0)
        close(fd);
    if (r == 0)
        *ret = fd;
    return r;
}

int child_image_fd(int *ret, struct err *e)
{
    int r = 0;

    pthread_mutex_lock(&image_mutex);
    if (image_fd < 0)
        r = image_make(&image_fd);
    *ret = image_fd;
    pthread_mutex_unlock(&image_mutex);
    return r < 0
               ? err_errno(e, -r,
                           "The program that starts children cannot be kept in memory (vm.memfd_noexec must not be 2)")
               : 0;
}
