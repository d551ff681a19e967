#include "base/stall.h"
#include "base/clock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

enum { FRESH_US = 250000, FILE_BYTES = 512 };

/* Of this thread since it began; steal of the whole machine. */
struct spent { int64_t at_us, ran_us, queued_us, stolen_us; };

static _Thread_local struct spent baseline;
static _Thread_local int64_t excused_us;
static _Thread_local const char *stall_label = "an unknown place";

static size_t read_start(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    text[MAX(n, (ssize_t)0)] = '\0';
    return (size_t)MAX(n, (ssize_t)0);
}

/* proc(5): nanoseconds on a processor, and waiting for one; the eighth number of the line "cpu" is the steal in ticks. */
static struct spent read_spent(void)
{
    struct spent s = { .at_us = clock_mono_us() };
    char text[FILE_BYTES];
    int64_t ran = 0, queued = 0, steal = 0;

    read_start("/proc/thread-self/schedstat", text, sizeof(text));
    if (sscanf(text, "%" SCNd64 " %" SCNd64, &ran, &queued) == 2) {
        s.ran_us = ran / 1000;
        s.queued_us = queued / 1000;
    }
    read_start("/proc/stat", text, sizeof(text));
    if (sscanf(text, "cpu %*s %*s %*s %*s %*s %*s %*s %" SCNd64, &steal) == 1)
        s.stolen_us = steal * 1000000 / sysconf(_SC_CLK_TCK);
    return s;
}

struct stall_span stall_begin(void)
{
    struct stall_span s = { clock_mono_us(), excused_us };

    if (s.began_us - baseline.at_us > FRESH_US)
        baseline = read_spent();
    return s;
}

static int64_t time_since(const struct stall_span *s, bool is_waiting_only)
{
    int64_t us = clock_mono_us() - s->began_us;
    struct spent now;

    if (us < STALL_US)
        return 0;
    now = read_spent();
    us -= now.queued_us - baseline.queued_us + now.stolen_us - baseline.stolen_us;
    if (is_waiting_only)
        us -= now.ran_us - baseline.ran_us + excused_us - s->excused_us;
    baseline = now;
    return us < STALL_US ? 0 : us;
}

int64_t stall_held_us(const struct stall_span *s)
{
    return time_since(s, false);
}

int64_t stall_waited_us(const struct stall_span *s)
{
    return time_since(s, true);
}

void stall_set_label(const char *label)
{
    stall_label = label;
}

void stall_excuse(int64_t us)
{
    excused_us += us;
}

const char *stall_place(const void *place)
{
    static _Thread_local char text[64];
    Dl_info info;

    if (!place)
        return stall_label;
    if (!dladdr(place, &info))
        return "an unknown place";
    snprintf(text, sizeof(text), "hearth+%#zx", (size_t)((const char *)place - (const char *)info.dli_fbase));
    return text;
}
