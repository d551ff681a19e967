#include "speech/worker_pipe.h"

#include "speech/worker_frames.h"

#include <errno.h>
#include <unistd.h>

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

static bool write_all(const void *from, size_t n)
{
    const char *at = from;

    while (n > 0) {
        ssize_t n_written = write(STDOUT_FILENO, at, n);

        if (n_written < 0 && errno != EINTR)
            return false;
        at += n_written < 0 ? 0 : n_written;
        n -= n_written < 0 ? 0 : (size_t)n_written;
    }
    return true;
}

bool worker_send(uint32_t kind, const void *bytes, size_t n)
{
    const struct speech_frame frame = { kind, (uint32_t)n };

    return write_all(&frame, sizeof(frame)) && write_all(bytes, n);
}
