/* Charges the memory of a peer's answer to the caller that the answer is for, until its arena ends (base/budget.h).
 *
 *     r = net_pay(holder, arena, n_bytes, e);
 */
#pragma once

#include "base/arena.h"
#include "base/budget.h"

/* holder NULL: no charge. -EBUSY BUDGET_EXCEEDED, -EAGAIN OVERLOADED. Any thread, one at a time per arena. */
int net_pay(struct budget_holder *holder, struct arena *a, size_t n, struct err *e) MUST_CHECK;
