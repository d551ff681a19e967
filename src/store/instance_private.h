/* Internals of store/instance.h, for its own files only. */
#pragma once

#include "base/uuid.h"
#include "store/instance.h"

#include <pthread.h>

enum { INSTANCE_PLACE_SIZE = 17 };

/* What is known about a file. */
struct instance_known {
    char id[UUID_SIZE];              /* "": nothing */
    char place[INSTANCE_PLACE_SIZE]; /* hash of its path; of the path relative to the data folder when inside it */
    int64_t generation;
};

struct instance {
    char *data_dir, *path; /* owned */
    bool accept_loss;
    pthread_mutex_t lock; /* guards all below */
    bool is_noted;        /* <data>/hearth.instance exists */
    char id[UUID_SIZE];   /* "": unknown until a database provides it */
    struct instance_known files[INSTANCE_N_FILES];
    char *accepted[INSTANCE_N_FILES]; /* owned sentences */
};

extern const char *const instance_file_names[INSTANCE_N_FILES];

/* instance_note.c: reads and writes the complete file, durably. A missing file leaves is_noted false. */
int instance_read_notes(struct instance *in, struct err *e) MUST_CHECK;
int instance_write_notes(struct instance *in, struct err *e) MUST_CHECK;
/* Writes only the generation of one file; it survives the end of the process but may be lost in a power failure, which
 * only weakens the check. */
int instance_write_generation(struct instance *in, enum instance_file file) MUST_CHECK;
