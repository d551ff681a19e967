#include "speech/ears_recording.h"

#include <string.h>

struct beginning {
    size_t at;
    const char *bytes;
    enum ears_recording_kind kind;
    const char *ending;
};

static const struct beginning beginnings[] = {
    { 0, "RIFF", EARS_PLAIN, "wav" },
    { 0, "RIFX", EARS_PLAIN, "wav" },
    { 0, "RF64", EARS_PLAIN, "wav" },
    { 0, "riff", EARS_PLAIN, "w64" },
    { 0, "OggS", EARS_PLAIN, "ogg" },
    { 0, "fLaC", EARS_PLAIN, "flac" },
    { 0, "ID3", EARS_PLAIN, "mp3" },
    { 0, "FORM", EARS_PLAIN, "aiff" },
    { 0, "caff", EARS_PLAIN, "caf" },
    { 0, ".snd", EARS_PLAIN, "au" },
    { 0, "\x1a\x45\xdf\xa3", EARS_CONTAINER, "webm" }, /* RFC 9559 */
    { 4, "ftyp", EARS_CONTAINER, "mp4" },
    { 4, "moov", EARS_CONTAINER, "mp4" },
    { 4, "mdat", EARS_CONTAINER, "mp4" },
    { 4, "wide", EARS_CONTAINER, "mov" },
};

/* Eleven bits of a frame of MPEG audio; two more, the layer, are 0 in AAC only. */
static const struct beginning mpeg = { 0, "", EARS_PLAIN, "mp3" }, aac = { 0, "", EARS_CONTAINER, "aac" };

/* NULL: it is no recording. */
static const struct beginning *find(struct slice bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.p;

    if (bytes.n >= 2 && p[0] == 0xff && (p[1] & 0xe0) == 0xe0)
        return (p[1] & 0xf6) == 0xf0 ? &aac : &mpeg;
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
        size_t n = strlen(beginnings[i].bytes);

        if (bytes.n >= beginnings[i].at + n && memcmp(p + beginnings[i].at, beginnings[i].bytes, n) == 0)
            return &beginnings[i];
    }
    return NULL;
}

enum ears_recording_kind ears_recording_kind(struct slice bytes)
{
    const struct beginning *found = find(bytes);

    return found ? found->kind : EARS_NO_RECORDING;
}

const char *ears_recording_ending(struct slice bytes)
{
    const struct beginning *found = find(bytes);

    return found ? found->ending : "audio";
}
