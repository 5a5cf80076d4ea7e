/* Goal: the interactions of all data that was trained on are kept, day after day: they are items to sample
 * and to
 * rank, and no example. A damaged file is refused. Method: two days of pairs, with known users and items;
 * each byte of a file flipped, and each length cut. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"
#include "worker/read/interactions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MONDAY  "1 10\n1 11\n2 11\n2 12\n"
#define EPOCHS  50u
#define TUESDAY "1 13\n3 13\n3 14\n4 15\n"

static char kept[160];

static struct dp_dataset_options options_of(const char *name, const char *text)
{
    (void)snprintf(kept, sizeof kept, "%s/kept", files_dir);
    return (struct dp_dataset_options){.path = write_text(name, text),
                                       .form = DP_FORM_PAIRS,
                                       .labels = DP_LABELS_BINARY,
                                       .scale = 1,
                                       .negatives = 20,
                                       .seed = 3,
                                       .batch = 8};
}

static void keep(const struct dp_dataset_options *options, const struct dp_dataset_options *all, uint64_t run)
{
    struct dp_error err = {0};
    struct dp_dataset *trained = formats_open(options), *with_held = all ? formats_open(all) : trained;
    bool earlier = options->interactions_path != NULL;
    if (dp_dataset_keep_interactions(trained, with_held, run, earlier, kept, &err) != DP_OK)
        fail_msg("%s", err.text);
    if (all)
        files_release(with_held);
    files_release(trained);
}

/* Of all users, in order: "user:item,item;"; a held-out one in brackets. */
static void expect_kept(uint64_t run, bool earlier, const char *wanted)
{
    struct dp_error err = {0};
    struct dp_interactions in;
    char found[256] = "";
    if (dp_interactions_read(kept, &in, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_true(in.run == run && in.earlier == earlier);
    for (uint64_t u = 0; u < in.users; u++) {
        assert_true(dp_interactions_find(&in, in.user[u]) == u);
        (void)snprintf(found + strlen(found), sizeof found - strlen(found), "%d:", (int)in.user[u]);
        for (uint64_t i = in.first[u]; i < in.first[u + 1]; i++) {
            int item = (int)in.item[in.code[i] & ~DP_INTERACTION_HELD];
            (void)snprintf(found + strlen(found), sizeof found - strlen(found),
                           in.code[i] & DP_INTERACTION_HELD ? "[%d] " : "%d ", item);
        }
    }
    assert_true(dp_interactions_find(&in, 99) == in.users);
    dp_interactions_clear(&in);
    assert_string_equal(found, wanted);
}

static void a_second_day_adds_its_own(void **state)
{
    struct dp_dataset_options day = options_of("monday", MONDAY);
    keep(&day, NULL, 1);
    expect_kept(1, false, "1:10 11 2:11 12 ");
    day = options_of("tuesday", TUESDAY);
    day.interactions_path = kept;
    for (int again = 0; again < 2; again++) { /* a worker may find its own there */
        keep(&day, NULL, 2);
        expect_kept(2, true, "1:10 11 13 2:11 12 3:13 14 4:15 ");
    }
}

/* The digest and the names are those of the day; the sampled items are those of both. Each epoch has the
 * day's pairs and as many earlier ones as there are, at most two for each. */
static void earlier_items_are_sampled(void **state)
{
    struct dp_dataset_options day = options_of("monday", MONDAY);
    bool sampled[5][6] = {{0}};
    keep(&day, NULL, 1);
    day = options_of("tuesday", TUESDAY);
    struct dp_dataset *alone = formats_open(&day);
    day.interactions_path = kept;
    struct dp_dataset *both = formats_open(&day);
    assert_true(dp_dataset_examples(both) == 2 * dp_dataset_examples(alone));
    assert_true(dp_dataset_digest(both) == dp_dataset_digest(alone));
    struct dp_batch *b = formats_batch(both);
    unsigned met[5][6] = {{0}};
    for (uint64_t n = 0; n < EPOCHS * dp_dataset_batches(both); n++) {
        dp_dataset_fill(both, (uint32_t)(n % EPOCHS), n / EPOCHS, b);
        for (uint32_t i = 0; i < b->examples; i++) {
            uint64_t user = dp_unmix(formats_key(b, 0, 0, i, 0)), item = dp_unmix(formats_key(b, 1, 1, i, 0));
            assert_true(user <= 4 && item >= 10 && item <= 15);
            sampled[user][item - 10] |= b->labels[i] == 0;
            met[user][item - 10] += b->labels[i] == 1;
        }
    }
    static const unsigned own[4][2] = {{1, 3}, {3, 3}, {3, 4}, {4, 5}},
                          earlier[4][2] = {{1, 0}, {1, 1}, {2, 1}, {2, 2}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(met[own[i][0]][own[i][1]], EPOCHS);
        assert_true(met[earlier[i][0]][earlier[i][1]] > EPOCHS / 2);
    }
    static const bool wanted[5][6] = {
        [1] = {[2] = true, [4] = true, [5] = true},
        [2] = {true, [3] = true, [4] = true, [5] = true},
        [3] = {true, true, true, [5] = true},
        [4] = {true, true, true, true, true},
    };
    assert_memory_equal(sampled, wanted, sizeof wanted);
}

/* A user of the day who has met all of its items has others of earlier days. One who has met all is left out;
 * a day of such users alone is refused. */
static void a_day_of_one_item_trains(void **state)
{
    struct dp_error err = {0};
    struct dp_dataset *dataset = NULL;
    struct dp_dataset_options day = options_of("monday", MONDAY "4 10\n4 11\n4 12\n");
    struct dp_dataset_options less = options_of("less", MONDAY);
    assert_true(dp_dataset_examples(formats_open(&day)) == dp_dataset_examples(formats_open(&less)));
    day = options_of("monday", MONDAY);
    keep(&day, NULL, 1);
    day = options_of("tuesday", "2 12\n");
    assert_int_equal(dp_dataset_open(&day, &dataset, &err), DP_DATA);
    day.interactions_path = kept;
    assert_int_equal(dp_dataset_open(&day, &dataset, &err), DP_OK);
    dp_dataset_close(&dataset);
    day = options_of("tuesday", "1 12\n2 13\n"); /* user 1 has all items but 13, and then all */
    day.interactions_path = kept;
    assert_true(dp_dataset_examples(formats_open(&day)) == 21 * 6);
    day = options_of("tuesday", "1 12\n1 13\n3 12\n");
    day.interactions_path = kept;
    assert_true(dp_dataset_examples(formats_open(&day)) == 21 * 5);
    day = options_of("tuesday", "2 10\n");
    day.interactions_path = kept;
    assert_int_equal(dp_dataset_open(&day, &dataset, &err), DP_DATA);
    assert_non_null(strstr(err.text, "user 2 has all 3 items"));
}

/* A user has met what is held out; a later training may sample it. */
static void held_out_ones_are_marked(void **state)
{
    struct dp_dataset_options day = options_of("monday", "1 10\n1 11\n1 12\n2 12\n2 13\n2 14\n"), all = day;
    struct dp_interactions in;
    day.holdout = DP_HOLDOUT_ONE;
    all.with_held = true;
    keep(&day, &all, 1);
    assert_int_equal(dp_interactions_read(kept, &in, NULL), DP_OK);
    assert_true(in.users == 2 && in.count == 6);
    for (uint64_t u = 0; u < 2; u++) {
        uint32_t held = 0;
        for (uint64_t i = in.first[u]; i < in.first[u + 1]; i++)
            held += (in.code[i] & DP_INTERACTION_HELD) != 0;
        assert_int_equal(held, 1);
    }
    dp_interactions_clear(&in);
    day = all = options_of("tuesday", "3 20\n");
    day.interactions_path = all.interactions_path = kept;
    all.with_held = true;
    keep(&day, &all, 2);
    assert_int_equal(dp_interactions_read(kept, &in, NULL), DP_OK);
    uint32_t held = 0;
    for (uint64_t i = 0; i < in.count; i++)
        held += (in.code[i] & DP_INTERACTION_HELD) != 0;
    assert_true(held == 2 && in.count == 7);
    dp_interactions_clear(&in);
}

static void damage_is_refused(void **state)
{
    struct dp_error err = {0};
    struct dp_interactions in;
    struct dp_dataset_options day = options_of("monday", MONDAY);
    struct dp_dataset *dataset = NULL;
    keep(&day, NULL, 1);
    FILE *file = fopen(kept, "r+e");
    assert_non_null(file);
    char bytes[512];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size > 100 && size < sizeof bytes);
    assert_int_equal(fclose(file), 0);
    for (size_t at = 0; at < 2 * size; at++) {
        bytes[at % size] ^= (char)(at < size);
        (void)write_file("kept", bytes, at < size ? size : at - size);
        bytes[at % size] ^= (char)(at < size);
        if (dp_interactions_read(kept, &in, &err) != DP_DATA || !strstr(err.text, kept))
            fail_msg("%s %zu is accepted", at < size ? "a changed byte" : "a length of", at % size);
        dp_interactions_clear(&in);
    }
    day = options_of("tuesday", TUESDAY);
    day.interactions_path = kept;
    assert_int_equal(dp_dataset_open(&day, &dataset, &err), DP_DATA);
    assert_non_null(strstr(err.text, kept));
    assert_int_equal(unlink(kept), 0);
    assert_int_equal(dp_interactions_read(kept, &in, &err), DP_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FILES_TEST(a_second_day_adds_its_own),
                                       FILES_TEST(earlier_items_are_sampled),
                                       FILES_TEST(a_day_of_one_item_trains),
                                       FILES_TEST(held_out_ones_are_marked), FILES_TEST(damage_is_refused)};
    return cmocka_run_group_tests_name("interactions", tests, NULL, NULL);
}
