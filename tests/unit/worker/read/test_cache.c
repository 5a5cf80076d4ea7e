/* Goal: a cache gives what decoding gives, or is made again: never anything else.
 * Method: data sets of each format are opened without a cache, with a new one and with one that is there; every byte of a
 * small cache file is flipped, every length cut; sources change in each way. */
#include "common/base/log.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"
#include "worker/read/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLICKS                                                                                               \
    "1\t1\t\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\ta\tb\tc\td\te\tf\tg\th\ti\tj\tk\tl\tm\tn\to\tp\tq\tr\ts\t" \
    "t\tu\tv\tw\tx\ty\t\n"

static const struct kind {
    const char *format, *text, *negatives;
    enum dp_data_form form;
    enum dp_labels labels;
    uint32_t width, fields;
} kinds[] = {
    {"libsvm", "1 3:1 9:2\n0\n1 2:0.5\n", NULL, DP_FORM_SPARSE, DP_LABELS_BINARY, 0, 0},
    {"libsvm", "1 3:1 9:2\n0\n1 2:0.5\n", NULL, DP_FORM_DENSE, DP_LABELS_BINARY, 9, 0},
    {"pairs", "1 2\n1 3\n2 2\n3 4\n", NULL, DP_FORM_PAIRS, DP_LABELS_BINARY, 0, 0},
    {"pairs", "1 2\n1 3\n2 2\n3 4\n", NULL, DP_FORM_TRIPLES, DP_LABELS_ANY, 0, 0},
    {"pairs", "1 2\n2 2\n", "(1,2) 7 8\n(2,2) 5\n", DP_FORM_PAIRS, DP_LABELS_BINARY, 0, 0},
    {"criteo", CLICKS CLICKS, NULL, DP_FORM_SPARSE, DP_LABELS_BINARY, 0, 0},
    {"criteo", CLICKS CLICKS, NULL, DP_FORM_TABLES, DP_LABELS_BINARY, 13, 26},
    {"csv", "y,a,b\n1,2,x\n0,3,\n", NULL, DP_FORM_FIELDS, DP_LABELS_BINARY, 1, 1},
    {"text", "to be or not to be", NULL, DP_FORM_WORDS, DP_LABELS_NONE, 0, 0},
    {"text", "to be or not to be", NULL, DP_FORM_WINDOWS, DP_LABELS_CLASS, 0, 3},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

struct place {
    char cache[192]; /* a new, empty folder */
    const char *path, *negatives;
};

static void place_open(struct place *place)
{
    (void)snprintf(place->cache, sizeof place->cache, "%s/cache", files_dir);
    remove_folder(place->cache);
    assert_int_equal(mkdir(place->cache, 0700), 0);
}

static struct dp_dataset_options options_of(struct place *place, const struct kind *kind)
{
    place->path = write_text("data", kind->text);
    place->negatives = kind->negatives ? write_text("negatives", kind->negatives) : NULL;
    return (struct dp_dataset_options){.path = place->path,
                                       .negatives_path = place->negatives,
                                       .format = kind->format,
                                       .form = kind->form,
                                       .labels = kind->labels,
                                       .classes = 256,
                                       .index_base = 1,
                                       .width = kind->width,
                                       .fields = kind->fields,
                                       .negatives = 2,
                                       .window = 2,
                                       .label = "y",
                                       .scale = 1,
                                       .batch = 2};
}

/* The only file of the cache's directory. */
static void cache_file(const struct place *place, char *out, size_t size)
{
    unsigned files = 0;
    DIR *dir = opendir(place->cache);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        if (entry->d_name[0] != '.') {
            (void)snprintf(out, size, "%s/%s", place->cache, entry->d_name);
            files++;
        }
    (void)closedir(dir);
    assert_int_equal(files, 1);
}

static ino_t inode(const struct place *place)
{
    char path[512];
    struct stat info;
    cache_file(place, path, sizeof path);
    assert_int_equal(stat(path, &info), 0);
    return info.st_ino;
}

/* With the cache as it is now, against decoding. */
static void check(struct dp_dataset_options options, const struct place *place)
{
    struct dp_dataset *decoded = formats_open(&options);
    options.cache = place->cache;
    struct dp_dataset *cached = formats_open(&options);
    assert_int_equal(dp_dataset_lists(decoded), dp_dataset_lists(cached));
    assert_memory_equal(dp_dataset_shape(decoded), dp_dataset_shape(cached), sizeof(struct dp_batch_shape));
    formats_same(decoded, cached, 0);
    formats_same(decoded, cached, 3);
    files_release(decoded);
    files_release(cached);
}

static void each_format_comes_back(void **state)
{
    for (size_t k = 0; k < KINDS; k++) {
        struct place place;
        place_open(&place);
        struct dp_dataset_options options = options_of(&place, &kinds[k]);
        check(options, &place);
        ino_t first = inode(&place);
        check(options, &place);
        assert_true(inode(&place) == first); /* it was used, not made again */
        options.batch = 1;                   /* what does not change the content does not change the cache */
        options.seed = 7;
        options.shuffle = true;
        check(options, &place);
        assert_true(inode(&place) == first);
    }
}

/* How often the cache file is mapped by this process. */
static unsigned mappings(const struct place *place)
{
    char path[512], line[1024];
    unsigned n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    cache_file(place, path, sizeof path);
    while (fgets(line, sizeof line, maps))
        n += strstr(line, path) != NULL;
    (void)fclose(maps);
    return n;
}

/* A share held out is of the file that is trained on: decoded once, the other part maps what the first left. */
static void both_parts_of_a_file_are_one_cache(void **state)
{
    struct place place;
    struct dp_dataset *train, *held;
    place_open(&place);
    struct dp_dataset_options options = options_of(&place, &kinds[0]);
    options.cache = place.cache;
    options.shuffle = true;
    options.held_out = 0.4;
    train = formats_open(&options);
    ino_t first = inode(&place);
    assert_int_equal(mappings(&place), 1);
    options.held = true;
    options.shuffle = false;
    held = formats_open(&options);
    assert_true(inode(&place) == first);
    assert_int_equal(mappings(&place), 2);
    assert_int_equal(dp_dataset_examples(train) + dp_dataset_examples(held), 3);
    files_release(train);
    files_release(held);
}

static void changed_sources_are_seen(void **state)
{
    struct place place;
    place_open(&place);
    struct dp_dataset_options options = options_of(&place, &kinds[4]);
    check(options, &place);
    ino_t before = inode(&place);
    (void)write_text("data", kinds[4].text); /* another time, the same bytes */
    check(options, &place);
    assert_true(inode(&place) == before);
    (void)write_text("negatives", "(1,2) 7 9\n(2,2) 5\n"); /* the same size */
    check(options, &place);
    assert_true(inode(&place) != before);
    before = inode(&place);
    (void)write_text("data", "1 2\n2  2\n");
    check(options, &place);
    assert_true(inode(&place) != before);
}

/* A format whose load finds its sources changed under it: pairs, and the one of them that is named. */
static const char *edit_path, *edit_text;
static bool edit_keeps_time;

static enum dp_status load_and_edit(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                                    struct dp_content *out, struct dp_error *err)
{
    struct stat before;
    enum dp_status st = dp_format_pairs.load(options, unpack, out, err);
    assert_int_equal(stat(edit_path, &before), 0);
    FILE *file = fopen(edit_path, "wb");
    assert_non_null(file);
    assert_int_equal(fputs(edit_text, file) < 0, 0);
    assert_int_equal(fclose(file), 0);
    struct timespec times[2] = {before.st_atim, before.st_mtim};
    if (edit_keeps_time)
        assert_int_equal(utimensat(AT_FDCWD, edit_path, times, 0), 0);
    return st;
}

static void get(const struct dp_dataset_options *options, const struct dp_format *format)
{
    struct dp_content content = {0};
    assert_int_equal(dp_cache_get(options, format, &content, NULL), DP_OK);
    dp_content_clear(&content);
}

/* What was decoded is of neither state of the sources then, and no cache may say that it is of the earlier one. */
static void a_source_that_changes_while_it_is_read_leaves_no_cache(void **state)
{
    static const struct {
        bool second, keeps_time;
        const char *text;
    } edits[] = {
        {false, false, "1 2\n2  2\n"},
        {false, true, "1 2\n2 3\n"}, /* the same size, the same time */
        {true, false, "(1,2) 7 8 9\n(2,2) 5\n"},
        {true, true, "(1,2) 7 9\n(2,2) 5\n"},
        {true, false, "(1,2) 7 8\n(2,2) 5\n"}, /* the same bytes: which ones were read nobody knows */
    };
    struct dp_format format = dp_format_pairs;
    format.load = load_and_edit;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct place place;
        place_open(&place);
        struct dp_dataset_options options = options_of(&place, &kinds[4]);
        options.cache = place.cache;
        edit_path = edits[i].second ? place.negatives : place.path;
        edit_text = edits[i].text;
        edit_keeps_time = edits[i].keeps_time;
        get(&options, &format);
        if (rmdir(place.cache) != 0)
            fail_msg("edit %zu left a cache file", i);
        assert_int_equal(mkdir(place.cache, 0700), 0);
    }
}

