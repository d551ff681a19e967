/* What the hosted backend needs in a project beside the pieces of postgres_pieces.h, in the same form: templates of
 * postgres_table.h, which may be run again. Constant. */
#pragma once

#include "backend/postgres/postgres_pieces.h"
#include "base/arena.h"

/* Ended by what NULL. */
extern const struct postgres_piece hosted_database_pieces[]; /* once */
extern const struct postgres_piece hosted_table_pieces[];    /* of every table with work, <abbr>_deletions too; after
                                                                postgres_table_pieces */
/* The SQL by which the changes of a table are reported, with its old rows. */
const char *hosted_publish_sql(const char *abbr, const char *table, struct arena *a);
