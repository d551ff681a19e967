/* A transcript in the forms of OpenAI: json, verbose_json, and the subtitles SRT and WebVTT
 * (platform.openai.com/docs/api-reference/audio; www.w3.org/TR/webvtt1). Pure; any thread.
 *
 *     v1_transcript_write_verbose(w, &t, "en", &parts);
 *     v1_transcript_write_subtitles(&text, &t, true);
 */
#pragma once

#include "api/resources/hearing.h"

struct v1_transcript_parts {
    bool has_segments, has_words;
};

extern const struct field v1_transcript_shape[];
void v1_transcript_write(struct json_writer *w, const struct transcript *t);
void v1_transcript_write_verbose(struct json_writer *w, const struct transcript *t, const char *language,
                                 const struct v1_transcript_parts *parts);
/* SRT, or WebVTT. A cue has a segment, or a part of it of about one line and a half where the times of words are known.
 */
void v1_transcript_write_subtitles(struct buf *out, const struct transcript *t, bool is_vtt);
