/* A process that may have few open files (ulimit -n): idle threads then keep no connections to databases, of which each
 * takes two descriptors. The limit is read anew by each call.
 *
 *     r = few_files_check(&e);                 the service cannot work with fewer
 *     few_files_reserve(LIMIT_CONNECTIONS);    before the first thread is started
 *     few_files_adapt(&pool_config);           before pool_start()
 *     r = few_files_admit(&e);                 before an agent is started
 */
#pragma once

#include "base/pool.h"

/* -EMFILE TOO_FEW_FILES when the limit is below what the service itself needs. */
int few_files_check(struct err *e) MUST_CHECK;
/* Makes the kernel's table of this process large enough for `most` descriptors, or for as many as the limit allows. To
 * be called while there is one thread: with several, each accept() or open() that doubles the table waits for all
 * processors (23 ms were measured on the loop). */
void few_files_reserve(size_t most);
/* How many programs, at most `most`, can be started at the same time without taking the LIMIT_FREE_FILES descriptors
 * that are for requests and their connections to databases. A system call for each descriptor that is counted. */
size_t few_files_room(size_t most);
/* -EMFILE TOO_FEW_FILES when few_files_room() is 0. */
int few_files_admit(struct err *e) MUST_CHECK;
/* Below 256 descriptors: few threads, which end soon after their work. Otherwise changes nothing. */
void few_files_adapt(struct pool_config *c);
