#include "tasks/private.h"

static bool is_app(const struct task_app *app, const char *id)
{
    return app->id && id ? strcmp(app->id, id) == 0 : !app->id && !id;
}

/* Apps stay known until tasks close: there are few of them. */
struct task_app *task_app_of(struct tasks *t, const char *id)
{
    struct task_app *app;

    pthread_mutex_lock(&t->mutex);
    for (app = t->apps; app && !is_app(app, id); app = app->next)
        ;
    if (!app) {
        app = xcalloc(1, sizeof(*app));
        app->id = id ? xstrdup(id) : NULL;
        app->has_waiting = true; /* until the app's list was read */
        app->n_pending = -1;
        coalesced_job_init(&app->dispatch, t, task_dispatch_run, app);
        app->next = t->apps;
        t->apps = app;
    }
    pthread_mutex_unlock(&t->mutex);
    return app;
}

void task_app_added(struct tasks *t, struct task_app *app)
{
    pthread_mutex_lock(&t->mutex);
    app->has_waiting = true;
    app->n_added++;
    pthread_mutex_unlock(&t->mutex);
    coalesced_job_request(&app->dispatch);
}

void task_apps_recount(struct tasks *t)
{
    pthread_mutex_lock(&t->mutex);
    for (struct task_app *app = t->apps; app; app = app->next) {
        app->has_overflow = false;
        app->n_pending = -1;
    }
    pthread_mutex_unlock(&t->mutex);
}

void task_apps_dispatch(struct tasks *t)
{
    struct task_app *app;

    pthread_mutex_lock(&t->mutex);
    app = t->apps;
    pthread_mutex_unlock(&t->mutex);
    for (; app; app = app->next) /* the list grows only at its head */
        coalesced_job_request(&app->dispatch);
}

struct task_app *task_apps_free(struct task_app *app)
{
    while (app) {
        struct task_app *next = app->next;

        free(app->id);
        free(app);
        app = next;
    }
    return NULL;
}
