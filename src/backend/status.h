/* The words of a row's status that have a meaning, the same for every backend and for tasks. Any other text is the
 * app's own. Constant; any thread.
 *
 *     if (status_is_claimable(row->status))
 */
#pragma once

#include "base/buf.h"

#define STATUS_PENDING "pending"
#define STATUS_CLAIMED "claimed"
#define STATUS_PROCESSING "processing"
#define STATUS_COMPLETED "completed"
#define STATUS_FAILED "failed"
#define STATUS_CANCELED "canceled"

enum status_class { STATUSES_ALL, STATUSES_CLAIMABLE, STATUSES_LEASED, STATUSES_FINISHED };

bool status_is_claimable(const char *status); /* no machine holds the row, and one may */
bool status_is_leased(const char *status);    /* a machine holds the row */
bool status_is_finished(const char *status);  /* an attempt has ended, or nobody is to begin one */

/* The i-th word of a class; NULL after the last. */
const char *status_word(enum status_class of, size_t i);
/* A class for SQL: 'pending', 'failed' */
void status_add_list(struct buf *out, enum status_class of);
