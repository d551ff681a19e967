#include "speech/programs.h"

#include "base/clock.h"
#include "base/limits.h"
#include "os/child.h"
#include "os/program.h"
#include "speech/remote.h"

#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define ONNX ".onnx"

enum { GRACE_MS = 100, READ_BYTES = 32768, LIST_MS = 5000, LAST_WORDS = 200 };

struct program {
    struct supervisor *supervisor; /* NULL without a service */
    const char *path, *folder;
};

/* ---- voices: NAME.onnx beside NAME.onnx.json ---- */

static bool is_voice(const char *folder, const char *name, struct arena *a)
{
    size_t n = strlen(name);

    return n > strlen(ONNX) && strcmp(name + n - strlen(ONNX), ONNX) == 0 &&
           access(arena_printf(a, "%s/%s.json", folder, name), R_OK) == 0;
}

static int compare_voices(const void *one, const void *other)
{
    return strcmp(((const struct speech_voice *)one)->id, ((const struct speech_voice *)other)->id);
}

/* "de_DE-thorsten-medium" speaks de_DE. */
static int list_voices(const struct speech_account *acc, struct arena *a, struct speech_voice_list *ret, struct err *e)
{
    const struct program *p = acc->arg;
    DIR *folder = *p->folder ? opendir(p->folder) : NULL;
    const struct dirent *entry;

    if (!folder)
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE",
                       "The program %s is there, but no voices are: name a folder with files NAME.onnx and "
                       "NAME.onnx.json by the setting speech.piper_voices.",
                       p->path);
    while ((entry = readdir(folder)))
        if (is_voice(p->folder, entry->d_name, a))
            speech_voice_add(ret, a, (struct slice){ entry->d_name, strlen(entry->d_name) - strlen(ONNX) }, NULL,
                             arena_strndup(a, entry->d_name, strcspn(entry->d_name, "-")));
    closedir(folder);
    if (ret->n > 0)
        qsort((struct speech_voice *)ret->items, ret->n, sizeof(*ret->items), compare_voices);
    return ret->n > 0 ? 0
                      : err_set(e, -ENODEV, "SPEECH_UNAVAILABLE",
                                "The folder %s (setting speech.piper_voices) has no voice: NAME.onnx and "
                                "NAME.onnx.json.",
                                p->folder);
}

/* ---- one sentence ---- */

struct run {
    const struct speech_account *acc;
    struct net_wait wait;
    struct child *child;
    struct child_ends ends;
};

/* A folder of the program that the sandbox does not show by itself; NULL: none. */
static const char *folder_of(const char *path, struct arena *a)
{
    const char *slash = strrchr(path, '/');

    return slash && slash > path && strncmp(path, "/usr/", 5) != 0 ? arena_strndup(a, path, (size_t)(slash - path))
                                                                   : NULL;
}

static int start(struct run *run, const struct speech_say *say, struct arena *a, struct err *e)
{
    const struct program *p = run->acc->arg;
    const char *folders[] = { p->folder, folder_of(p->path, a) };
    const struct sandbox_definition sandbox = { .profile = "strict", .read = { folders, folders[1] ? 2 : 1 } };
    const char *const args[] = { "--model",
                                 arena_printf(a, "%s/%s" ONNX, p->folder, say->voice),
                                 "--output_file",
                                 "-",
                                 "--length_scale",
                                 arena_printf(a, "%.3f", 1 / say->speed),
                                 NULL };
    const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/tmp", NULL };
    const struct child_spec spec = { .label = "speech piper",
                                     .command = p->path,
                                     .args = args,
                                     .env = env,
                                     .sandbox = &sandbox,
                                     .max_file_bytes = 1,
                                     .timeout_ms = run->acc->total_ms,
                                     .stop_grace_ms = GRACE_MS,
                                     .ends = &run->ends };

    if (!p->supervisor)
        return err_set(e, -ENODEV, "SPEECH_UNAVAILABLE", "Only a running service speaks: `hearth serve`.");
    return child_start(p->supervisor, &spec, &run->child, e);
}

