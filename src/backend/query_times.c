/* Dates and times as PostgreSQL reads their ISO 8601 forms, in the form of its to_jsonb(). */
#include "backend/query_values.h"

#include "base/clock.h"

#include <ctype.h>
#include <strings.h>

enum { DAY_S = 86400, MICROS = 1000000, YEAR_MAX = 9999, ZONE_HOURS = 15 };

struct moment {
    int year, month, day, hour, minute, second, micros;
    int zone_s; /* east of UTC */
};

struct reader {
    struct slice text;
    size_t at;
};

static bool reads(struct reader *r, char c)
{
    if (r->at == r->text.n || r->text.p[r->at] != c)
        return false;
    r->at++;
    return true;
}

/* A number of min to max digits. */
static bool reads_number(struct reader *r, size_t min, size_t max, int *ret)
{
    size_t first = r->at;

    *ret = 0;
    while (r->at < r->text.n && r->at - first < max && isdigit((unsigned char)r->text.p[r->at]))
        *ret = 10 * *ret + (r->text.p[r->at++] - '0');
    return r->at - first >= min;
}

static void skip_blanks(struct reader *r)
{
    while (reads(r, ' '))
        ;
}

/* --- parts --- */

static bool reads_date(struct reader *r, struct moment *m)
{
    return reads_number(r, 4, 4, &m->year) && reads(r, '-') && reads_number(r, 1, 2, &m->month) && reads(r, '-') &&
           reads_number(r, 1, 2, &m->day);
}

/* Digits beyond microseconds round. */
static bool reads_fraction(struct reader *r, struct moment *m)
{
    int digit, n = 0;

    if (!reads(r, '.'))
        return true;
    for (; reads_number(r, 1, 1, &digit); n++) {
        if (n < 6)
            m->micros = 10 * m->micros + digit;
        else if (n == 6 && digit >= 5)
            m->micros++;
    }
    for (int i = n; i < 6; i++)
        m->micros *= 10;
    return true;
}

static bool reads_time(struct reader *r, struct moment *m)
{
    if (!reads_number(r, 1, 2, &m->hour) || !reads(r, ':') || !reads_number(r, 2, 2, &m->minute))
        return false;
    return !reads(r, ':') || (reads_number(r, 2, 2, &m->second) && reads_fraction(r, m));
}

/* Z, +hh, +hhmm, +hh:mm, or nothing. */
static bool reads_zone(struct reader *r, struct moment *m)
{
    int hours = 0, minutes = 0, sign = 1;

    skip_blanks(r);
    if (reads(r, 'Z') || reads(r, 'z') || r->at == r->text.n)
        return true;
    if (reads(r, '-'))
        sign = -1;
    else if (!reads(r, '+'))
        return false;
    if (!reads_number(r, 2, 2, &hours))
        return false;
    if ((reads(r, ':') || r->at < r->text.n) && !reads_number(r, 2, 2, &minutes))
        return false;
    m->zone_s = sign * (hours * 3600 + minutes * 60);
    return hours <= ZONE_HOURS && minutes < 60;
}

/* --- the calendar --- */

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_of(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    return days[month - 1] + (month == 2 && is_leap(year));
}

/* 24:00:00 and a second 60 are valid and belong to what follows. */
static bool is_valid(const struct moment *m)
{
    return m->year >= 1 && m->month >= 1 && m->month <= 12 && m->day >= 1 && m->day <= days_of(m->year, m->month) &&
           m->minute < 60 && m->second <= 60 && m->micros <= MICROS &&
           (m->hour < 24 || (m->hour == 24 && m->minute == 0 && m->second == 0 && m->micros == 0));
}

static int64_t day_number(int year, int month, int day)
{
    int64_t y = year - 1, n = y * 365 + y / 4 - y / 100 + y / 400;

    for (int i = 1; i < month; i++)
        n += days_of(year, i);
    return n + day - 1;
}

/* Carries what exceeds a unit, and the zone, into the date. */
static bool to_utc(struct moment *m)
{
    int64_t s = day_number(m->year, m->month, m->day) * DAY_S + m->hour * 3600 + m->minute * 60 + m->second -
                m->zone_s + m->micros / MICROS;
    int64_t day = s / DAY_S, rest = s % DAY_S;

    if (s < 0)
        return false;
    m->micros %= MICROS;
    for (m->year = 1 + (int)(day / 366); day_number(m->year + 1, 1, 1) <= day; m->year++)
        ;
    day -= day_number(m->year, 1, 1);
    for (m->month = 1; day >= days_of(m->year, m->month); m->month++)
        day -= days_of(m->year, m->month);
    m->day = (int)day + 1;
    m->hour = (int)(rest / 3600);
    m->minute = (int)(rest / 60 % 60);
    m->second = (int)(rest % 60);
    m->zone_s = 0;
    return m->year <= YEAR_MAX;
}

/* --- texts --- */

/* ".68" of 680000 microseconds */
static const char *fraction(struct arena *a, int micros)
{
    char *text = arena_printf(a, ".%06d", micros);
    size_t n = strlen(text);

    while (n && (text[n - 1] == '0' || text[n - 1] == '.'))
        text[--n] = '\0';
    return text;
}

static struct slice show(struct arena *a, enum table_type type, const struct moment *m)
{
    const char *date = arena_printf(a, "%04d-%02d-%02d", m->year, m->month, m->day);
    const char *time = arena_printf(a, "%02d:%02d:%02d%s", m->hour, m->minute, m->second, fraction(a, m->micros));

    if (type == TABLE_DATE)
        return slice_of(date);
    if (type == TABLE_TIME)
        return slice_of(time);
    return slice_of(arena_printf(a, "%sT%s%s", date, time, type == TABLE_TIMESTAMPTZ ? "+00:00" : ""));
}

static bool reads_moment(struct reader *r, enum table_type type, struct moment *m)
{
    skip_blanks(r);
    if (type != TABLE_TIME) {
        if (!reads_date(r, m))
            return false;
        skip_blanks(r);
        if (r->at == r->text.n)
            return true;
        (void)!(reads(r, 'T') || reads(r, 't'));
    }
    return reads_time(r, m) && reads_zone(r, m) && r->at == r->text.n;
}

/* PostgreSQL's word for the moment of the statement (section 8.5.1.4 of its manual); other texts as they are. */
static struct slice with_now(struct arena *a, enum table_type type, struct slice text)
{
    char now[TIME_TEXT_SIZE];

    if (text.n != 3 || strncasecmp(text.p, "now", 3) != 0)
        return text;
    clock_now_text(now);
    return slice_of(arena_strdup(a, type == TABLE_TIME ? now + strlen("2026-11-20T") : now));
}

int query_time_read(struct arena *a, enum table_type type, struct slice text, struct slice *ret, struct err *e)
{
    struct reader r = { .text = with_now(a, type, slice_trim(text)) };
    struct moment m = { .year = 2000, .month = 1, .day = 1 };
    int failed;

    if (!reads_moment(&r, type, &m)) {
        err_add_extra(e, "sqlstate", "22007");
        return query_value_refuse(type, text, e);
    }
    if (type != TABLE_TIMESTAMPTZ)
        m.zone_s = 0;
    failed = !is_valid(&m);
    if (type == TABLE_DATE)
        m.hour = m.minute = m.second = m.micros = 0;
    if (failed || !to_utc(&m)) {
        err_add_extra(e, "sqlstate", "22008");
        return err_set(e, -EINVAL, "BAD_VALUE", "date/time field value out of range: \"%.*s\"",
                       (int)MIN(text.n, (size_t)100), text.p);
    }
    *ret = show(a, type, &m);
    return 0;
}
