/* Deliveries of webhook events (table deliveries; decision D5): a repeat of an event id gets the first answer.
 *
 * The first caller claims the event and acts, then stores its answer (or, after a failure, releases the claim so that a
 * repeat may try again). A concurrent repeat gets DELIVERY_BUSY while the first is at work. Any thread.
 *
 *     r = store_deliveries_claim(store, arena, "app:<id>", event_id, &d, e);
 *     if (r == 0 && d.state == DELIVERY_ANSWERED) ...answer d.answer with deduplicated:true...
 *     if (r == 0 && d.state == DELIVERY_BUSY) ...409...
 *     ...act...; r = store_deliveries_answer(store, &d, e)
 */
#pragma once

#include "store/store.h"

enum delivery_state { DELIVERY_MINE, DELIVERY_BUSY, DELIVERY_ANSWERED };

struct delivery_row {
    const char *source, *event_id;
    int64_t status;     /* HTTP status of the first answer */
    const char *answer; /* JSON text of the first answer */
    const char *created_at;
    enum delivery_state state; /* set by store_deliveries_claim() */
};

int store_deliveries_claim(struct store *s, struct arena *a, const char *source, const char *event_id,
                           struct delivery_row *ret, struct err *e) MUST_CHECK;
/* Reads source, event_id, status and answer of the row. */
int store_deliveries_answer(struct store *s, const struct delivery_row *row, struct err *e) MUST_CHECK;
int store_deliveries_release(struct store *s, const char *source, const char *event_id, struct err *e) MUST_CHECK;
/* At service start: releases the claims of a process that died. */
int store_deliveries_release_all(struct store *s, struct err *e) MUST_CHECK;

/* Inside a writer closure: the answer is stored with the effect or not at all. */
int store_deliveries_change(struct sql_db *db, const struct delivery_row *row, struct err *e) MUST_CHECK;
