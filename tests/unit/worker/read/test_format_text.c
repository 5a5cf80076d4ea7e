/* Goal: windows of bytes and near words are those of the text; words are dropped and sampled by their chances.
 * Method: every example of small texts is compared with the rule; draws are counted. */
#include "common/base/hash.h"
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
                                       .labels = windows ? DP_LABELS_CLASS : DP_LABELS_NONE,
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

/* The words a .. e of the text, the line of each, and their counts. */
#define WORDS 5
static const char text[] = " a b\nc\ta d\r\n\na a a  b e a a a a a a";
static const char sequence[] = "abcadaaabeaaaaaa", line_of[] = "0011122222222222";
static const uint32_t counts[WORDS] = {11, 2, 1, 1, 1};

static uint64_t key_of(char word)
{
    return dp_mix(dp_mix(dp_hash_bytes(DP_HASH_BEGIN, &word, 1)) >> 1);
}

static int word_of(uint64_t key)
{
    for (int w = 0; w < WORDS; w++)
        if (key == key_of((char)('a' + w)))
            return w;
    fail_msg("a key of no word");
    return -1;
}

/* The word of an example, its near words ("cab") and its sampled ones; '-': it was dropped. */
struct example {
    char word, near[16], sampled[32];
};

static struct example example_of(const struct dp_batch *b, uint32_t i,
                                 const struct dp_dataset_options *options)
{
    struct example out = {.word = '-'};
    const struct dp_batch_list *list = &b->list[1];
    float each = 1.0f / (float)((options->window + 1) * (options->negatives + 1));
    size_t near = 0, sampled = 0;
    assert_true(b->labels[i] == 0);
    if (b->list[0].offsets[i + 1] > b->list[0].offsets[i])
        out.word = (char)('a' + word_of(formats_key(b, 0, 0, i, 0)));
    for (uint32_t j = list->offsets[i]; j < list->offsets[i + 1]; j++) {
        char word = (char)('a' + word_of(formats_key(b, 1, 1, i, j - list->offsets[i])));
        if (list->values[j] > 0) {
            assert_true(list->values[j] == each && sampled == 0);
            out.near[near++] = word;
        } else {
            assert_true(list->values[j] == -each);
            out.sampled[sampled++] = word;
        }
    }
    assert_true(sampled <= near * options->negatives && (out.word != '-' || near == 0));
    return out;
}

/* Those of the line up to b away on each side, with b drawn from 1 .. window, each as often. */
static void words_near_each(void **state)
{
    enum { EPOCHS = 600, WINDOW = 3 };
    uint32_t drawn[WINDOW + 1] = {0};
    struct dp_dataset_options options = options_of(DP_FORM_WORDS);
    options.window = WINDOW;
    options.path = write_text("text", text);
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_batch(dataset);
    size_t len = strlen(sequence);
    assert_int_equal(dp_dataset_examples(dataset), len);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        for (size_t at = 0; at < len; at++) {
            char want[16] = "";
            size_t left = 0, right = 0, most = 1;
            dp_dataset_fill(dataset, epoch, at / 7, b);
            struct example got = example_of(b, (uint32_t)at % 7, &options);
            assert_int_equal(got.word, sequence[at]);
            while (left < WINDOW && left < at && line_of[at - left - 1] == line_of[at])
                left++;
            while (right < WINDOW && line_of[at + right + 1] == line_of[at])
                right++;
            while (most < WINDOW &&
                   (left < most ? left : most) + (right < most ? right : most) < strlen(got.near))
                most++;
            for (size_t y = at < most ? 0 : at - most; y <= at + most && y < len; y++)
                if (y != at && line_of[y] == line_of[at])
                    strncat(want, &sequence[y], 1);
            assert_string_equal(got.near, want);
            drawn[most] += left == WINDOW && right == WINDOW;
        }
    double each = EPOCHS * (double)(11 - 2 * WINDOW) / WINDOW; /* of the last line */
    for (uint32_t most = 1; most <= WINDOW; most++)
        assert_true(fabs(drawn[most] - each) < 6 * sqrt(each));
}

static void sampled_words_by_their_chances(void **state)
{
    enum { EPOCHS = 4000 };
    double drawn[WORDS] = {0}, of[WORDS] = {0}, sum = 0; /* where the word is not near */
    struct dp_dataset_options options = options_of(DP_FORM_WORDS);
    options.path = write_text("text", text);
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_batch(dataset);
    for (uint32_t e = 0; e < EPOCHS; e++) {
        dp_dataset_fill(dataset, e, 1, b);
        for (uint32_t i = 0; i < b->examples; i++) {
            struct example got = example_of(b, i, &options);
            for (const char *at = got.sampled; *at; at++)
                assert_null(strchr(got.near, *at));
            for (int w = 0; w < WORDS; w++) {
                of[w] += strchr(got.near, 'a' + w) ? 0 : (double)strlen(got.near) * options.negatives;
                for (const char *at = got.sampled; *at; at++)
                    drawn[w] += *at == 'a' + w;
            }
        }
    }
    for (int w = 0; w < WORDS; w++)
        sum += pow(counts[w], 0.75);
    for (int w = 0; w < WORDS; w++) {
        double mean = of[w] * pow(counts[w], 0.75) / sum;
        if (fabs(drawn[w] - mean) > 6 * sqrt(mean))
            fail_msg("word %d was drawn %g times, expected about %g", w, drawn[w], mean);
    }
    options.shuffle = true;
    formats_check(options, text);
}

