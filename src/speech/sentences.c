#include "speech/sentences.h"

#include "base/limits.h"
#include "base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <pthread.h>
#include <strings.h>

/* ---- the boundaries of UAX #29 ---- */

#define PARA "\\r\\n\\x{85}\\x{2028}\\x{2029}"
#define EXTEND "[\\p{M}\\p{Cf}]*+"
#define ATERM "[.\\x{2024}\\x{FE52}\\x{FF0E}]"
#define CLOSE "(?:[\\p{Ps}\\p{Pe}\\p{Pi}\\p{Pf}\\p{Quotation_Mark}]" EXTEND ")*+"
#define SPACES "(?:[\\t\\x0B\\f\\p{Zs}]" EXTEND ")*+"
#define CONTINUE                                                                                                       \
    ",\\-:;\\x{55D}\\x{60C}\\x{60D}\\x{7F8}\\x{1802}\\x{1808}\\x{2013}\\x{2014}\\x{3001}\\x{FE50}\\x{FF0C}\\x{FF1A}\\x{FF64}"

/* One end of a sentence with what belongs to it: a full stop (SB6, SB7, SB8), another terminator, or a line break
 * (SB4). SB8a is the last look-ahead, SB9 and SB10 are the possessive repetitions. */
static const char boundary_pattern[] = "[" PARA "]++"
                                       "|(?:" ATERM EXTEND "(?!\\p{Nd})(?!(?<=[\\p{Lu}\\p{Ll}]" ATERM
                                       ")\\p{Lu})" CLOSE SPACES "(?![^\\p{L}\\p{STerm}\\x{2024}" PARA "]*+\\p{Ll})"
                                       "|(?!" ATERM ")\\p{STerm}" EXTEND CLOSE SPACES ")"
                                       "(?![" CONTINUE "\\p{STerm}\\x{2024}])(?:\\r\\n|[" PARA "])?+";

static const char word_pattern[] = "[\\p{L}\\p{N}]";

static pthread_once_t patterns_once = PTHREAD_ONCE_INIT;
static pcre2_code *boundary_code, *word_code; /* live as long as the process */

static pcre2_code *compile(const char *pattern)
{
    int error;
    PCRE2_SIZE at;

    return pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_NO_START_OPTIMIZE,
                         &error, &at, NULL);
}

static void compile_patterns(void)
{
    boundary_code = compile(boundary_pattern);
    word_code = compile(word_pattern);
}

struct splitter {
    struct arena *arena;
    struct slice text;
    const char *language;
    pcre2_match_data *match;
    struct speech_sentences out;
    size_t n_room;
};

/* 1: found, from *from to *to; 0: none; negative: PCRE2 failed. */
static int find(const struct splitter *s, const pcre2_code *code, struct slice in, size_t at, size_t *from, size_t *to)
{
    int n = pcre2_match(code, (PCRE2_SPTR)in.p, in.n, at, PCRE2_NO_UTF_CHECK, s->match, NULL);

    if (n < 0)
        return n == PCRE2_ERROR_NOMATCH ? 0 : -ENOMEM;
    *from = pcre2_get_ovector_pointer(s->match)[0];
    *to = pcre2_get_ovector_pointer(s->match)[1];
    return 1;
}

/* ---- exceptions ---- */

/* Words before a full stop that does not end a sentence; "*": in every language. */
static const struct {
    const char *language, *words;
} abbreviations[] = {
    { "*", "|dr|prof|st|vs|e.g|i.e|mt|ph.d|a.m|p.m|cf|" },
    { "en",
      "|mr|mrs|ms|messrs|sr|jr|rev|hon|gen|col|sgt|capt|lt|cmdr|gov|sen|rep|fig|figs|vol|pp|ed|eds|approx|dept|est|jan|feb|"
      "mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|ave|blvd|inc|ltd|co|corp|" },
    { "de",
      "|z.b|d.h|u.a|o.ä|u.u|z.t|bzw|ca|nr|abs|art|bd|hr|fr|frl|str|vgl|ggf|evtl|inkl|zzgl|mio|mrd|tel|jan|feb|apr|aug|sept|"
      "okt|nov|dez|" },
    { "fr", "|m|mm|mme|mlle|mgr|av|env|ex|p.ex|art|fig|vol|janv|févr|juil|sept|oct|nov|déc|" },
    { "es", "|sr|sra|srta|d|dña|ud|uds|ej|p.ej|pág|núm|art|fig|vol|avda|" },
    { "it", "|sig|sig.ra|dott|ing|avv|pag|art|fig|vol|ecc|p.es|" },
};

static bool is_language(const char *language, const char *base)
{
    size_t n = strlen(base);

    return strcmp(base, "*") == 0 ||
           (strncasecmp(language, base, n) == 0 && (!language[n] || language[n] == '-' || language[n] == '_'));
}

/* ASCII letters without their case. */
static bool has_word(const char *words, struct slice word)
{
    const char *at = words;

    while (*at == '|' && at[1]) {
        size_t n = strcspn(at + 1, "|");

        if (n == word.n && strncasecmp(at + 1, word.p, n) == 0)
            return true;
        at += n + 1;
    }
    return false;
}

static bool is_abbreviation(const char *language, struct slice word)
{
    for (size_t i = 0; i < ARRAY_SIZE(abbreviations); i++)
        if (is_language(language, abbreviations[i].language) && has_word(abbreviations[i].words, word))
            return true;
    return false;
}

static bool is_all_digits(struct slice word)
{
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] < '0' || word.p[i] > '9')
            return false;
    return word.n > 0;
}

