/* The service's members, shared by the files of this folder only. Members are in the order in which they are opened. */
#pragma once

#include "agents/approvals.h"
#include "agents/builtin.h"
#include "agents/process.h"
#include "agents/turns.h"
#include "api/dispatch.h"
#include "api/resources/events.h"
#include "api/compat/mcp_api.h"
#include "api/compat/v1_kept.h"
#include "apps/apps.h"
#include "backend/backend.h"
#include "face/auth.h"
#include "face/realtime.h"
#include "http/server.h"
#include "identity/meter.h"
#include "llm/relay.h"
#include "mcp/host.h"
#include "models/models.h"
#include "models/vector_stores.h"
#include "os/lockfile.h"
#include "service/service.h"
#include "speech/ears.h"
#include "speech/sessions.h"
#include "speech/speech.h"
#include "tasks/tasks.h"

struct service {
    struct service_config config; /* strings borrowed from the caller of service_serve() */
    struct arena *arena;          /* owned: lives as long as the service */
    struct lockfile *lock;        /* owned, like all below */
    struct instance *instance;
    struct store *store;
    struct settings *settings;
    struct loop *loop;
    struct pool *short_pool, *long_pool;
    struct backend *backend; /* custom, once it is open */
    struct backend *custom;  /* Custom Mode around the provider's */
    struct identity *identity;
    struct meter *meter;
    struct guard *guard;
    struct guard *file_guard; /* of files that chats name */
    struct vector_stores *vector_stores;
    struct llm_accounts *llm_accounts;
    struct llm_turns *llm_turns;
    struct llm_relays *llm_relays;
    struct sandbox *sandbox;
    struct supervisor *supervisor;
    struct llamacpp *llamacpp;
    struct llm_local *llm_local;
    struct speech *speech;
    struct ears *ears;
    struct speech_sessions *speech_sessions;
    struct agents *agents;
    struct builtin_services tool_services; /* of agent_turns */
    struct approvals *approvals;
    struct agent_turns *agent_turns;
    struct apps *apps;
    struct tasks *tasks;
    struct v1_kept *v1_kept;
    struct mcp_oauth *mcp_oauth;
    unsigned char *mcp_key; /* for the tokens of logins; in secret memory */
    struct mcp_host *mcp_host;
    struct mcp_api *mcp_api;
    struct face_auth *face_auth;
    struct realtime *realtime;
    struct api_events *events;
    struct dispatch *dispatch;
    struct http_server *server;
    int folder_fd; /* of the data folder, when its path is too long for a socket; else 0 */
    struct models models;
    struct api api;
    struct loop_watch *on_term, *on_int, *on_hup;
    struct loop_timer *upkeep, *measuring, *close_idle, *tidy_often, *leaving;
    bool is_stopping;         /* loop thread */
    atomic_bool is_measuring; /* a worker measures the apps' folders */
    atomic_bool has_started;  /* tasks and apps have been started */
    bool is_first_start;      /* no service made the folder <data>/run before; commands may have registered something */
};

/* open.c: everything up to dispatch, in order. On failure close what is open with service_close(). */
int service_open_core(struct service *s, const struct service_config *c, bool is_serving, struct err *e) MUST_CHECK;

int service_load_settings(struct service *s, struct err *e) MUST_CHECK; /* all layers but the database */
int service_open_backend(struct service *s, struct err *e) MUST_CHECK;
/* Reads the settings file again, on a worker; a mistake in the file leaves every setting unchanged. */
void service_reload(void *service);

/* open_face.c: what apps of the hosted service use. */
int service_open_face(struct service *s, struct err *e) MUST_CHECK;

/* upgrade.c: names the copies that migrations left. */
void service_log_copies(struct service *s);

/* listen.c: binds the addresses of the settings or --listen, and the Unix socket; needs dispatch. */
int service_listen(struct service *s, struct err *e) MUST_CHECK;
int service_check_addresses(struct service *s, struct err *e) MUST_CHECK; /* binds nothing; needs settings only */
void service_unlisten(struct service *s);

/* budgets.c: what callers may hold, by the settings. */
void service_set_budgets(struct service *s);
/* Measures the apps' data folders and all vectors at the start and once a minute, on a worker. Loop thread, or before
 * the loop runs. */
void service_start_measuring(struct service *s);
void service_stop_measuring(void *service);

/* wiring.c: connects siblings of rank 4. */
int wire_listeners(void *service, struct arena *a, struct task_listeners *ret, struct err *e) MUST_CHECK;
struct task_runner wire_runner(struct service *s);
void wire_app_changed(void *service, const char *app_id);
void wire_task_changed(void *service, const char *task_uuid, const char *status);
void wire_consent_changed(void *service);
void wire_mcp_changed(void *service, const char *server);
int wire_mcp_trust(void *service, const struct mcp_trust_question *q, const struct net_wait *wait,
                   struct err *e) MUST_CHECK;
int wire_mcp_elicit(void *service, const char *server, const struct mcp_server_request *request, struct buf *ret_result,
                    struct err *e);
int wire_mcp_sample(void *service, const char *server, const struct mcp_server_request *request, struct buf *ret_result,
                    struct err *e);
void wire_approval_changed(void *service);
void wire_child_port(void *service, int fd, uint64_t tag);
void wire_child_ended(void *service, uint64_t tag);
void wire_provider_found(void *service);
void wire_contact(void *service, const char *app_id, const char *app_name, const char *program);
bool wire_may_use_socket(void *service, pid_t pid);
/* wiring_custom.c: the decorator around the backend, its tables, its start. */
struct custom_table;
int wire_custom(struct service *s, struct err *e) MUST_CHECK;
void wire_custom_tables(struct service *s, const struct custom_table *tables, size_t n);
void wire_custom_start(struct service *s);
/* An app was registered, started, ended or removed. Any thread; does not wait. */
void wire_custom_app_changed(struct service *s, const char *app_id);
/* wiring_tools.c: what the built-in tools of agents need; valid as long as the service. */
struct builtin_services wire_builtin_services(struct service *s);

/* upkeep.c: before the loop runs, and on its thread. */
int service_start_upkeep(struct service *s, struct err *e) MUST_CHECK;
void service_stop_upkeep(void *service);

/* banner.c: the listening line for the person in the terminal. */
void service_print_listening(const struct service *s);
