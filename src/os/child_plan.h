/* The protocol between the service and hearth-child. hearth-child (child_main.c) is a small static program embedded in
 * the hearth program (child_image.c). It runs between the service and one child, inside the child's sandbox; it
 * enforces the child's limits, ends every process that the child leaves behind, and reports how the child really ended.
 * Constants of both sides; no functions, nothing of base/.
 *
 * The plan is one block of memory on CHILD_PLAN_FD: struct child_plan, n_filter instructions of seccomp, then strings
 * that end with NUL: path, working folder ("": none), home to create ("": none), n_args arguments, n_env variables,
 * n_rules rules of Landlock ("r/path", "w/path"). Messages on CHILD_CONTROL_FD are packets: struct child_note to the
 * service, one byte of enum child_order to hearth-child. When the service's end closes, the child is killed.
 */
#pragma once

#include <stdint.h>

enum { CHILD_CONTROL_FD = 3, CHILD_PLAN_FD = 4, CHILD_VIEW_FD = 5, CHILD_IMAGE_FD = 6, CHILD_FDS_END = 7 };

enum child_order { CHILD_ORDER_TERMINATE = 'T', CHILD_ORDER_KILL = 'K' };

enum child_note_kind {
    CHILD_NOTE_PROCESS = 1, /* sent by the process that becomes the program: the packet's credentials have its pid */
    CHILD_NOTE_SOCKETS,     /* `value` sockets that listen on the service's port are attached to the packet */
    CHILD_NOTE_RUNNING,     /* the program has been executed */
    CHILD_NOTE_FAILED,      /* value: enum child_step; error: errno */
    CHILD_NOTE_ENDED,   /* value: the program's wait status; error: 1 when processes that it left behind still run */
    CHILD_NOTE_CROWDED, /* the program failed, and the machine lacked the processes that it may need */
};

enum child_step {
    CHILD_STEP_SESSION,
    CHILD_STEP_PARENT,
    CHILD_STEP_STREAMS,
    CHILD_STEP_DESCRIPTORS,
    CHILD_STEP_LIMITS,
    CHILD_STEP_DIR,
    CHILD_STEP_EXEC,
    CHILD_STEP_PLAN,
    CHILD_STEP_NAMESPACE,
    CHILD_STEP_PORT,
    CHILD_STEP_FORK,
    CHILD_STEP_LANDLOCK,
    CHILD_STEP_FILTER,
};

struct child_note {
    int32_t kind, value, error;
};

struct child_plan {
    uint32_t n_filter, n_args, n_env, n_rules;
    uint32_t max_tasks;    /* processes and threads; 0: no own limit */
    uint32_t landlock_abi; /* 0: the kernel has none */
    uint64_t max_file_bytes;
    uint16_t port;            /* of the service */
    uint8_t is_jailed;        /* limits, Landlock and seccomp apply */
    uint8_t is_first_process; /* of its PID namespace, with CAP_SYS_ADMIN in it until the program starts */
    uint8_t has_own_network;  /* the port is opened in that network */
    uint8_t has_file_rules;   /* Landlock restricts files to the rules */
    uint8_t is_offline;       /* Landlock restricts TCP to the service's port */
};
