#include "api/compat/v1_transcript_form.h"

#include <math.h>
#include <string.h>

/* ---- JSON ---- */

static const struct field usage_shape[] = { SHAPE_STRING("type", .help = "duration"), SHAPE_DOUBLE("seconds"),
                                            FIELD_END };
static const struct field segment_shape[] = {
    SHAPE_INT("id"),
    SHAPE_INT("seek", .help = "where it starts, in hundredths of a second"),
    SHAPE_DOUBLE("start", .help = "seconds"),
    SHAPE_DOUBLE("end"),
    SHAPE_STRING("text"),
    SHAPE_ANY("tokens", .help = "[]: words are not made of tokens here"),
    SHAPE_DOUBLE("temperature", .help = "0: nothing is drawn at random"),
    SHAPE_DOUBLE("avg_logprob", .help = "of the confidence of its words"),
    SHAPE_DOUBLE("compression_ratio", .help = "1: the text is not compressed"),
    SHAPE_DOUBLE("no_speech_prob", .help = "0: segments without speech are left out"),
    FIELD_END,
};
const struct field v1_transcript_shape[] = {
    SHAPE_STRING("text"),
    SHAPE_OBJECT("usage", usage_shape),
    SHAPE_STRING("task", .flags = FIELD_OPTIONAL, .help = "transcribe; this and what follows: verbose_json"),
    SHAPE_STRING("language", .flags = FIELD_OPTIONAL),
    SHAPE_DOUBLE("duration", .flags = FIELD_OPTIONAL, .help = "seconds"),
    SHAPE_LIST("segments", segment_shape, .flags = FIELD_OPTIONAL),
    SHAPE_LIST("words", heard_word_shape, .flags = FIELD_OPTIONAL),
    FIELD_END,
};

void v1_transcript_write(struct json_writer *w, const struct transcript *t)
{
    json_add_string(w, "text", t->text);
    json_begin_object_as(w, "usage");
    json_add_string(w, "type", "duration");
    json_add_double(w, "seconds", t->duration);
    json_end(w);
}

/* The mean; a confidence of 0 counts as one in a million. */
static double log_probability(const struct heard_segment *segment)
{
    double sum = 0;

    for (size_t i = 0; i < segment->n_words; i++)
        sum += log(fmax(segment->words[i].confidence, 1e-6));
    return segment->n_words > 0 ? sum / (double)segment->n_words : 0;
}

static void write_segment(struct json_writer *w, const struct heard_segment *segment, size_t i)
{
    json_begin_object(w);
    json_add_int(w, "id", (int64_t)i);
    json_add_int(w, "seek", (int64_t)(segment->start * 100));
    json_add_double(w, "start", segment->start);
    json_add_double(w, "end", segment->end);
    json_add_string(w, "text", segment->text);
    json_begin_array_as(w, "tokens");
    json_end(w);
    json_add_double(w, "temperature", 0);
    json_add_double(w, "avg_logprob", log_probability(segment));
    json_add_double(w, "compression_ratio", 1);
    json_add_double(w, "no_speech_prob", 0);
    json_end(w);
}

void v1_transcript_write_verbose(struct json_writer *w, const struct transcript *t, const char *language,
                                 const struct v1_transcript_parts *parts)
{
    json_add_string(w, "task", "transcribe");
    json_add_string(w, "language", language);
    json_add_double(w, "duration", t->duration);
    v1_transcript_write(w, t);
    if (parts->has_segments) {
        json_begin_array_as(w, "segments");
        for (size_t i = 0; i < t->n; i++)
            write_segment(w, &t->segments[i], i);
        json_end(w);
    }
    if (parts->has_words) {
        json_begin_array_as(w, "words");
        for (size_t i = 0; i < t->n; i++)
            heard_words_write(w, &t->segments[i]);
        json_end(w);
    }
}

/* ---- subtitles ---- */

enum { CUE_BYTES = 60 };

struct subtitles {
    struct buf *out;
    bool is_vtt;
    size_t n;
};

static void write_time(const struct subtitles *s, double seconds)
{
    int64_t ms = llround(fmax(seconds, 0) * 1000);
    char text[64];

    snprintf(text, sizeof(text), "%02d:%02d:%02d%c%03d", (int)(ms / 3600000), (int)(ms / 60000 % 60),
             (int)(ms / 1000 % 60), s->is_vtt ? '.' : ',', (int)(ms % 1000));
    buf_add_str(s->out, text);
}

static void begin_cue(struct subtitles *s, double start, double end)
{
    s->n++;
    if (!s->is_vtt) {
        char number[32];

        snprintf(number, sizeof(number), "%zu\n", s->n);
        buf_add_str(s->out, number);
    }
    write_time(s, start);
    buf_add_str(s->out, " --> ");
    write_time(s, end);
    buf_add_char(s->out, '\n');
}

/* An empty line would end the cue; WebVTT has marks of its own (section 4.2.2). */
static void write_text(const struct subtitles *s, const char *text)
{
    for (; *text; text++) {
        const char *mark = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : NULL;

        if (s->is_vtt && mark)
            buf_add_str(s->out, mark);
        else
            buf_add_char(s->out, (unsigned char)*text < ' ' ? ' ' : *text);
    }
}

/* How many words, from this one on, are one cue. */
static size_t words_of_cue(const struct heard_segment *segment, size_t from)
{
    size_t n = 1, n_bytes = strlen(segment->words[from].text);

    while (from + n < segment->n_words && n_bytes + 1 + strlen(segment->words[from + n].text) <= CUE_BYTES)
        n_bytes += 1 + strlen(segment->words[from + n++].text);
    return n;
}

static void write_words(struct subtitles *s, const struct heard_segment *segment)
{
    for (size_t i = 0, n; i < segment->n_words; i += n) {
        n = words_of_cue(segment, i);
        begin_cue(s, segment->words[i].start, segment->words[i + n - 1].end);
        for (size_t j = 0; j < n; j++) {
            buf_add_str(s->out, j > 0 ? " " : "");
            write_text(s, segment->words[i + j].text);
        }
        buf_add_str(s->out, "\n\n");
    }
}

static void write_whole(struct subtitles *s, const struct heard_segment *segment)
{
    begin_cue(s, segment->start, segment->end);
    write_text(s, segment->text);
    buf_add_str(s->out, "\n\n");
}

void v1_transcript_write_subtitles(struct buf *out, const struct transcript *t, bool is_vtt)
{
    struct subtitles s = { out, is_vtt, 0 };

    buf_add_str(out, is_vtt ? "WEBVTT\n\n" : "");
    for (size_t i = 0; i < t->n; i++) {
        if (t->segments[i].n_words > 0)
            write_words(&s, &t->segments[i]);
        else
            write_whole(&s, &t->segments[i]);
    }
}
