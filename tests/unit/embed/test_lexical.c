#include "base/arena.h"
#include "base/hash.h"
#include "embed/lexical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

static const char *const corpus[] = {
    "The invoice for March has not been paid; the customer asks for a second reminder.",
    "How to change the oil filter of a diesel tractor in the field.",
    "Recipe: bread with rye flour, sourdough starter and caraway seeds.",
    "Temperature sensors in the greenhouse report every ten minutes over radio.",
    "Minutes of the board meeting: budget for the new library approved.",
    "The hiking trail along the river is closed after the flood.",
    "Password reset: click the link in the mail within one hour.",
    "Guitar strings should be replaced when they lose their brightness.",
    "The vaccine must be stored between two and eight degrees.",
    "Flight delays: passengers may claim compensation after three hours.",
    "Photosynthesis turns light, water and carbon dioxide into sugar.",
    "Insurance policy for the bicycle covers theft but no accidents.",
    "The orchestra rehearses the symphony on Thursday evening.",
    "Kubernetes cluster upgrade: drain each node before the reboot.",
    "Tax return: deduct the cost of your home office.",
    "The dishwasher leaks because the rubber seal of the door is worn.",
    "Chess opening theory: the Sicilian defence and its variations.",
    "Parents' evening at the primary school starts at seven.",
    "Warranty repair of the laptop battery takes two weeks.",
    "Penguins breed on the ice in the coldest months of the year.",
};

/* Queries that a person would type, correct and mistyped, and the text that is meant. */
static const struct {
    const char *query, *misspelt;
    size_t wanted;
} queries[] = {
    { "unpaid invoice reminder", "unpaid invoce remindr", 0 },
    { "tractor oil filter", "tracktor oil fliter", 1 },
    { "rye sourdough bread", "ry sourdogh bread", 2 },
    { "greenhouse temperature sensor", "grenhouse temprature sensr", 3 },
    { "library budget", "libary buget", 4 },
    { "is the river trail closed", "is the rivver trail closd", 5 },
    { "reset my password", "resett my pasword", 6 },
    { "new guitar string", "new gitar strings", 7 },
    { "storing vaccines", "storing vacines", 8 },
    { "compensation for a delayed flight", "compensasion for a delayd flight", 9 },
    { "photosynthesis", "fotosynthesis", 10 },
    { "bicycle theft insurance", "bycicle theft insurence", 11 },
    { "symphony orchestra rehearsal", "symfony orchester rehersal", 12 },
    { "upgrading the kubernetes nodes", "upgradeing the kubernets nods", 13 },
    { "home office tax", "home offise tax", 14 },
    { "dishwasher leaking at the door", "dishwaser leeking at the door", 15 },
    { "sicilian chess openings", "sicillian ches openings", 16 },
    { "school parents evening", "shool parents evning", 17 },
    { "laptop battery warranty", "labtop battry waranty", 18 },
    { "penguin breeding", "pengiun breeding", 19 },
};

static float dot(const float *a, const float *b)
{
    float sum = 0;

    for (size_t i = 0; i < LEXICAL_DIMENSIONS; i++)
        sum += a[i] * b[i];
    return sum;
}

static float similarity(const char *one, const char *other)
{
    float a[LEXICAL_DIMENSIONS], b[LEXICAL_DIMENSIONS];

    lexical_embed(slice_of(one), a);
    lexical_embed(slice_of(other), b);
    return dot(a, b);
}

/* How many texts of the corpus are nearer than the wanted one. */
static size_t rank_of(const char *query, size_t wanted)
{
    float best = similarity(query, corpus[wanted]);
    size_t rank = 0;

    for (size_t i = 0; i < ARRAY_SIZE(corpus); i++)
        rank += similarity(query, corpus[i]) > best;
    return rank;
}

static void every_vector_has_length_one(void **state)
{
    static const char *const texts[] = {
        "", " ", "a", "!?", "the the the", "\xFF\xFE broken", "\xE6\x97\xA5\xE6\x9C\xAC", "\xF0\x9F\x98\x80"
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_true(fabsf(similarity(texts[i], texts[i]) - 1) < 1e-5f);
}

static void queries_find_their_text_far_more_often_than_chance(void **state)
{
    size_t n_first = 0;

    for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
        n_first += rank_of(queries[i].query, queries[i].wanted) == 0;
    assert_in_range(n_first, ARRAY_SIZE(queries) - 1, ARRAY_SIZE(queries)); /* chance would find one */
}

static void misspelt_queries_find_their_text_too(void **state)
{
    size_t n_first = 0, n_third = 0;

    for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
        n_first += rank_of(queries[i].misspelt, queries[i].wanted) == 0;
        n_third += rank_of(queries[i].misspelt, queries[i].wanted) < 3;
    }
    assert_in_range(n_first, ARRAY_SIZE(queries) - 2, ARRAY_SIZE(queries));
    assert_int_equal(n_third, ARRAY_SIZE(queries));
}