static struct slice word_before(struct slice text, size_t begin, size_t end)
{
    size_t from = end;

    while (from > begin && !char_is_blank(text.p[from - 1]) && !memchr("([{\"'", text.p[from - 1], 5))
        from--;
    return (struct slice){ text.p + from, end - from };
}

/* Whether the full stop after the word belongs to the word. is_first: the sentence begins with the word. */
static bool is_part_of_word(const struct splitter *s, struct slice word, bool is_first, char next)
{
    if (is_all_digits(word))
        return (word.n <= 2 && is_language(s->language, "de")) || (is_first && word.n <= 3);
    if (word.n == 1)
        return word.p[0] >= 'A' && word.p[0] <= 'Z' && word.p[0] != 'I';
    if (has_word("|no|nos|p|", word))
        return next >= '0' && next <= '9';
    return is_abbreviation(s->language, word);
}

/* begin: of the sentence; from and to: of the boundary that the pattern found. */
static bool is_exception(const struct splitter *s, size_t begin, size_t from, size_t to)
{
    const char *text = s->text.p;
    struct slice word;

    if (to == s->text.n || memchr("\r\n", text[to - 1], 2) || (unsigned char)text[from] >= 0x80)
        return false;
    if (!char_is_blank(text[to - 1]) && (unsigned char)text[to - 1] < 0x80)
        return true; /* inside of a URL or a name: ?q=1 */
    for (size_t i = from + 1; i < to; i++)
        if (!char_is_blank(text[i]))
            return false;
    if (text[from] != '.')
        return false;
    word = word_before(s->text, begin, from);
    return is_part_of_word(s, word, word.p == text + begin, text[to]);
}

/* ---- long sentences ---- */

/* Commas and semicolons of other scripts. */
static const char *const wide_clauses[] = { "、", "，", "；", "：", "،", "؛", "—" };

static bool ends_clause(struct slice text, size_t at)
{
    for (size_t i = 0; i < ARRAY_SIZE(wide_clauses); i++) {
        size_t n = strlen(wide_clauses[i]);

        if (at >= n && memcmp(text.p + at - n, wide_clauses[i], n) == 0)
            return true;
    }
    return at >= 2 && char_is_blank(text.p[at - 1]) && memchr(",;:)", text.p[at - 2], 4);
}

/* Where the first piece of a long sentence ends: the last clause in its second half, else the last space, else the
 * limit. */
static size_t piece_end(struct slice text)
{
    size_t most = 0, space = 0, clause = 0, n_chars = 0;

    while (n_chars < LIMIT_SPEECH_SENTENCE && most < text.n) {
        most += MAX(utf8_char_bytes((struct slice){ text.p + most, text.n - most }), (size_t)1);
        n_chars++;
        if (ends_clause(text, most) && n_chars >= LIMIT_SPEECH_SENTENCE / 2)
            clause = most;
        if (char_is_blank(text.p[most - 1]))
            space = most;
    }
    return clause ? clause : space ? space : most;
}

/* ---- the sentences ---- */

static void add(struct splitter *s, struct slice sentence)
{
    if (s->out.n == s->n_room) {
        struct slice *items = arena_array(s->arena, s->n_room * 2 + 16, sizeof(*items));

        if (s->out.n > 0)
            memcpy(items, s->out.items, s->out.n * sizeof(*items));
        s->out.items = items;
        s->n_room = s->n_room * 2 + 16;
    }
    s->out.items[s->out.n++] = sentence;
}

static int add_piece(struct splitter *s, struct slice piece)
{
    size_t from, to;
    int found;

    piece = slice_trim(piece);
    found = piece.n > 0 ? find(s, word_code, piece, 0, &from, &to) : 0;
    if (found > 0)
        add(s, piece);
    return MIN(found, 0);
}

static int add_sentence(struct splitter *s, struct slice sentence)
{
    int r = 0;

    sentence = slice_trim(sentence);
    while (r == 0 && utf8_length(sentence) > LIMIT_SPEECH_SENTENCE) {
        size_t n = piece_end(sentence);

        r = add_piece(s, (struct slice){ sentence.p, n });
        sentence = (struct slice){ sentence.p + n, sentence.n - n };
    }
    return r < 0 ? r : add_piece(s, sentence);
}

static int split(struct splitter *s)
{
    size_t begin = 0, at = 0, from = 0, to = 0;
    int found = 1, r = 0;

    while (r == 0 && at < s->text.n && (found = find(s, boundary_code, s->text, at, &from, &to)) > 0) {
        at = to;
        if (is_exception(s, begin, from, to))
            continue;
        r = add_sentence(s, (struct slice){ s->text.p + begin, to - begin });
        begin = to;
    }
    if (r == 0 && found >= 0)
        r = add_sentence(s, (struct slice){ s->text.p + begin, s->text.n - begin });
    return MIN(r, MIN(found, 0));
}

int speech_sentences(struct arena *a, struct slice text, const char *language, struct speech_sentences *ret,
                     struct err *e)
{
    struct splitter s = { .arena = a, .text = slice_trim(text), .language = language };
    int r = -ENOMEM;

    pthread_once(&patterns_once, compile_patterns);
    s.match = boundary_code && word_code ? pcre2_match_data_create(1, NULL) : NULL;
    if (s.match)
        r = split(&s);
    pcre2_match_data_free(s.match);
    if (r < 0)
        return err_errno(e, -r, "The text cannot be split into sentences");
    *ret = s.out;
    return 0;
}
