#include "speech/worker_pipe.h"

#include "speech/worker_frames.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIPE_BYTES = 256 << 10 }; /* about six seconds of sound */

bool worker_read(void *to, size_t n)
{
    char *at = to;

    while (n > 0) {
        ssize_t n_read = read(STDIN_FILENO, at, n);

        if (n_read == 0 || (n_read < 0 && errno != EINTR))
            return false;
        at += n_read < 0 ? 0 : n_read;
        n -= n_read < 0 ? 0 : (size_t)n_read;
    }
    return true;
}

static void skip(struct iovec parts[2], size_t n)
{
    for (size_t i = 0; i < 2; i++) {
        size_t n_part = n < parts[i].iov_len ? n : parts[i].iov_len;

        parts[i] = (struct iovec){ (char *)parts[i].iov_base + n_part, parts[i].iov_len - n_part };
        n -= n_part;
    }
}

/* Head and bytes in one call: the service wakes up once. */
bool worker_send(uint32_t kind, const void *bytes, size_t n)
{
    struct speech_frame frame = { kind, (uint32_t)n };
    struct iovec parts[2] = { { &frame, sizeof(frame) }, { (void *)bytes, n } };

    while (parts[0].iov_len + parts[1].iov_len > 0) {
        ssize_t n_written = writev(STDOUT_FILENO, parts, 2);

        if (n_written < 0 && errno != EINTR)
            return false;
        skip(parts, n_written < 0 ? 0 : (size_t)n_written);
    }
    return true;
}

void worker_widen_pipe(void)
{
    (void)!fcntl(STDOUT_FILENO, F_SETPIPE_SZ, PIPE_BYTES);
}
