#include "agents/prompt.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/visible.h"

#include <string.h>
#include <time.h>

struct filling {
    const struct agent_prompt_values *values;
    struct tm now;
    struct buf out;
};

static void add_date(struct filling *f)
{
    buf_printf(&f->out, "%d-%02d-%02d", f->now.tm_year + 1900, f->now.tm_mon + 1, f->now.tm_mday);
}

static void add_clock(struct filling *f)
{
    buf_printf(&f->out, "%02d:%02d", f->now.tm_hour, f->now.tm_min);
}

/* As "CEST, UTC+02:00". */
static void add_zone(struct filling *f)
{
    long minutes = f->now.tm_gmtoff / 60, away = minutes < 0 ? -minutes : minutes;

    buf_printf(&f->out, "%s, UTC%c%02ld:%02ld", f->now.tm_zone, minutes < 0 ? '-' : '+', away / 60, away % 60);
}

/* Names come from other programs: a line break in one must not begin a new line of the instructions. */
static void add_name(struct filling *f, const char *name)
{
    visible_add(&f->out, slice_of(name && *name ? name : "none"), VISIBLE_LINE);
}

static void add_workspace(struct filling *f)
{
    add_name(f, f->values->workspace);
}

static void add_user(struct filling *f)
{
    add_name(f, f->values->user);
}

static void add_app(struct filling *f)
{
    add_name(f, f->values->app);
}

static const struct {
    const char *name;
    void (*add)(struct filling *f);
} variables[] = {
    { "{date}", add_date },           { "{time}", add_clock }, { "{time_zone}", add_zone },
    { "{workspace}", add_workspace }, { "{user}", add_user },  { "{app}", add_app },
};

/* The length of the variable that begins here; 0: none does. */
static size_t fill_one(struct filling *f, const char *text)
{
    for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
        if (strncmp(text, variables[i].name, strlen(variables[i].name)) == 0) {
            variables[i].add(f);
            return strlen(variables[i].name);
        }
    return 0;
}

int agent_prompt_fill(struct arena *a, const char *text, const struct agent_prompt_values *v, char **ret, struct err *e)
{
    time_t now = (time_t)(v->now_s ? v->now_s : clock_wall_ms() / 1000);
    struct filling f = { .values = v };
    int r;

    localtime_r(&now, &f.now);
    buf_init(&f.out, LIMIT_INSTRUCTIONS_BYTES);
    for (const char *at = text ? text : "", *brace; *at; at = brace) {
        size_t n = strcspn(at, "{");

        buf_add(&f.out, at, n);
        brace = at + n;
        if (*brace && (n = fill_one(&f, brace)) > 0)
            brace += n;
        else if (*brace)
            buf_add(&f.out, brace++, 1);
    }
    r = buf_check(&f.out, e);
    if (r == 0)
        *ret = buf_to_arena(&f.out, a);
    buf_clear(&f.out);
    return r;
}
