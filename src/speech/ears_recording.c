#include "speech/ears_recording.h"

#include <string.h>

static const struct {
    size_t at, n;
    const char *bytes;
    enum ears_recording_kind kind;
} beginnings[] = {
    { 0, 4, "RIFF", EARS_PLAIN },
    { 0, 4, "RIFX", EARS_PLAIN },
    { 0, 4, "RF64", EARS_PLAIN },
    { 0, 4, "OggS", EARS_PLAIN },
    { 0, 4, "fLaC", EARS_PLAIN },
    { 0, 3, "ID3", EARS_PLAIN },
    { 0, 4, "FORM", EARS_PLAIN },
    { 0, 4, "caff", EARS_PLAIN },
    { 0, 4, ".snd", EARS_PLAIN },
    { 0, 4, "riff", EARS_PLAIN },
    { 0, 4, "\x1a\x45\xdf\xa3", EARS_CONTAINER }, /* RFC 9559 */
    { 4, 4, "ftyp", EARS_CONTAINER },
    { 4, 4, "moov", EARS_CONTAINER },
    { 4, 4, "mdat", EARS_CONTAINER },
    { 4, 4, "wide", EARS_CONTAINER },
};

enum ears_recording_kind ears_recording_kind(struct slice bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.p;

    /* Eleven bits of a frame of MPEG audio; two more, the layer, are 0 in AAC only. */
    if (bytes.n >= 2 && p[0] == 0xff && (p[1] & 0xe0) == 0xe0)
        return (p[1] & 0xf6) == 0xf0 ? EARS_CONTAINER : EARS_PLAIN;
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
        if (bytes.n >= beginnings[i].at + beginnings[i].n &&
            memcmp(p + beginnings[i].at, beginnings[i].bytes, beginnings[i].n) == 0)
            return beginnings[i].kind;
    return EARS_NO_RECORDING;
}
