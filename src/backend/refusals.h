/* The checks and refusals of the contract (backend.h) in words, for every implementation. Pure; any thread.
 *
 *     r = refusals_check_new_row(in, e);
 *     return n_changed ? 0 : refusals_lease_lost(lease, e);
 */
#pragma once

#include "backend/backend.h"

/* What a caller hands in, before the database sees it. -EINVAL VALIDATION_ERROR, -E2BIG TOO_LARGE. */
int refusals_check_new_row(const struct backend_new_row *in, struct err *e) MUST_CHECK;
int refusals_check_patch(const struct backend_patch *patch, struct err *e) MUST_CHECK;
int refusals_check_result(const char *result_json, struct err *e) MUST_CHECK; /* NULL is fine */
int refusals_check_abbr(const char *abbr, struct err *e) MUST_CHECK;

int refusals_no_row(struct err *e);
int refusals_list_too_large(struct err *e); /* -E2BIG TOO_LARGE */
int refusals_no_table(const char *table, struct err *e);
int refusals_lease_lost(const struct backend_lease *lease, struct err *e);
int refusals_not_dirty(struct err *e);
/* The reason why a claim changed nothing; row: as it is now. */
int refusals_claim(const struct backend_claim *claim, const struct backend_row *row, struct err *e);
int refusals_replay(const struct backend_row *row, struct err *e);
/* hostname NULL: unknown */
int refusals_machine_taken(const char *machine_id, const char *hostname, struct err *e);
