/* The list that identity/launches.h is built on, for the files of this folder. */
#pragma once

#include "base/hash.h"
#include "base/uuid.h"
#include "identity/launches.h"
#include <pthread.h>

#define LAUNCH_APP_PREFIX "hearth_app_"
#define LAUNCH_TASK_PREFIX "hearth_task_"

struct launch {
    struct launch *next;
    uint64_t serial;                              /* as in child_spec.tag; no other start has the same */
    char app_id[UUID_SIZE], task_uuid[UUID_SIZE]; /* "": none */
    int64_t attempt;
    pid_t pid;                      /* 0: being started */
    unsigned char hash[HASH_BYTES]; /* of the program's secret */
};

struct launch_list {
    pthread_mutex_t lock;   /* guards the members below */
    pthread_cond_t changed; /* on CLOCK_MONOTONIC */
    struct launch *first;   /* owned */
};

enum { LAUNCH_PIDS = 64 };

struct launch_pids {
    pid_t pids[LAUNCH_PIDS];
    uint64_t serials[LAUNCH_PIDS];
    size_t n;
};

void launches_init(struct launch_list *l);
void launches_clear(struct launch_list *l);
bool launches_find_secret(struct identity *id, const char *secret, struct launch *ret);
/* Does a program of that app or task run? serial: exactly that start (0: any). */
bool launches_runs(struct identity *id, const struct launch_what *what, uint64_t serial);
/* The processes of that app or task. With may_wait, waits for a program that is being started. */
void launches_find_pids(struct identity *id, const struct launch_what *what, bool may_wait, struct launch_pids *ret);
/* The processes of every app and agent, at most n_most; waits for those that are being started. Returns how many. */
size_t launches_all_pids(struct identity *id, pid_t *pids, size_t n_most);
