/* The checks of GET /api/doctor. Each check runs on a worker of the long pool and adds its findings with
 * doctor_add(); doctor.c defines the order. */
#pragma once

#include "api/route.h"
#include "base/json_write.h"

struct checkup {
    const struct request *req;
    struct api *api;
    struct arena *arena;
    struct json_writer *w;
};

/* Adds one finding: its text, and the advice when it is not ok (advice may be NULL when is_ok). */
void doctor_add(struct checkup *c, const char *name, bool is_ok, const char *text, const char *advice);

/* Adds a finding that is ok, with advice for those who want more. */
void doctor_hint(struct checkup *c, const char *name, const char *text, const char *advice);

/* doctor_data.c */
void doctor_check_folder(struct checkup *c);
void doctor_check_places(struct checkup *c);
void doctor_check_store(struct checkup *c);
void doctor_check_backend(struct checkup *c);
void doctor_check_vectors(struct checkup *c);

/* doctor_machine.c */
void doctor_check_hardening(struct checkup *c);
void doctor_check_disk(struct checkup *c);
void doctor_check_audit(struct checkup *c);
void doctor_check_settings(struct checkup *c);
void doctor_check_network(struct checkup *c);
void doctor_check_sandbox(struct checkup *c);
void doctor_check_sizes(struct checkup *c);
void doctor_check_speech(struct checkup *c);
void doctor_check_hearing(struct checkup *c);
void doctor_check_microphone(struct checkup *c); /* opens the device, and records nothing */

/* doctor_work.c */
void doctor_check_agents(struct checkup *c);
void doctor_check_mcp(struct checkup *c); /* doctor_mcp.c */
void doctor_check_apps(struct checkup *c);
void doctor_check_tasks(struct checkup *c);
void doctor_check_questions(struct checkup *c);
void doctor_check_owners(struct checkup *c);
void doctor_check_machine(struct checkup *c);

/* doctor_custom.c */
void doctor_check_custom(struct checkup *c);

/* doctor_callers.c */
void doctor_check_providers(struct checkup *c);
void doctor_check_found(struct checkup *c);
void doctor_check_callers(struct checkup *c);
void doctor_check_clients(struct checkup *c);
void doctor_check_budgets(struct checkup *c);
