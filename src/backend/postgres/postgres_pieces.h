/* The pieces of the schema as templates of postgres_table.h. Constant. */
#pragma once

#include <stdbool.h>

struct postgres_piece {
    const char *what;  /* for a person; a template */
    const char *probe; /* selects one row of one boolean column: whether it is there */
    const char *make;
    bool is_of_service; /* only where services work on the database themselves, not through the hosted service: realtime
                           takes the place of the outbox and of the table of machines */
};

/* Ended by what NULL. */
extern const struct postgres_piece postgres_database_pieces[];         /* once, before the tables */
extern const struct postgres_piece postgres_publication_pieces[];      /* for the events `logical` */
extern const struct postgres_piece postgres_auto_publication_pieces[]; /* for the events `auto` */
extern const struct postgres_piece postgres_logical_conditions[]; /* what only a superuser makes: probed, never run */
extern const struct postgres_piece postgres_table_pieces[];       /* of every table with work, <abbr>_deletions too */
extern const struct postgres_piece postgres_published_pieces[];   /* the one of these that publishes the table */
extern const struct postgres_piece postgres_listed_pieces[];      /* of every table but <abbr>_deletions */
extern const struct postgres_piece postgres_function_pieces[];    /* once, after the tables */
extern const struct postgres_piece postgres_right_pieces[];       /* of every table, when a role is named */
extern const struct postgres_piece postgres_role_pieces[];        /* once, when a role is named */
extern const struct postgres_piece postgres_version_pieces[];     /* the last of all */
