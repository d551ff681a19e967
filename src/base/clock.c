#include "base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS_OLDEST (-62167219200000LL) /* 0000-01-01T00:00:00.000Z */
#define MS_NEWEST 253402300799999LL   /* 9999-12-31T23:59:59.999Z */

static int64_t read_clock_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_wall_ms(void)
{
    return read_clock_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_mono_ms(void)
{
    return read_clock_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_mono_us(void)
{
    return read_clock_us(CLOCK_MONOTONIC);
}

int64_t clock_work_ms(void)
{
    return read_clock_us(CLOCK_THREAD_CPUTIME_ID) / 1000;
}

int64_t clock_boot_ms(void)
{
    return read_clock_us(CLOCK_BOOTTIME) / 1000;
}

static pthread_once_t boot_once = PTHREAD_ONCE_INIT;
static char boot_id[64] = "unknown";

static void read_boot_id(void)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, boot_id, sizeof(boot_id) - 1);

    if (n > 0)
        boot_id[strcspn(boot_id, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

const char *clock_boot_id(void)
{
    pthread_once(&boot_once, read_boot_id);
    return boot_id;
}

/* Times outside the years 0000 to 9999 are shown as the nearest time inside them. */
void clock_format(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    int64_t shown = MIN(MAX(wall_ms, MS_OLDEST), MS_NEWEST);
    int ms = (int)(((shown % 1000) + 1000) % 1000);
    time_t seconds = (time_t)((shown - ms) / 1000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    snprintf(out, TIME_TEXT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)(tm.tm_year + 1900) % 10000,
             (unsigned)(tm.tm_mon + 1) % 100, (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100,
             (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100, (unsigned)ms % 1000);
}

void clock_now_text(char out[TIME_TEXT_SIZE])
{
    clock_format(clock_wall_ms(), out);
}

/* `rest` is the text not yet read; after a failure its position is undefined. */
static bool take_char(struct slice *rest, const char *one_of)
{
    if (rest->n == 0 || *rest->p == '\0' || !strchr(one_of, *rest->p))
        return false;
    rest->p++;
    rest->n--;
    return true;
}

static bool take_number(struct slice *rest, size_t digits, int min, int max, int *ret)
{
    int value = 0;

    if (rest->n < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        if (rest->p[i] < '0' || rest->p[i] > '9')
            return false;
        value = value * 10 + (rest->p[i] - '0');
    }
    rest->p += digits;
    rest->n -= digits;
    *ret = value;
    return value >= min && value <= max;
}

static int days_in_month(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && is_leap);
}

static bool take_date(struct slice *rest, struct tm *tm)
{
    int year, month;

    if (!take_number(rest, 4, 0, 9999, &year) || !take_char(rest, "-") || !take_number(rest, 2, 1, 12, &month) ||
        !take_char(rest, "-") || !take_number(rest, 2, 1, days_in_month(year, month), &tm->tm_mday))
        return false;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    return true;
}

/* Digits past the third are dropped. */
static bool take_fraction(struct slice *rest, int *ret_ms)
{
    int digit, weight = 100;

    if (!take_number(rest, 1, 0, 9, &digit))
        return false;
    do {
        *ret_ms += digit * weight;
        weight /= 10;
    } while (take_number(rest, 1, 0, 9, &digit));
    return true;
}

static bool take_time(struct slice *rest, struct tm *tm, int *ret_ms)
{
    if (!take_number(rest, 2, 0, 23, &tm->tm_hour) || !take_char(rest, ":") ||
        !take_number(rest, 2, 0, 59, &tm->tm_min))
        return false;
    if (!take_char(rest, ":"))
        return true;
    if (!take_number(rest, 2, 0, 59, &tm->tm_sec))
        return false;
    return !take_char(rest, ".") || take_fraction(rest, ret_ms);
}

static bool take_zone(struct slice *rest, int *ret_offset_minutes)
{
    bool is_west = rest->n > 0 && *rest->p == '-';
    int hours, minutes;

    if (rest->n == 0 || take_char(rest, "Zz"))
        return true;
    if (!take_char(rest, "+-") || !take_number(rest, 2, 0, 23, &hours) || !take_char(rest, ":") ||
        !take_number(rest, 2, 0, 59, &minutes))
        return false;
    *ret_offset_minutes = (hours * 60 + minutes) * (is_west ? -1 : 1);
    return true;
}

int clock_parse(struct slice text, int64_t *ret_wall_ms)
{
    struct tm tm = { 0 };
    int ms = 0, offset_minutes = 0;

    if (!take_date(&text, &tm))
        return -EINVAL;
    if (text.n > 0 && (!take_char(&text, "Tt ") || !take_time(&text, &tm, &ms) || !take_zone(&text, &offset_minutes)))
        return -EINVAL;
    if (text.n > 0)
        return -EINVAL;
    *ret_wall_ms = ((int64_t)timegm(&tm) - offset_minutes * 60) * 1000 + ms;
    return 0;
}
