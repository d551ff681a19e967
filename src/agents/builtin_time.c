/* now: date and time in a time zone, by the system's own program, because the C library knows one zone a process. */
#include "agents/builtin_private.h"

#include "base/clock.h"
#include "base/limits.h"
#include "os/run.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { ZONE_CHARS = 64, DATE_MS = 5000 };

#define ZONES "/usr/share/zoneinfo"

struct now_arguments {
    const char *zone;
};

static const struct field now_fields[] = {
    FIELD_STRING(struct now_arguments, zone, "timezone", .min = 1, .max = ZONE_CHARS),
    FIELD_END,
};

/* A name of the zone database: letters, digits, _ + - and slashes between parts. Rules (":/etc/x", "UTC-3") are not
 * taken. */
static bool is_zone(struct arena *a, const char *zone)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
    struct stat st;

    if (strcmp(zone, "UTC") == 0)
        return true;
    return zone[strspn(zone, plain)] == '\0' && zone[0] != '/' && !strstr(zone, "//") &&
           stat(arena_printf(a, ZONES "/%s", zone), &st) == 0 && S_ISREG(st.st_mode);
}

/* Three lines: ISO 8601 with the offset, day of the week, the zone's letters. */
static int run_date(struct arena *a, const char *zone, int64_t now_ms, char **ret, struct err *e)
{
    const char *const argv[] = { "date", "-d", arena_printf(a, "@%lld", (long long)(now_ms / 1000)),
                                 "+%Y-%m-%dT%H:%M:%S%:z%n%A%n%Z", NULL };
    const char *own = getenv("TZ"), *const envp[] = { "LC_ALL=C", "PATH=/usr/bin:/bin",
                                                      zone  ? arena_printf(a, "TZ=%s", zone)
                                                      : own ? arena_printf(a, "TZ=%s", own)
                                                            : NULL,
                                                      NULL };
    struct run_result *result = ARENA_NEW(a, struct run_result);
    int r = run_program(&(struct run_plan){ "/bin/date", argv, envp, DATE_MS }, result, e);

    if (r == 0 && result->code != 0)
        r = err_set(e, -EIO, "INTERNAL_ERROR", "The time could not be read: %.200s", result->errors);
    *ret = result->output;
    return r;
}

static char *next_line(char **at)
{
    char *line = *at;

    *at += strcspn(*at, "\n");
    if (**at)
        *(*at)++ = '\0';
    return line;
}

static int answer(struct arena *a, char *lines, const char *zone, int64_t now_ms, struct mcp_result *ret, struct err *e)
{
    const char *local = next_line(&lines), *day = next_line(&lines), *letters = next_line(&lines);
    char utc[TIME_TEXT_SIZE];
    struct json_writer w;
    struct buf out;

    clock_format(now_ms, utc);
    builtin_answer_begin(&w, &out);
    json_add_string(&w, "time", local);
    json_add_string(&w, "weekday", day);
    json_add_string(&w, "timezone", zone ? zone : letters);
    json_add_string(&w, "utc", utc);
    return builtin_answer_finish(&w, a, ret, e);
}

int builtin_time_now(const struct builtin_call *c, struct mcp_result *ret, struct err *e)
{
    struct arena *a = c->call->arena;
    struct now_arguments in = { 0 };
    int64_t now_ms = clock_wall_ms();
    char *lines = NULL;
    int r = fields_read(now_fields, c->arguments, &in, a, "", e);

    if (r == 0 && in.zone && !is_zone(a, in.zone))
        r = err_add_field(e, "timezone", "must be a name of the time zone database, such as Europe/Berlin");
    if (r == 0)
        r = run_date(a, in.zone, now_ms, &lines, e);
    return r == 0 && lines ? answer(a, lines, in.zone, now_ms, ret, e) : r;
}
