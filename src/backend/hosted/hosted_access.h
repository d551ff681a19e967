/* What a project of the hosted service needs beside tables and functions, as templates of postgres_table.h that may be
 * run again: who may what, and what realtime reports. Constant. */
#pragma once

#include "backend/postgres/postgres_pieces.h"
#include "backend/query.h"

/* Ended by what NULL. */
extern const struct postgres_piece hosted_access_pieces[];      /* of every table with work */
extern const struct postgres_piece hosted_list_access_pieces[]; /* once: of the lists of tables */
extern const struct postgres_piece hosted_publication_pieces[]; /* of every table with work */
extern const struct postgres_piece hosted_reload_pieces[];      /* the last of all; its probe finds nothing missing */
/* Row-level security of a new table with columns of its own; not to be run again. */
const char *hosted_declared_rule(const struct table_shape *declared);
