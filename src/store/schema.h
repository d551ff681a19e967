/* The migrations of <data>/hearth.db, in order. A released row never changes: add a new row. */
#pragma once

#include "store/migrate.h"

enum { STORE_APPLICATION_ID = 0x48525448 /* "HRTH" */ };

extern const struct migration store_migrations[];
extern const size_t store_n_migrations;
