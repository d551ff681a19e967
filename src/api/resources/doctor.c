/* Runs all checks and gives advice, for the local administrator. */
#include "api/resources/doctor.h"

#include "api/routes.h"

static const struct field check_shape[] = {
    SHAPE_STRING("name"),
    SHAPE_BOOL("ok"),
    SHAPE_STRING("text", .help = "what was found"),
    SHAPE_STRING("advice", .flags = FIELD_NULLABLE, .help = "what to do, when it is not ok, or what to add"),
    FIELD_END,
};
static const struct field doctor_answer[] = { SHAPE_LIST("checks", check_shape), FIELD_END };

static void add(struct checkup *c, const char *name, bool is_ok, const char *text, const char *advice)
{
    json_begin_object(c->w);
    json_add_string(c->w, "name", name);
    json_add_bool(c->w, "ok", is_ok);
    json_add_string(c->w, "text", text);
    json_add_string(c->w, "advice", advice);
    json_end(c->w);
}

void doctor_add(struct checkup *c, const char *name, bool is_ok, const char *text, const char *advice)
{
    add(c, name, is_ok, text, is_ok ? NULL : advice);
}

void doctor_hint(struct checkup *c, const char *name, const char *text, const char *advice)
{
    add(c, name, true, text, advice);
}

static void (*const checks[])(struct checkup *c) = {
    doctor_check_folder,   doctor_check_places,    doctor_check_hardening, doctor_check_disk,
    doctor_check_store,    doctor_check_backend,   doctor_check_vectors,   doctor_check_audit,
    doctor_check_settings, doctor_check_network,   doctor_check_sandbox,   doctor_check_agents,
    doctor_check_mcp,      doctor_check_apps,      doctor_check_custom,    doctor_check_providers,
    doctor_check_sizes,    doctor_check_budgets,   doctor_check_tasks,     doctor_check_owners,
    doctor_check_machine,  doctor_check_questions, doctor_check_callers,   doctor_check_found,
    doctor_check_clients,  doctor_check_speech,    doctor_check_hearing,   doctor_check_microphone,
};

static int examine(struct request *req, struct response *res, struct err *e)
{
    struct checkup c = { req, req->api, req->arena, &res->json };

    json_begin_array_as(&res->json, "checks");
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
        checks[i](&c);
    json_end(&res->json);
    return 0;
}

const struct route doctor_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/doctor",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      .answer = doctor_answer,
      .handler = examine,
      .summary = "Check everything and say what to do",
      .tag = "System" },
    ROUTE_END,
};
