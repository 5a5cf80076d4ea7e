/* Goal: windows of bytes and pairs of words are those of the text; sampled words come by their chances.
 * Method: every example of small texts is compared with the rule; draws are counted. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dp_dataset_options options_of(enum dp_data_form form)
{
    bool windows = form == DP_FORM_WINDOWS;
    return (struct dp_dataset_options){.form = form,
                                       .labels = windows ? DP_LABELS_CLASS : DP_LABELS_BINARY,
                                       .classes = 256,
                                       .scale = 1,
                                       .fields = windows ? 4 : 0,
                                       .window = 2,
                                       .negatives = 3,
                                       .format = "text",
                                       .batch = 7};
}

static void windows_of_bytes(void **state)
{
    static const char text[] = "the cat sat\non the \xc3\xa4 mat";
    struct dp_dataset_options options = options_of(DP_FORM_WINDOWS);
    options.path = write_text("text", text);
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_batch(dataset);
    assert_int_equal(dp_dataset_examples(dataset), strlen(text) - 4);
    for (uint32_t e = 0; e < strlen(text) - 4; e++) {
        dp_dataset_fill(dataset, 0, e / 7, b);
        for (uint32_t t = 0; t < 4; t++)
            assert_true(formats_key(b, 0, 0, e % 7, t) == dp_mix((unsigned char)text[e + t]));
        assert_true(b->labels[e % 7] == (float)(unsigned char)text[e + 4]);
    }
    options.shuffle = true;
    formats_check(options, text);
}

/* The words a .. e of the text, their counts, and the keys that the data set gave them. */
#define WORDS 5
static const char text[] = " a b\na\tc d\r\na a a  b e a a a a a a";
static const char sequence[] = "abacdaaabeaaaaaa";
static const uint32_t counts[WORDS] = {11, 2, 1, 1, 1};

static void learn_keys(const struct dp_dataset *dataset, uint64_t *keys)
{
    /* Unshuffled and without samples, the first pairs are those of neighbours, in order, in both directions. */
    struct dp_batch *b = formats_batch(dataset);
    for (uint32_t p = 0; p + 1 < strlen(sequence); p++) {
        uint32_t e = 2 * p;
        dp_dataset_fill(dataset, 0, e / 7, b);
        keys[sequence[p] - 'a'] = formats_key(b, 0, 0, e % 7, 0);
        keys[sequence[p + 1] - 'a'] = formats_key(b, 1, 1, e % 7, 0);
    }
}

static int word_of(const uint64_t *keys, uint64_t key)
{
    for (int w = 0; w < WORDS; w++)
        if (keys[w] == key)
            return w;
    fail_msg("a key of no word");
    return -1;
}

static void pairs_of_words(void **state)
{
    uint64_t keys[WORDS] = {0};
    uint32_t got[WORDS][WORDS] = {{0}}, want[WORDS][WORDS] = {{0}};
    size_t len = strlen(sequence);
    struct dp_dataset_options options = options_of(DP_FORM_PAIRS);
    options.scored = true;
    options.path = write_text("text", text);
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_batch(dataset);
    learn_keys(dataset, keys);
    for (uint64_t n = 0; n < dp_dataset_batches(dataset); n++) {
        dp_dataset_fill(dataset, 0, n, b);
        for (uint32_t i = 0; i < b->examples; i++)
            got[word_of(keys, formats_key(b, 0, 0, i, 0))][word_of(keys, formats_key(b, 1, 1, i, 0))]++;
    }
    for (size_t x = 0; x < len; x++)
        for (size_t y = 0; y < len; y++)
            want[sequence[x] - 'a'][sequence[y] - 'a'] += x != y && (x > y ? x - y : y - x) <= 2;
    assert_memory_equal(got, want, sizeof got);
}

