#include "base/stall.h"
#include "base/clock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UNKNOWN_PLACE "an unknown place"

enum { FRESH_US = 10000, FRESH_FILES_US = 50000, FILE_BYTES = 512 };

/* Of this thread since it began; steal and pressure of the whole machine. */
struct spent {
    int64_t at_us, ran_us;
    int64_t files_at_us, queued_us, stolen_us, pressed_us;
};

static _Thread_local struct spent baseline;
static _Thread_local int64_t excused_us;
static _Thread_local char stall_label[80] = UNKNOWN_PLACE;

static size_t read_start(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    text[MAX(n, (ssize_t)0)] = '\0';
    return (size_t)MAX(n, (ssize_t)0);
}

/* proc(5): the second number of schedstat is nanoseconds spent waiting for a processor; the eighth number of the line
 * "cpu" is the steal in ticks. Pressure counts microseconds in which some thread lacked a processor.
 */
static void read_files(struct spent *s)
{
    char text[FILE_BYTES];
    int64_t queued = 0, steal = 0;
    const char *total;

    s->files_at_us = clock_mono_us();
    read_start("/proc/thread-self/schedstat", text, sizeof(text));
    if (sscanf(text, "%*s %" SCNd64, &queued) == 1)
        s->queued_us = queued / 1000;
    read_start("/proc/stat", text, sizeof(text));
    if (sscanf(text, "cpu %*s %*s %*s %*s %*s %*s %*s %" SCNd64, &steal) == 1)
        s->stolen_us = steal * 1000000 / sysconf(_SC_CLK_TCK);
    read_start("/proc/pressure/cpu", text, sizeof(text));
    total = strstr(text, "total=");
    s->pressed_us = total ? strtoll(total + strlen("total="), NULL, 10) : 0;
}

static void read_clock(struct spent *s)
{
    struct timespec ran;

    s->at_us = clock_mono_us();
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran) == 0)
        s->ran_us = (int64_t)ran.tv_sec * 1000000 + ran.tv_nsec / 1000;
}

struct stall_span stall_begin(void)
{
    struct stall_span s = { clock_mono_us(), excused_us };

    memcpy(stall_label, UNKNOWN_PLACE, sizeof(UNKNOWN_PLACE)); /* the label is of the span before */
    if (s.began_us - baseline.files_at_us > FRESH_FILES_US)
        read_files(&baseline);
    if (s.began_us - baseline.at_us > FRESH_US)
        read_clock(&baseline);
    return s;
}

/* All zero for a short span. */
static struct stall split(const struct stall_span *s, int64_t most_starved_us)
{
    int64_t us = clock_mono_us() - s->began_us;
    struct stall spent = { 0 };
    struct spent now = baseline;

    if (us < STALL_US)
        return spent;
    read_clock(&now);
    read_files(&now);
    spent.ready_us = MIN(us, now.queued_us - baseline.queued_us + now.stolen_us - baseline.stolen_us);
    spent.ran_us = MIN(us - spent.ready_us, now.ran_us - baseline.ran_us);
    spent.waited_us = us - spent.ready_us - spent.ran_us;
    spent.starved_us = now.pressed_us - baseline.pressed_us - spent.ready_us;
    spent.starved_us = MAX(MIN(MIN(spent.starved_us, spent.waited_us), most_starved_us), (int64_t)0);
    spent.waited_us -= spent.starved_us;
    baseline = now;
    return spent;
}

static int64_t if_long(int64_t us)
{
    return us < STALL_US ? 0 : us;
}

struct stall stall_held(const struct stall_span *s)
{
    struct stall spent = split(s, STALL_LOOP_STARVED_US);

    spent.held_us = if_long(spent.ran_us / STALL_SLOWNESS + spent.waited_us);
    return spent;
}

struct stall stall_waited(const struct stall_span *s)
{
    struct stall spent = split(s, STALL_JOB_STARVED_US);

    spent.held_us = if_long(spent.waited_us - (excused_us - s->excused_us));
    return spent;
}

void stall_set_label(const char *label)
{
    if (!memccpy(stall_label, label, '\0', sizeof(stall_label) - 1))
        stall_label[sizeof(stall_label) - 1] = '\0';
}

void stall_excuse(int64_t us)
{
    excused_us += us;
}

int64_t stall_excused(void)
{
    return excused_us;
}

const char *stall_place(const void *place)
{
    static _Thread_local char text[64];
    Dl_info info;

    if (!place)
        return stall_label;
    if (!dladdr(place, &info))
        return UNKNOWN_PLACE;
    snprintf(text, sizeof(text), "hearth+%#zx", (size_t)((const char *)place - (const char *)info.dli_fbase));
    return text;
}
