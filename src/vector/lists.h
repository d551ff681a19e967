/* Inverted lists: the rows of a slab grouped by the nearest of some centres, so that a query looks at a few groups only.
 *
 * Built in the background over a view and never changed. How many groups a query looks at is chosen by what a sample of
 * the rows, asked for their ten nearest, would have needed to find the wanted share of them (`recall`).
 *
 *     r = lists_build(kernel, &view, target_recall, is_stopping, &lists, &order);
 *     n = lists_choose(lists, kernel, &query, numbers);       slots of list i: starts[i] to starts[i + 1]
 */
#pragma once

#include "vector/kmeans.h"
#include "vector/quant.h"
#include "vector/slab.h"

struct lists {
    struct codes centres;
    size_t *starts;                     /* owned; one more than there are lists */
    size_t n_probes;                    /* lists a query looks at */
    double recall;                      /* measured, of the ten nearest */
};

/* ret_order (free() it) says which slot of the view comes to each slot of the new slab. -ECANCELED; -EDOM: a query would have
 * to look at so many lists that scanning all rows is as quick. */
int lists_build(const struct kernel *kernel, const struct slab_view *view, double target_recall, const atomic_bool *is_stopping,
                struct lists **ret, uint32_t **ret_order) MUST_CHECK;
struct lists *lists_free(struct lists *l);
/* The numbers of the n_probes lists whose centres are nearest; numbers holds so many. */
void lists_choose(const struct lists *l, const struct kernel *kernel, const struct quant_query *query, uint32_t *numbers);