static void case_accents_and_punctuation_do_not_matter(void **state)
{
    static const struct {
        const char *one, *other;
    } same[] = {
        { "Hello, WORLD!", "hello world" },
        { "caf\xC3\xA9 \xC3\x9C"
          "ber",
          "cafe uber" },
        { "cafe\xCC\x81", "caf\xC3\xA9" },
        { "\xC5\xBB\xC3\xB3\xC5\x82\xC4\x87", "zolc" },
        { "\xD0\x9C\xD0\x98\xD0\xA0", "\xD0\xBC\xD0\xB8\xD1\x80" },
        { "\xCE\x91\xCE\xA9", "\xCE\xB1\xCF\x89" },
        { "a\xE2\x80\x94"
          "b",
          "a b" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(same); i++)
        assert_true(similarity(same[i].one, same[i].other) > 0.9999f);
}

static void order_of_words_matters_a_little(void **state)
{
    float turned = similarity("river bank closes", "bank closes river");

    assert_true(turned > 0.7f && turned < 0.999f);
}

static void texts_without_spaces_are_compared_by_their_characters(void **state)
{
    /* "Tokyo tower", "Tokyo station", "invoice" */
    const char *tower = "\xE6\x9D\xB1\xE4\xBA\xAC\xE5\xA1\x94", *station = "\xE6\x9D\xB1\xE4\xBA\xAC\xE9\xA7\x85",
               *invoice = "\xE8\xAB\x8B\xE6\xB1\x82\xE6\x9B\xB8";

    assert_true(similarity(tower, station) > similarity(tower, invoice) + 0.3f);
}

static void a_word_said_often_counts_more_but_not_in_proportion(void **state)
{
    float once = similarity("alpha omega", "alpha"),
          often = similarity("alpha alpha alpha alpha alpha alpha alpha alpha omega", "alpha");

    assert_true(often > once);
    assert_true(often < 0.985f); /* 8 times its weight would give 0.99 */
}

static void long_texts_are_embedded_whole(void **state)
{
    enum { N_BYTES = 300000 };
    AUTO(arena_freep) struct arena *a = arena_new();
    char *text = arena_alloc(a, N_BYTES + 32);
    float with_tail;

    for (size_t i = 0; i < N_BYTES; i++)
        text[i] = i % 6 == 5 ? ' ' : (char)('a' + i * 7 / 5 % 26);
    memcpy(text + N_BYTES, " zebra zebra", 13);
    with_tail = similarity(text, "zebra");
    text[N_BYTES] = '\0';
    assert_true(fabsf(similarity(text, text) - 1) < 1e-5f);
    assert_true(with_tail > similarity(text, "zebra"));
}

/* Stored vectors must stay comparable: these digests never change. A change of the projection needs a new model name.
 */
static void vectors_are_the_same_on_every_machine(void **state)
{
    static const struct {
        const char *text, *digest;
    } golden[] = {
        { "hello world", "3b1ad39aa2437fda" },
        { "The invoice for March has not been paid", "e6eb19bdf4bf63f5" },
        { "\xE6\x9D\xB1\xE4\xBA\xAC caf\xC3\xA9 42", "4eaead71c45a092c" },
        { "", "2297a3cfe0403b51" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(golden); i++) {
        float vector[LEXICAL_DIMENSIONS];
        char digest[HASH_HEX_SIZE];

        lexical_embed(slice_of(golden[i].text), vector);
        hash_text_hex((struct slice){ (const char *)vector, sizeof(vector) }, digest);
        digest[16] = '\0';
        assert_string_equal(digest, golden[i].digest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_vector_has_length_one),
        cmocka_unit_test(queries_find_their_text_far_more_often_than_chance),
        cmocka_unit_test(misspelt_queries_find_their_text_too),
        cmocka_unit_test(case_accents_and_punctuation_do_not_matter),
        cmocka_unit_test(order_of_words_matters_a_little),
        cmocka_unit_test(texts_without_spaces_are_compared_by_their_characters),
        cmocka_unit_test(a_word_said_often_counts_more_but_not_in_proportion),
        cmocka_unit_test(long_texts_are_embedded_whole),
        cmocka_unit_test(vectors_are_the_same_on_every_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
