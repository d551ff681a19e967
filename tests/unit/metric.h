/* The value of a metric, as a reader of /metrics sees it. */
#pragma once

#include "base/metrics.h"
#include <stdlib.h>
#include <string.h>

/* series: a name with its labels, `hearth_children{kind="app"}`. 0 when the page does not have it. */
static inline double metric_of(const char *series)
{
    size_t n = strlen(series);
    double value = 0;
    struct buf page;

    buf_init(&page, 8 << 20);
    metrics_print(&page);
    for (const char *at = strchr(buf_str(&page), '\n'); at; at = strchr(at + 1, '\n'))
        if (strncmp(at + 1, series, n) == 0 && at[1 + n] == ' ')
            value = strtod(at + 1 + n, NULL);
    buf_clear(&page);
    return value;
}