/* With a minimum count the others are as if they were not there. */
static void seldom_words_are_left_out(void **state)
{
    struct dp_understood says;
    struct dp_dataset_options options = options_of(DP_FORM_PAIRS);
    options.scored = true;
    options.min_count = 2;
    options.path = write_text("text", text);
    struct dp_dataset *some = formats_open(&options);
    dp_dataset_understood(some, &options, &says);
    assert_string_equal(says.line[1],
                        "words: 2 that occur at least 2 times, of 5 different ones: 13 of 16 in the text");
    options.min_count = 1;
    options.path = write_text("kept", "a b a a a a b a a a a a a");
    struct dp_dataset *kept = formats_open(&options);
    dp_dataset_understood(kept, &options, &says);
    assert_string_equal(says.line[1], "words: 2 different ones, 13 in the text");
    assert_int_equal(dp_dataset_batches(some), dp_dataset_batches(kept));
    struct dp_batch *a = formats_batch(some), *b = formats_batch(kept);
    for (uint64_t n = 0; n < dp_dataset_batches(some); n++) {
        dp_dataset_fill(some, 0, n, a);
        dp_dataset_fill(kept, 0, n, b);
        for (uint32_t i = 0; i < a->examples; i++)
            for (uint32_t l = 0; l < 2; l++)
                assert_true(formats_key(a, l, l, i, 0) == formats_key(b, l, l, i, 0));
    }
    options.min_count = 12;
    formats_refused(options, text, 0, DP_DATA,
                    "of its 5 different words 0 occur at least 12 times (the most frequent one 11 times): "
                    "give a smaller --min-count");
}

static void words_are_runs_of_letters(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_PAIRS);
    uint64_t digest[2];
    for (int i = 0; i < 2; i++) {
        options.path = write_text("text", i ? "a b c a" : "A, b.\n(C) a!");
        options.word_rule = i ? DP_WORD_PLAIN : DP_WORD_SIMPLE;
        digest[i] = dp_dataset_digest(formats_open(&options));
    }
    assert_true(digest[0] == digest[1]);
}

static void sampled_words_by_their_chances(void **state)
{
    enum { EPOCHS = 200 };
    uint64_t keys[WORDS] = {0};
    double drawn[WORDS][WORDS] = {{0}}, of[WORDS] = {0}; /* beside a near word */
    struct dp_dataset_options options = options_of(DP_FORM_PAIRS);
    options.scored = true;
    options.path = write_text("text", text);
    struct dp_dataset *dataset = formats_open(&options);
    learn_keys(dataset, keys);
    uint64_t pairs = dp_dataset_examples(dataset);
    options.scored = false;
    options.batch = 4; /* one pair, and its samples */
    dataset = formats_open(&options);
    struct dp_batch *b = formats_batch(dataset);
    assert_int_equal(dp_dataset_examples(dataset), 4 * pairs);
    for (uint32_t e = 0; e < EPOCHS; e++)
        for (uint64_t n = 0; n < pairs; n++) {
            dp_dataset_fill(dataset, e, n, b);
            int near = word_of(keys, formats_key(b, 1, 1, 0, 0));
            for (uint32_t i = 0; i < 4; i++) {
                assert_true(formats_key(b, 0, 0, i, 0) == formats_key(b, 0, 0, 0, 0));
                assert_true(b->labels[i] == (i == 0));
                if (i > 0) {
                    drawn[near][word_of(keys, formats_key(b, 1, 1, i, 0))]++;
                    of[near]++;
                }
            }
        }
    for (int near = 0; near < WORDS; near++) {
        double sum = 0;
        for (int w = 0; w < WORDS; w++)
            sum += w == near ? 0 : pow(counts[w], 0.75);
        for (int w = 0; w < WORDS; w++) {
            double mean = w == near ? 0 : of[near] * pow(counts[w], 0.75) / sum;
            if (fabs(drawn[near][w] - mean) > 6 * sqrt(mean))
                fail_msg("beside %d word %d was drawn %g times, expected about %g", near, w, drawn[near][w],
                         mean);
        }
    }
    options.batch = 7;
    options.shuffle = true;
    formats_check(options, text);
}

static void bad_files_are_refused(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_WINDOWS);
    formats_refused(options, "abcd", 0, DP_DATA, "has 4 bytes: expected more than the 4 of a window");
    formats_refused(options, "", 0, DP_DATA, "is empty");
    options.classes = 128;
    formats_refused(options, "abcdef\xc3", 0, DP_DATA, "byte 6 is 195, but the model has 128 classes");
    options = options_of(DP_FORM_PAIRS);
    formats_refused(options, "a a a", 0, DP_DATA, "has 1 different words");
    formats_refused(options, " \n", 0, DP_DATA, "has 0 different words");
    options.window = 0;
    formats_refused(options, "a b", 0, DP_ARGUMENT, "a window of 0 words");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(windows_of_bytes),
        FILES_TEST(pairs_of_words),
        FILES_TEST(seldom_words_are_left_out),
        FILES_TEST(words_are_runs_of_letters),
        FILES_TEST(sampled_words_by_their_chances),
        FILES_TEST(bad_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
