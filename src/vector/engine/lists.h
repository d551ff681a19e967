/* Inverted lists: the rows of a slab grouped by the nearest of some centres, so that a query scans only a few groups.
 *
 * Built in the background over a view and never changed. The number of groups a query scans is chosen with a sample of
 * the rows as queries: at least enough groups to find the wanted share (`recall`) of their ten nearest.
 *
 *     r = lists_build(kernel, &view, &goal, pace, &lists, &order);
 *     n = lists_choose(lists, kernel, &query, numbers);       slots of list i: starts[i] to starts[i + 1]
 */
#pragma once

#include "vector/engine/kmeans.h"
#include "vector/engine/quant.h"
#include "vector/engine/slab.h"

struct lists {
    struct codes centres;
    size_t *starts;  /* owned; one entry more than there are lists */
    size_t n_probes; /* lists that a query scans */
    double recall;   /* measured, of the ten nearest */
};

struct lists_goal {
    double recall;
    bool must_be_sure; /* only lists of which one in 64 has 99.95 % of the nearest are of use */
};

/* ret_order (free() it) holds for each slot of the new slab its slot in the view. -ECANCELED; -EDOM: the lists are of
 * no use, because a query would have to scan so many that scanning all rows is as fast, or because they are not sure.
 */
int lists_build(const struct kernel *kernel, const struct slab_view *view, const struct lists_goal *goal,
                struct pace *pace, struct lists **ret, uint32_t **ret_order) MUST_CHECK;
struct lists *lists_free(struct lists *l);
/* The numbers of the n_probes lists whose centres are nearest, the nearest first; numbers has room for n_probes. */
void lists_choose(const struct lists *l, const struct kernel *kernel, const struct quant_query *query,
                  uint32_t *numbers);