/* One line: piper speaks each line by itself. The pipe of a new process takes a sentence at once. */
static int send_text(struct run *run, struct slice text, struct arena *a, struct err *e)
{
    char *line = arena_slicedup(a, text);
    ssize_t n;

    for (size_t i = 0; i < text.n; i++)
        if (line[i] == '\n' || line[i] == '\r')
            line[i] = ' ';
    line[text.n] = '\n';
    n = write(run->ends.stdin_fd, line, text.n + 1);
    close(run->ends.stdin_fd);
    run->ends.stdin_fd = -1;
    return n == (ssize_t)text.n + 1 ? 0 : err_set(e, -EIO, "SPEECH_FAILED", "it did not take the text.");
}

/* 1: the end of its output. */
static int receive(const struct run *run, struct buf *out, struct err *e)
{
    char bytes[READ_BYTES];
    ssize_t n = read(run->ends.stdout_fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return 1;
    buf_add(out, bytes, (size_t)n);
    return out->overflowed ? err_set(e, -EIO, "SPEECH_FAILED", "it sent more than %d MiB for one sentence.",
                                     LIMIT_SPEECH_REPLY >> 20)
                           : 0;
}

static int collect(struct run *run, struct buf *out, struct err *e)
{
    int r = 0;

    while (r == 0) {
        r = net_wait_fd(&run->wait, run->ends.stdout_fd, POLLIN, e);
        if (r == -ETIMEDOUT)
            return err_set(e, -EIO, "SPEECH_FAILED", "it took longer than %lld s.",
                           (long long)run->acc->total_ms / 1000);
        if (r == 0)
            r = receive(run, out, e);
    }
    return MIN(r, 0);
}

/* What it said on standard error explains best why there is no sound. */
static int explain(const struct run *run, int r, struct arena *a, struct err *e)
{
    const char *words = child_log_tail(child_log_of(run->child), a, CHILD_STDERR, 1);

    if (words && *words)
        err_set(e, r, "SPEECH_FAILED", "%.200s It says: %.*s", e->text, LAST_WORDS, words);
    return r;
}

static void end(struct run *run)
{
    if (run->ends.stdin_fd >= 0)
        close(run->ends.stdin_fd);
    if (run->ends.stdout_fd >= 0)
        close(run->ends.stdout_fd);
    if (run->child)
        child_stop(run->child);
    child_unref(run->child);
}

static int say(const struct speech_account *acc, const struct speech_say *say, const struct net_wait *wait,
               struct arena *a, struct speech_pcm *ret, struct err *e)
{
    struct run run = { .acc = acc, .wait = net_wait_part(wait, acc->total_ms), .ends = { -1, -1 } };
    struct slice sound;
    struct buf out;
    int r = start(&run, say, a, e);

    buf_init(&out, LIMIT_SPEECH_REPLY);
    if (r == 0)
        r = send_text(&run, say->text, a, e);
    if (r == 0)
        r = collect(&run, &out, e);
    sound.n = out.n;
    sound.p = buf_to_arena(&out, a);
    if (r == 0)
        r = speech_wav_read(sound, a, ret, e);
    if (r < 0 && r != -ECANCELED && run.child)
        r = explain(&run, r, a, e);
    end(&run);
    return r;
}

/* ---- the account ---- */

static const struct speech_protocol piper_program = { .run = say, .list = list_voices };
static const char *const no_models[] = { NULL };
static const struct speech_service piper_local = { .preset = "piper_local",
                                                   .protocol = &piper_program,
                                                   .model = "",
                                                   .voice = "",
                                                   .models = no_models,
                                                   .min_speed = 0.5,
                                                   .max_speed = 2 };

static void blame(const void *arg, int r, struct err *e)
{
}

size_t speech_programs_list(const struct speech_config *c, struct arena *a,
                            struct speech_account ret[N_SPEECH_PROGRAMS])
{
    const char *command = settings_string(c->settings, a, SETTING_SPEECH_PIPER);
    struct program *p = ARENA_NEW(a, struct program);
    char *path = NULL;

    if (!*command || program_find(a, command, NULL, getenv("PATH"), &path, NULL) < 0)
        return 0;
    *p = (struct program){ c->supervisor, path, settings_string(c->settings, a, SETTING_SPEECH_PIPER_VOICES) };
    ret[0] = (struct speech_account){ .name = "piper_local",
                                      .label = "Piper (this machine)",
                                      .service = &piper_local,
                                      .base_url = p->folder,
                                      .total_ms = settings_ms(c->settings, SETTING_SPEECH_TIMEOUT_S),
                                      .list_ms = LIST_MS,
                                      .is_local = true,
                                      .blame = blame,
                                      .arg = p };
    return 1;
}
