/* The providers of backends: one row each, chosen by the setting backend.kind. Nothing above this file knows one by
 * name: a provider's capabilities are members of its row. Constant; any thread.
 *
 *     const struct backend_place place = { .settings = settings, .data_dir = dir, .instance = instance };
 *     r = backend_provider_open(&place, arena, &backend, e);
 */
#pragma once

#include "backend/backend.h"
#include "settings/settings.h"

#include <stdatomic.h>

struct instance;
struct backend_place {
    struct settings *settings;
    const char *data_dir;
    struct instance *instance; /* of the data folder; NULL: none */
};

/* What the set-up of a place is to make beside the tables of the service. */
struct backend_setup {
    const char *const *tables; /* of apps, as backend_table_name() returns them */
    size_t n_tables;
    const char *role; /* gets the rights that a service needs; NULL: the owner of the tables runs it */
    /* Told before each step of a set-up that has several; NULL: nobody. */
    void (*on_step)(void *arg, const char *what, size_t n, size_t of);
    void *arg;
    const atomic_bool *is_gone, *is_leaving; /* end the wait early; NULL: never */
};
struct backend_lack {
    const char *what, *remedy; /* the remedy as SQL */
};
struct backend_lacks {
    struct backend_lack *items;
    size_t n;
};

struct backend_provider {
    const char *name;             /* a value of backend.kind */
    enum setting_id where;        /* the setting that says where the rows are */
    enum setting_id events_where; /* the one that says so for the events alone, by the same rule; 0: none does */
    const char *file;      /* the file in the data folder when that setting is empty; NULL: no file of this machine
                              holds the rows, so no backup, disk check or sandbox of this service concerns them */
    const char *elsewhere; /* where the rows are, in words for people; NULL: in a file that backups hold */
    bool is_remote;       /* calls wait for another program, mostly on another machine: not on a thread that must not */
    bool may_lose_events; /* also without a gap that tells of it */
    int schema_version;   /* PRAGMA user_version of that file by this program; 0: no file */
    int (*open)(const struct backend_place *place, struct arena *a, struct backend **ret, struct err *e);
    /* Optional: -EINVAL BAD_SETTING for a value of `where` that cannot be opened. */
    int (*check)(const char *value, const char *data_dir, struct err *e);
    /* Of providers whose place is set up before its first use; else NULL. The text may be run by hand instead. */
    char *(*setup_text)(const struct backend_place *place, const struct backend_setup *setup, struct arena *a);
    int (*setup)(const struct backend_place *place, const struct backend_setup *setup, struct arena *a, struct err *e);
    int (*lacks)(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                 struct backend_lacks *ret, struct err *e);
};

extern const struct backend_provider backend_providers[]; /* ended by name NULL */

/* NULL: unknown; the setting takes known names only. */
const struct backend_provider *backend_provider_find(const char *name);
const struct backend_provider *backend_provider_of(struct settings *settings);
/* Whose place the commands of the set-up are about: the provider in use, or else the hosted service, once a project of
 * it is chosen. NULL: none needs a set-up. */
const struct backend_provider *backend_provider_to_set_up(struct settings *settings);
int backend_provider_open(const struct backend_place *place, struct arena *a, struct backend **ret,
                          struct err *e) MUST_CHECK;

/* Checks a value before it is stored in the setting; other settings and an empty value pass. */
int backend_provider_check(enum setting_id setting, const char *value, const char *data_dir, struct err *e) MUST_CHECK;

struct backend_file {
    const char *path;  /* NULL: no file holds the rows */
    bool is_elsewhere; /* a setting names the path */
};
struct backend_file backend_provider_file(struct settings *settings, const char *data_dir, struct arena *a);
