/* hearth listen: prints what is said into the microphone, and on a terminal what it seems to be while it is said. */
#include "base/limits.h"
#include "cli/out.h"
#include "cli/request.h"
#include "cli/special.h"
#include "cli/wait.h"

#include <unistd.h>

enum { SHOWN_BYTES = 72 }; /* of a guess, so that it stays on one line */

struct hearing_aid {
    struct cli *cli;
    bool is_on_terminal, has_guess, has_ended;
    struct err *e;
};

static int write_body(struct cli *cli, struct slice *ret, struct err *e)
{
    struct json_writer w;
    struct buf out;
    int64_t timeout_ms = 0;
    int r = cli_read_timeout(cli, &timeout_ms, e);

    if (r < 0)
        return r;
    buf_init(&out, LIMIT_BODY_CHAT);
    json_write_init(&w, &out);
    json_begin_object(&w);
    if (timeout_ms > 0)
        json_add_int(&w, "timeout", timeout_ms);
    json_add_string(&w, "provider", cli_value(cli, "--provider"));
    json_add_string(&w, "language", cli_value(cli, "--language"));
    json_add_string(&w, "phrases", cli_value(cli, "--phrases"));
    json_add_bool(&w, "keep", cli_has(cli, "--keep"));
    json_end(&w);
    r = buf_check(&out, e);
    *ret = (struct slice){ arena_slicedup(cli->arena, buf_slice(&out)), out.n };
    buf_clear(&out);
    return r;
}

/* ---- what is heard ---- */

/* The end of a long guess. */
static void show_guess(struct hearing_aid *h, struct slice text)
{
    size_t n_left_out = text.n > SHOWN_BYTES ? text.n - SHOWN_BYTES : 0;

    while (n_left_out < text.n && n_left_out > 0 && text.p[n_left_out] != ' ')
        n_left_out++;
    out_progress((struct slice){ text.p + n_left_out, text.n - n_left_out });
    h->has_guess = true;
}

static int print_final(struct hearing_aid *h, struct json_value data)
{
    struct slice text = json_string(json_get(data, "text"));
    const char *path = json_cstr(json_get(data, "path"));

    h->has_ended = true;
    if (h->has_guess)
        out_progress((struct slice){ "", 0 });
    if (h->cli->is_json) {
        out_json(slice_of(json_to_str(h->cli->arena, data)));
        out_print("\n");
        return 0;
    }
    if (path)
        out_complain("The recording is in %s.\n", path);
    if (text.n == 0)
        return err_set(h->e, -ENODATA, "NOTHING_HEARD", "Nobody spoke, or nothing of it was understood.");
    out_lines(stdout, text);
    out_print("\n");
    return 0;
}

static int on_event(void *arg, const struct client_event *event)
{
    const char *error = json_cstr(json_get(event->data, "error")), *code = json_cstr(json_get(event->data, "code"));
    struct hearing_aid *h = arg;

    if (strcmp(event->name, "error") == 0)
        return err_set(h->e, -EREMOTEIO, code ? code : "SPEECH_FAILED", "%s", error ? error : "Listening broke off");
    if (strcmp(event->name, "final") == 0)
        return print_final(h, event->data);
    if (strcmp(event->name, "partial") == 0 && h->is_on_terminal)
        show_guess(h, json_string(json_get(event->data, "text")));
    return 0;
}

int run_listen(struct cli *cli, struct err *e)
{
    struct client_request request = { .method = HTTP_POST, .path = "/sdk/stt/listen", .wants_events = true };
    struct hearing_aid h = { .cli = cli, .is_on_terminal = isatty(STDERR_FILENO) && !cli->is_json, .e = e };
    struct client *client = NULL;
    int r = write_body(cli, &request.body, e);

    if (r == 0)
        r = cli_client(cli, &client, e);
    if (r == 0 && h.is_on_terminal)
        out_progress(SLICE_LIT("Listening ..."));
    h.has_guess = h.is_on_terminal;
    if (r == 0)
        r = client_listen(client, &request, on_event, &h, e);
    if (r < 0 && h.has_guess && !h.has_ended)
        out_progress((struct slice){ "", 0 });
    if (r == 0 && !h.has_ended)
        r = err_set(e, -EIO, "SPEECH_FAILED", "The service ended before the end of listening.");
    return r;
}
