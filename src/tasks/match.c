#include "tasks/private.h"

static bool takes_table(const struct task_listener *l, const char *table, enum backend_op op)
{
    for (size_t i = 0; i < l->n_tables; i++)
        if (strcmp(l->tables[i], table) == 0)
            return l->table_events[i] & op;
    return false;
}

/* The first handler for table and event; *ret_any: there is a handler for some event of the table. */
static const struct task_handler *find_handler(const struct task_listener *l, const char *table, enum backend_op op,
                                               bool *ret_any)
{
    *ret_any = false;
    for (size_t i = 0; i < l->n_handlers; i++) {
        if (strcmp(l->handlers[i].table, table) != 0)
            continue;
        *ret_any = true;
        if (l->handlers[i].events & op)
            return &l->handlers[i];
    }
    return NULL;
}

bool task_match_op(const struct task_listeners *list, const struct backend_row *row, enum backend_op op,
                   struct task_match *ret)
{
    const char *table = row->source_table ? row->source_table : row->table;

    for (size_t i = 0; i < list->n; i++) {
        const struct task_listener *l = &list->items[i];
        const struct task_handler *handler;
        bool has_any;

        if (row->app_id && strcmp(row->app_id, l->app_id) != 0)
            continue;
        if (!takes_table(l, table, op) || !filter_matches(l->filter, row))
            continue;
        handler = find_handler(l, table, op, &has_any);
        if (!handler && has_any)
            continue;
        *ret = (struct task_match){
            .listener = l, .handler = handler, .op = op, .is_review = !handler || handler->is_review
        };
        return true;
    }
    return false;
}

/* A row that was changed before it was claimed is still the work of its INSERT; for an app that does not listen to
 * INSERT it is the work of the UPDATE. */
bool task_match(const struct task_listeners *list, const struct backend_row *row, struct task_match *ret)
{
    if (task_match_op(list, row, row->event, ret))
        return true;
    return row->event == BACKEND_INSERT && row->old_data && task_match_op(list, row, BACKEND_UPDATE, ret);
}
