/* Goal: a text is cut into the same words, whatever the blocks in which it comes.
 * Method: known texts; each of them, and random bytes, cut at every place. */
#include "common/vocab/tokenizer.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words with a '|' after each, and a '^' before the first of a line, of a text that comes in blocks
 * which end at `cut` and at the end. */
static const char *words_of(enum dp_word_rule kind, const char *text, size_t len, size_t cut)
{
    static char out[4096];
    struct dp_tokenizer t = {.kind = kind};
    size_t at = 0, have = 0;
    for (bool last = false, word; !last;) {
        last = at == len;
        if (last)
            word = dp_tokenizer_end(&t);
        else
            at += dp_tokenizer_next(&t, (const unsigned char *)text + at, (at < cut ? cut : len) - at, &word);
        if (word) {
            if (t.first)
                out[have++] = '^';
            memcpy(out + have, t.text, t.len);
            have += t.len;
            out[have++] = '|';
        }
    }
    out[have] = '\0';
    return out;
}

static const struct {
    enum dp_word_rule kind;
    const char *text, *words;
} known[] = {
    {DP_WORD_PLAIN, " The cat,\tthe\r\nCAT \n", "^The|cat,|the|^CAT|"},
    {DP_WORD_SIMPLE, " The cat,\tthe\r\n\"CAT\"! new_york a-b don't 2nd",
     "^the|cat|the|^cat|new_york|a|b|don|t|2nd|"},
    {DP_WORD_SIMPLE, "", ""},
    {DP_WORD_SIMPLE, "...!? --", ""},
    {DP_WORD_SIMPLE, "CAF\xc3\x89 caf\xc3\xa9 \xc3\x96l \xc5\xbb\xc3\xb3\xc5\x81w \xc5\xb8",
     "^caf\xc3\xa9|caf\xc3\xa9|\xc3\xb6l|\xc5\xbc\xc3\xb3\xc5\x82w|\xc3\xbf|"},
    {DP_WORD_SIMPLE, "\xce\xa3\xce\x9f\xce\xa6\xce\x8a\xce\x91 \xd0\x9c\xd0\x98\xd0\xa0 \xd0\x81",
     "^\xcf\x83\xce\xbf\xcf\x86\xce\xaf\xce\xb1|\xd0\xbc\xd0\xb8\xd1\x80|\xd1\x91|"},
    {DP_WORD_SIMPLE, "\xe1\xba\x9e \xc4\xb0x \xe1\xbb\xa4", "^\xc3\x9f|ix|\xe1\xbb\xa5|"},
    {DP_WORD_SIMPLE,
     "a\xe2\x80\x94"
     "b \xe2\x80\x9cQuote\xe2\x80\x9d \xc2\xabx\xc2\xbb\xc2\xa0y \xf0\x9f\x98\x80z",
     "^a|b|quote|x|y|z|"},
    {DP_WORD_SIMPLE, "\xe4\xbd\xa0\xe5\xa5\xbd\xe3\x80\x82\xe4\xb8\x96 \xf0\xa0\x80\x80",
     "^\xe4\xbd\xa0\xe5\xa5\xbd|\xe4\xb8\x96|\xf0\xa0\x80\x80|"},
    /* not UTF-8: letters */
    {DP_WORD_SIMPLE, "caf\xe9 X\xc3 \xc3", "^caf\xe9|x\xc3|\xc3|"},
};

static void words_are_known(void **state)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        for (size_t cut = 0; cut <= strlen(known[i].text); cut++)
            assert_string_equal(words_of(known[i].kind, known[i].text, strlen(known[i].text), cut),
                                known[i].words);
}

static void blocks_do_not_matter(void **state)
{
    char text[64], complete[4096];
    srand(1);
    for (int turn = 0; turn < 500; turn++) {
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)(rand() % 3 ? 0x80 | rand() : rand());
        (void)strcpy(complete, words_of(DP_WORD_SIMPLE, text, sizeof text, 0));
        for (size_t cut = 1; cut < sizeof text; cut++)
            assert_string_equal(words_of(DP_WORD_SIMPLE, text, sizeof text, cut), complete);
    }
}

static void a_long_word_is_cut_and_hashed_completely(void **state)
{
    static char text[5000];
    struct dp_tokenizer a = {.kind = DP_WORD_SIMPLE}, b = a;
    bool word;
    memset(text, 'x', sizeof text);
    assert_int_equal(dp_tokenizer_next(&a, (unsigned char *)text, sizeof text, &word), sizeof text);
    assert_false(word);
    text[4999] = 'y';
    (void)dp_tokenizer_next(&b, (unsigned char *)text, sizeof text, &word);
    assert_true(dp_tokenizer_end(&a) && dp_tokenizer_end(&b));
    assert_int_equal(a.len, DP_VOCAB_TEXT_MAX);
    assert_true(a.hash != b.hash);
}

static void one_word_is_made_alike(void **state)
{
    char out[8];
    assert_true(dp_tokenizer_word(DP_WORD_SIMPLE, "\"CAT\",", out, sizeof out));
    assert_string_equal(out, "cat");
    assert_true(dp_tokenizer_word(DP_WORD_PLAIN, "CAT,", out, sizeof out));
    assert_string_equal(out, "CAT,");
    assert_false(dp_tokenizer_word(DP_WORD_SIMPLE, "two words", out, sizeof out));
    assert_false(dp_tokenizer_word(DP_WORD_SIMPLE, "...", out, sizeof out));
    assert_false(dp_tokenizer_word(DP_WORD_SIMPLE, "too_long", out, sizeof out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_known),
        cmocka_unit_test(blocks_do_not_matter),
        cmocka_unit_test(a_long_word_is_cut_and_hashed_completely),
        cmocka_unit_test(one_word_is_made_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
