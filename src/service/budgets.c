/* What callers may hold (base/budget.h), as the settings say. */
#include "service/private.h"

#include "base/budget.h"

#include <assert.h>
#include <unistd.h>

enum { MEMORY_SHARE = 4, MOST_MEMORY_MB = 2048 };

static int64_t memory_bytes(struct service *s)
{
    int64_t given_mb = settings_int(s->settings, SETTING_LIMITS_MEMORY_MB);
    int64_t machine_mb = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) >> 20;

    return (given_mb ? given_mb : MIN(machine_mb / MEMORY_SHARE, (int64_t)MOST_MEMORY_MB)) << 20;
}

void service_set_budgets(struct service *s)
{
    static const enum budget of_memory[] = { BUDGET_BODY, BUDGET_REPLIES, BUDGET_MEMORY };

    for (enum budget b = 0; b < N_BUDGETS; b++) {
        enum setting_id setting = 0;
        bool is_known = settings_find(budget_rules[b].setting, &setting);

        assert(is_known);
        if (is_known)
            budget_set_limit(b, settings_int(s->settings, setting) << (budget_rules[b].is_bytes ? 20 : 0));
    }
    for (size_t i = 0; i < ARRAY_SIZE(of_memory); i++)
        budget_set_total(of_memory[i], memory_bytes(s));
    budget_show_metrics();
}
