/* A process that may have few open files (ulimit -n): idle threads then keep no connections to databases, of which each
 * takes two descriptors. At the start; the limit is not read again.
 *
 *     r = few_files_check(&e);                 the service cannot work with fewer
 *     few_files_adapt(&pool_config);           before pool_start()
 */
#pragma once

#include "base/pool.h"

/* -EMFILE TOO_FEW_FILES when the limit is below what the service itself needs. */
int few_files_check(struct err *e) MUST_CHECK;
/* Below 256 descriptors: few threads, which end soon after their work. Otherwise changes nothing. */
void few_files_adapt(struct pool_config *c);