/* A word stays by its share; one that is dropped is as if it were not there. */
static void frequent_words_are_dropped(void **state)
{
    enum { EPOCHS = 2000 };
    struct dp_dataset_options options = options_of(DP_FORM_WORDS);
    size_t len = strlen(sequence);
    double stayed[WORDS] = {0};
    options.subsample = 0.1;
    options.batch = (uint32_t)len;
    options.path = write_text("text", text);
    struct dp_dataset *dataset = formats_open(&options);
    struct dp_batch *b = formats_batch(dataset);
    for (uint32_t e = 0; e < EPOCHS; e++) {
        char in[32] = "";
        dp_dataset_fill(dataset, e, 0, b);
        for (uint32_t i = 0; i < len; i++) {
            char word = example_of(b, i, &options).word;
            if (word != '-')
                strncat(in, &word, 1);
        }
        for (uint32_t i = 0, at = 0; i < len; i++) {
            struct example got = example_of(b, i, &options);
            if (got.word == '-')
                continue;
            stayed[got.word - 'a']++;
            size_t near = strlen(got.near), left = at < near ? at : near;
            bool found = false; /* they are next to it among those that stay */
            for (size_t begin = at - left; begin <= at && !found; begin++) {
                char want[32] = "";
                for (size_t y = begin; in[y] && strlen(want) < near; y++)
                    if (y != at)
                        strncat(want, &in[y], 1);
                found = strcmp(want, got.near) == 0;
            }
            assert_true(found);
            at++;
        }
    }
    for (int w = 0; w < WORDS; w++) {
        double often = counts[w] / (double)len / options.subsample,
               chance = fmin(1, (sqrt(often) + 1) / often), mean = EPOCHS * counts[w] * chance;
        if (fabs(stayed[w] - mean) > 6 * sqrt(mean * (1 - chance)))
            fail_msg("word %d stayed %g times, expected about %g", w, stayed[w], mean);
    }
}

/* With a minimum count the others are as if they were not there. */
static void seldom_words_are_left_out(void **state)
{
    struct dp_understood says;
    struct dp_dataset_options options = options_of(DP_FORM_WORDS);
    options.min_count = 2;
    options.path = write_text("text", text);
    struct dp_dataset *some = formats_open(&options);
    dp_dataset_understood(some, &options, &says);
    assert_string_equal(says.line[1],
                        "words: 2 that occur at least 2 times, of 5 different ones: 13 of 16 in the text");
    options.min_count = 1;
    options.path = write_text("kept", "a b\na\na a a b a a a a a a");
    struct dp_dataset *kept = formats_open(&options);
    dp_dataset_understood(kept, &options, &says);
    assert_string_equal(says.line[1], "words: 2 different ones, 13 in the text");
    for (uint64_t n = 0; n < dp_dataset_batches(kept); n++)
        formats_same_batch(formats_filled(some, 1, n), formats_filled(kept, 1, n));
    assert_int_equal(dp_dataset_batches(some), dp_dataset_batches(kept));
    options.min_count = 12;
    formats_refused(options, text, 0, DP_DATA,
                    "of its 5 different words 0 occur at least 12 times (the most frequent one 11 times): "
                    "give a smaller --min-count");
}

/* Each word once an epoch; those of 64 in sequence stay together. */
static void words_are_shuffled_in_runs(void **state)
{
    enum { WORDS_OF = 64 * 5 + 9 };
    static char long_text[3 * WORDS_OF + 1];
    bool seen[WORDS_OF] = {false}, moved = false;
    struct dp_dataset_options options = options_of(DP_FORM_WORDS);
    for (size_t i = 0; i < WORDS_OF; i++)
        (void)snprintf(long_text + 2 * i, 3, "%c ", 'a' + (int)(i % 5));
    options.path = write_text("text", long_text);
    options.shuffle = true;
    struct dp_dataset *dataset = formats_open(&options);
    for (uint64_t i = 0; i < WORDS_OF; i++) {
        uint64_t at = dp_dataset_example_at(dataset, 3, i);
        assert_true(at < WORDS_OF && !seen[at] && at % 64 == i % 64);
        assert_true(i < 320 || at == i);
        moved = moved || at != i;
        seen[at] = true;
    }
    assert_true(moved);
}

static void words_are_runs_of_letters(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_WORDS);
    uint64_t digest[2];
    for (int i = 0; i < 2; i++) {
        options.path = write_text("text", i ? "a b\nc a" : "A, b.\n(C) a!");
        options.word_rule = i ? DP_WORD_PLAIN : DP_WORD_SIMPLE;
        digest[i] = dp_dataset_digest(formats_open(&options));
    }
    assert_true(digest[0] == digest[1]);
    options.path = write_text("text", "a b c a");
    assert_true(digest[0] != dp_dataset_digest(formats_open(&options)));
}

static void bad_files_are_refused(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_WINDOWS);
    formats_refused(options, "abcd", 0, DP_DATA, "has 4 bytes: expected more than the 4 of a window");
    formats_refused(options, "", 0, DP_DATA, "is empty");
    options.classes = 128;
    formats_refused(options, "abcdef\xc3", 0, DP_DATA, "byte 6 is 195, but the model has 128 classes");
    options = options_of(DP_FORM_WORDS);
    formats_refused(options, "a a a", 0, DP_DATA, "has 1 different words");
    formats_refused(options, " \n", 0, DP_DATA, "has 0 different words");
    formats_refused(options, "a\nb\na\n", 0, DP_DATA, "no line has two of its words");
    options.window = 0;
    formats_refused(options, "a b", 0, DP_ARGUMENT, "a window of 0 words: expected 1 to 1000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(windows_of_bytes),
        FILES_TEST(words_near_each),
        FILES_TEST(frequent_words_are_dropped),
        FILES_TEST(words_are_shuffled_in_runs),
        FILES_TEST(seldom_words_are_left_out),
        FILES_TEST(words_are_runs_of_letters),
        FILES_TEST(sampled_words_by_their_chances),
        FILES_TEST(bad_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
