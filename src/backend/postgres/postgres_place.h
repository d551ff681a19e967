/* The PostgreSQL backend's row of backend_providers.c: from the settings and the data folder to the database.
 *
 * The password of the database is in <data>/backend.password, sealed under <data>/master.key; without that file libpq
 * takes it from PGPASSWORD or ~/.pgpass.
 */
#pragma once

#include "backend/backend_providers.h"
#include "backend/postgres/postgres_open.h"

int postgres_place_open(const struct backend_place *place, struct arena *a, struct backend **ret, struct err *e);
char *postgres_place_setup_text(const struct backend_place *place, const struct backend_setup *setup, struct arena *a);
int postgres_place_setup(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                         struct err *e);
int postgres_place_lacks(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                         struct backend_lacks *ret, struct err *e);
