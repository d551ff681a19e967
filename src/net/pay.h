/* What answers of peers take of the memory is paid by the caller they are for, until their arena ends (base/budget.h).
 *
 *     r = net_pay(holder, arena, n_bytes, e);
 */
#pragma once

#include "base/arena.h"
#include "base/budget.h"

/* holder NULL: nobody pays. -EBUSY BUDGET_EXCEEDED, -EAGAIN OVERLOADED. Any thread, one at a time per arena. */
int net_pay(struct budget_holder *holder, struct arena *a, size_t n, struct err *e) MUST_CHECK;
