#include "net/pay.h"

struct payment {
    struct budget_holder *holder;
    int64_t n;
};

static void give_back(void *arg)
{
    struct payment *p = arg;

    budget_give(p->holder, BUDGET_MEMORY, p->n);
    budget_holder_unref(p->holder);
}

int net_pay(struct budget_holder *holder, struct arena *a, size_t n, struct err *e)
{
    struct payment *p;
    int r = holder ? budget_take(holder, BUDGET_MEMORY, (int64_t)n, e) : 0;

    if (r < 0 || !holder)
        return r;
    p = ARENA_NEW(a, struct payment);
    *p = (struct payment){ budget_holder_ref(holder), (int64_t)n };
    arena_defer(a, give_back, p);
    return 0;
}
