#include "identity/window.h"

int64_t window_day_of(int64_t wall_ms)
{
    return wall_ms >= 0 ? wall_ms / WINDOW_DAY_MS : -1;
}

static int64_t *slot_of(struct window *w, int64_t second)
{
    return w->slots[second % WINDOW_SLOTS];
}

static void empty_slot(struct window *w, int64_t second)
{
    int64_t *slot = slot_of(w, second);

    for (int unit = 0; unit < N_WINDOW_UNITS; unit++) {
        w->minute[unit] -= slot[unit];
        slot[unit] = 0;
    }
}

static void move_minute(struct window *w, int64_t mono_ms)
{
    int64_t second = mono_ms / WINDOW_SLOT_MS, first = MAX(w->second + 1, second - WINDOW_SLOTS + 1);

    for (int64_t passed = first; passed <= second; passed++)
        empty_slot(w, passed);
    w->second = MAX(w->second, second);
}

static void move_day(struct window *w, int64_t wall_ms)
{
    int64_t day = window_day_of(wall_ms);

    if (day == w->day_number || day == w->day_number - 1)
        return;
    w->day_number = day;
    for (int unit = 0; unit < N_WINDOW_UNITS; unit++)
        w->day[unit] = 0;
}

void window_move(struct window *w, struct window_now now)
{
    move_minute(w, now.mono_ms);
    move_day(w, now.wall_ms);
}

void window_add(struct window *w, enum window_unit unit, int64_t n)
{
    slot_of(w, w->second)[unit] += n;
    w->minute[unit] += n;
    w->day[unit] += n;
}

void window_take_back(struct window *w, enum window_unit unit, int64_t n)
{
    int64_t left = n;

    w->day[unit] -= MIN(n, w->day[unit]);
    for (int64_t second = w->second; left > 0 && second >= 0 && second > w->second - WINDOW_SLOTS; second--) {
        int64_t *slot = slot_of(w, second), taken = MIN(left, slot[unit]);

        slot[unit] -= taken;
        w->minute[unit] -= taken;
        left -= taken;
    }
}

int64_t window_minute_wait(const struct window *w, enum window_unit unit, struct window_now now, int64_t limit)
{
    int64_t left = w->minute[unit], second = w->second - WINDOW_SLOTS + 1;

    if (left < limit)
        return 0;
    for (; second < w->second; second++) {
        if (second >= 0)
            left -= w->slots[second % WINDOW_SLOTS][unit];
        if (left < limit)
            break;
    }
    return (second + WINDOW_SLOTS) * WINDOW_SLOT_MS - now.mono_ms;
}

int64_t window_day_wait(const struct window *w, enum window_unit unit, struct window_now now, int64_t limit)
{
    return w->day[unit] < limit ? 0 : (w->day_number + 1) * WINDOW_DAY_MS - now.wall_ms;
}
