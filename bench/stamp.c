/* The agent of bench/agent_start.mjs: appends the moment it began and its activity (the last argument) to a file.
 *
 *     bench_stamp FILE [task id] [activity JSON]
 *
 * CLOCK_MONOTONIC nanoseconds, the same clock as Node's process.hrtime.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec began;
    int fd;

    clock_gettime(CLOCK_MONOTONIC, &began);
    fd = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return 1;
    return dprintf(fd, "%" PRId64 " %s\n", (int64_t)began.tv_sec * 1000000000 + began.tv_nsec, argv[argc - 1]) < 0;
}
