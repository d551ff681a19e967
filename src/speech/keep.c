#include "speech/keep.h"

#include "base/clock.h"
#include "base/uuid.h"
#include "os/files.h"
#include "speech/speech.h"

#include <string.h>

/* 20261128T112233, from the text of the time. */
static const char *compact_time(struct arena *a)
{
    char now[TIME_TEXT_SIZE], *to = arena_alloc(a, TIME_TEXT_SIZE), *at = to;

    clock_now_text(now);
    now[strcspn(now, ".Z+")] = '\0';
    for (const char *from = now; *from; from++)
        if (*from != '-' && *from != ':')
            *at++ = *from;
    *at = '\0';
    return to;
}

int speech_keep_file(const struct speech_keeper *keeper, struct slice bytes, const char *ending, struct arena *a,
                     const char **ret_path, struct err *e)
{
    const char *root = arena_printf(a, "%s/local-apps", keeper->data_dir), *path;
    char id[UUID_SIZE], *folder;
    int r = path_below(a, root, keeper->scope, &folder, e);

    uuid_v4(id);
    if (r == 0)
        r = dir_make(folder, e);
    if (r < 0)
        return r;
    path = arena_printf(a, "%s/recording-%s-%.8s.%s", folder, compact_time(a), id, ending);
    r = file_write(path, bytes, 0600, e);
    if (r == 0)
        *ret_path = path;
    return r;
}

int speech_keep_samples(const struct speech_keeper *keeper, struct slice samples, uint32_t rate, struct arena *a,
                        const char **ret_path, struct err *e)
{
    char header[SPEECH_WAV_HEADER];
    struct buf wav;
    int r;

    buf_init(&wav, SPEECH_WAV_HEADER + samples.n);
    speech_wav_header(header, rate, samples.n);
    buf_add(&wav, header, sizeof(header));
    buf_add_slice(&wav, samples);
    r = buf_check(&wav, e);
    if (r == 0)
        r = speech_keep_file(keeper, buf_slice(&wav), "wav", a, ret_path, e);
    buf_clear(&wav);
    return r;
}