static void unfinished_files_are_swept(void **state)
{
    struct place place;
    place_open(&place);
    struct dp_dataset_options options = options_of(&place, &kinds[0]);
    (void)write_text("cache/0123456789abcdef.decoded.new-7-123456789", "cut off");
    check(options, &place);
    (void)inode(&place); /* one file */
}

/* Settings that change the content have a file of their own. */
static void settings_are_told_apart(void **state)
{
    struct place place;
    place_open(&place);
    struct dp_dataset_options options = options_of(&place, &kinds[5]);
    check(options, &place);
    options.hash_bits = 9;
    check(options, &place);
    options.scale = 2;
    check(options, &place);
    options.scored = true;
    check(options, &place);
}

static void write_bytes(const char *path, const unsigned char *bytes, size_t len)
{
    /* As a torn write would leave it: in place. The earlier mapping is closed. */
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void damaged_files_are_made_again(void **state)
{
    struct place place;
    char path[512];
    place_open(&place);
    struct dp_dataset_options options = options_of(&place, &kinds[2]);
    check(options, &place);
    cache_file(&place, path, sizeof path);
    FILE *file = fopen(path, "rb");
    static unsigned char good[4096], now[4096];
    size_t len = fread(good, 1, sizeof good, file);
    assert_int_equal(fclose(file), 0);
    assert_in_range(len, 500, sizeof good - 1);
    for (size_t i = 0; i < 2 * len; i++) {
        memcpy(now, good, len);
        now[i / 2] ^= (unsigned char)(i % 2 ? 0x80 : 1);
        write_bytes(path, now, i % 2 && i / 2 > 0 ? i / 2 : len); /* flipped, or cut (and flipped) */
        check(options, &place);
    }
    write_bytes(path, good, len);
    memcpy(now, good, len);
    write_bytes(path, now, len + 1);
    check(options, &place);
    file = fopen(path, "rb");
    assert_int_equal(fread(now, 1, sizeof now, file), len);
    assert_int_equal(fclose(file), 0);
}

static void a_cache_that_cannot_be_written_stops_nothing(void **state)
{
    struct place place;
    place_open(&place);
    struct dp_dataset_options options = options_of(&place, &kinds[0]);
    struct dp_dataset *dataset;
    static const char *const bad[] = {"/proc/none/cache", "/dev/null"};
    for (size_t i = 0; i < 2; i++) {
        options.cache = bad[i];
        dataset = formats_open(&options);
        assert_int_equal(dp_dataset_examples(dataset), 3);
        files_release(dataset);
    }
    /* What is wrong with the data is said as without a cache, and leaves none. */
    options.cache = place.cache;
    formats_refused(options, "1 3:1\n1 x\n", 2, DP_DATA, "index:value");
    assert_int_equal(rmdir(place.cache), 0);
    check(options, &place); /* made again */
}

struct opener {
    const struct dp_dataset_options *options;
    struct dp_dataset *dataset;
    enum dp_status st;
};

static void *open_one(void *context)
{
    struct opener *opener = context;
    opener->st = dp_dataset_open(opener->options, &opener->dataset, NULL);
    return NULL;
}

static void several_open_it_at_once(void **state)
{
    enum { OPENERS = 4 };
    for (int round = 0; round < 20; round++) {
        struct place place;
        struct opener openers[OPENERS];
        pthread_t threads[OPENERS];
        place_open(&place);
        struct dp_dataset_options options = options_of(&place, &kinds[1]);
        struct dp_dataset *decoded = formats_open(&options);
        options.cache = place.cache;
        for (int i = 0; i < OPENERS; i++) {
            openers[i] = (struct opener){.options = &options};
            assert_int_equal(pthread_create(&threads[i], NULL, open_one, &openers[i]), 0);
        }
        for (int i = 0; i < OPENERS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        (void)inode(&place); /* one file, no temporary one */
        for (int i = 0; i < OPENERS; i++) {
            assert_int_equal(openers[i].st, DP_OK);
            formats_same(decoded, openers[i].dataset, 0);
            dp_dataset_close(&openers[i].dataset);
        }
        files_release(decoded);
    }
}

int main(void)
{
    dp_log_start("test", DP_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        FILES_TEST(each_format_comes_back),
        FILES_TEST(both_parts_of_a_file_are_one_cache),
        FILES_TEST(changed_sources_are_seen),
        FILES_TEST(a_source_that_changes_while_it_is_read_leaves_no_cache),
        FILES_TEST(unfinished_files_are_swept),
        FILES_TEST(settings_are_told_apart),
        FILES_TEST(damaged_files_are_made_again),
        FILES_TEST(a_cache_that_cannot_be_written_stops_nothing),
        FILES_TEST(several_open_it_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
