/* Goal    What is read is what was written, or it is refused: nothing between.
 * Method  One small file, read whole, cut at every byte, with every bit turned over; a writer whose disk is full. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/context/graph_fixture.h"
#include "worker/observe/samples.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAMES 3u
#define FLOATS 11u

static uint64_t thin_keys[] = {1, 7}, wide_keys[] = {0, 7, UINT64_MAX};

static struct dp_sample_keys keys_of(void)
{
    return (struct dp_sample_keys){.each = 320,
                                   .tables = 3,
                                   .table = {{.name = "thin", .dim = 1, .count = 2, .keys = thin_keys},
                                             {.name = "wide", .dim = 3, .count = 3, .keys = wide_keys},
                                             {.name = "none", .dim = 4}}};
}

static struct dp_sample sample_of(uint64_t i)
{
    return (struct dp_sample){.monotonic_ns = 100 + i,
                              .wall_ns = UINT64_MAX - i,
                              .began_ns = i == 0 ? 0 : 100,
                              .pushes = 10 * i,
                              .examples = 320 * i,
                              .by = i == 1 ? DP_SAMPLE_BY_TIME : DP_SAMPLE_BY_EXAMPLES};
}

static void rows_of(uint64_t i, float rows[FLOATS])
{
    for (uint32_t f = 0; f < FLOATS; f++)
        rows[f] = (float)(i * 100 + f) / 8;
}

static void write_samples(const char *path)
{
    const struct dp_sample_keys keys = keys_of();
    struct dp_samples_writer *writer;
    struct dp_error err = {0};
    float rows[FLOATS];
    assert_int_equal(dp_sample_keys_floats(&keys), FLOATS);
    if (dp_samples_writer_open(path, &keys, &writer, &err) != DP_OK)
        fail_msg("%s", err.text);
    for (uint64_t i = 0; i < FRAMES; i++) {
        const struct dp_sample sample = sample_of(i);
        rows_of(i, rows);
        assert_int_equal(dp_samples_writer_append(writer, &sample, rows, &err), DP_OK);
    }
    assert_int_equal(dp_samples_writer_count(writer), FRAMES);
    dp_samples_writer_close(&writer);
}

static void assert_frame(struct dp_samples_reader *reader, uint64_t i)
{
    struct dp_error err = {0};
    struct dp_sample got;
    const struct dp_sample want = sample_of(i);
    float rows[FLOATS], want_rows[FLOATS];
    rows_of(i, want_rows);
    if (dp_samples_reader_read(reader, i, &got, rows, &err) != DP_OK)
        fail_msg("frame %u: %s", (unsigned)i, err.text);
    assert_true(got.monotonic_ns == want.monotonic_ns && got.wall_ns == want.wall_ns);
    assert_true(got.began_ns == want.began_ns && got.pushes == want.pushes);
    assert_true(got.examples == want.examples && got.by == want.by);
    assert_memory_equal(rows, want_rows, sizeof rows);
}

static unsigned char *load(const char *path, size_t *size)
{
    struct stat is;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &is) == 0);
    *size = (size_t)is.st_size;
    unsigned char *bytes = malloc(*size);
    assert_true(read(fd, bytes, *size) == (ssize_t)*size);
    (void)close(fd);
    return bytes;
}

static void store(const char *path, const unsigned char *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    (void)close(fd);
}

static void test_what_is_read_was_written(void **state)
{
    char dir[] = "/tmp/dp_samples_XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/samples", dir);
    struct dp_sample_keys keys = keys_of(), read = {0};
    struct dp_samples_reader *reader;
    struct dp_error err = {0};
    assert_int_equal(dp_sample_keys_write(&keys, path, &err), DP_OK);
    assert_int_equal(dp_sample_keys_read(path, &read, &err), DP_OK);
    assert_true(dp_sample_keys_same(&keys, &read) && read.each == keys.each);
    read.table[1].keys[2]--;
    assert_false(dp_sample_keys_same(&keys, &read));
    dp_sample_keys_clear(&read);
    write_samples(path);
    assert_int_equal(dp_samples_reader_open(path, &reader, &err), DP_OK);
    assert_int_equal(dp_samples_reader_count(reader), FRAMES);
    assert_true(dp_sample_keys_same(&keys, dp_samples_reader_keys(reader)));
    for (uint64_t i = FRAMES; i-- > 0;)
        assert_frame(reader, i);
    dp_samples_reader_close(&reader);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(dp_samples_reader_open(path, &reader, &err), DP_NOT_FOUND);
    assert_int_equal(rmdir(dir), 0);
}

/* Whoever killed the writer, the frames that it had finished are there. */
static void test_cut_at_every_byte(void **state)
{
    char path[] = "/tmp/dp_samples_XXXXXX";
    int fd = mkstemp(path);
    size_t size;
    const struct dp_sample_keys keys = keys_of();
    write_samples(path);
    unsigned char *bytes = load(path, &size);
    struct dp_samples_reader *reader;
    size_t frame = 64 + FLOATS * 4 + 8, first = size - FRAMES * frame;
    assert_int_equal(first, 32 + 3 * 64 + 5 * 8 + 8);
    assert_int_equal(dp_sample_keys_first(&keys, 2), FLOATS);
    for (size_t cut = 0; cut <= size; cut++) {
        struct dp_error err = {0};
        store(path, bytes, cut);
        enum dp_status st = dp_samples_reader_open(path, &reader, &err);
        assert_int_equal(st, cut < first ? DP_DATA : DP_OK);
        if (st != DP_OK)
            continue;
        assert_int_equal(dp_samples_reader_count(reader), (cut - first) / frame);
        for (uint64_t i = 0; i < dp_samples_reader_count(reader); i++)
            assert_frame(reader, i);
        dp_samples_reader_close(&reader);
    }
    free(bytes);
    (void)close(fd);
    (void)unlink(path);
}

static void test_every_bit_counts(void **state)
{
    char path[] = "/tmp/dp_samples_XXXXXX";
    int fd = mkstemp(path);
    size_t size, frame = 64 + FLOATS * 4 + 8;
    write_samples(path);
    unsigned char *bytes = load(path, &size);
    size_t first = size - FRAMES * frame;
    for (size_t bit = 0; bit < size * 8; bit++) {
        struct dp_error err = {0};
        struct dp_samples_reader *reader;
        struct dp_sample sample;
        float rows[FLOATS];
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        store(path, bytes, size);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        enum dp_status st = dp_samples_reader_open(path, &reader, &err);
        assert_int_equal(st, bit / 8 < first ? DP_DATA : DP_OK);
        for (uint64_t i = 0; st == DP_OK && i < FRAMES; i++) {
            if (i != (bit / 8 - first) / frame)
                assert_frame(reader, i);
            else
                assert_int_equal(dp_samples_reader_read(reader, i, &sample, rows, &err), DP_CORRUPT);
        }
        dp_samples_reader_close(&reader);
    }
    free(bytes);
    (void)close(fd);
    (void)unlink(path);
}

static void limit_files(rlim_t bytes, struct rlimit *before)
{
    assert_int_equal(getrlimit(RLIMIT_FSIZE, before), 0);
    const struct rlimit now = {.rlim_cur = bytes, .rlim_max = before->rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
}

/* The frame that did not fit is not there, and the next one that fits is read behind the last whole one. */
static void test_full_disk(void **state)
{
    char path[] = "/tmp/dp_samples_XXXXXX";
    int fd = mkstemp(path);
    const struct dp_sample_keys keys = keys_of();
    struct rlimit before;
    struct dp_error err = {0};
    struct dp_samples_writer *writer;
    struct dp_samples_reader *reader;
    float rows[FLOATS];
    size_t first = 32 + 3 * 64 + 5 * 8 + 8, frame = 64 + FLOATS * 4 + 8;
    (void)signal(SIGXFSZ, SIG_IGN);
    limit_files(first - 1, &before);
    assert_int_equal(dp_samples_writer_open(path, &keys, &writer, &err), DP_FULL);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    for (size_t more = 1; more < frame; more += 9) {
        assert_int_equal(dp_samples_writer_open(path, &keys, &writer, &err), DP_OK);
        limit_files(first + frame + more, &before);
        for (uint64_t i = 0; i < 3; i++) {
            const struct dp_sample sample = sample_of(i ? 1 : 0);
            rows_of(i ? 1 : 0, rows);
            assert_int_equal(dp_samples_writer_append(writer, &sample, rows, &err), i == 1 ? DP_FULL : DP_OK);
            if (i == 1)
                assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        }
        dp_samples_writer_close(&writer);
        assert_int_equal(dp_samples_reader_open(path, &reader, &err), DP_OK);
        assert_int_equal(dp_samples_reader_count(reader), 2);
        assert_frame(reader, 0);
        assert_frame(reader, 1);
        dp_samples_reader_close(&reader);
    }
    (void)close(fd);
    (void)unlink(path);
}

static void test_fits_its_model_alone(void **state)
{
    struct dp_graph *graph = fixture_graph();
    struct dp_error err = {0};
    struct dp_sample_keys keys = {.tables = FIX_PARAMETERS};
    for (int p = 0; p < FIX_PARAMETERS; p++) {
        const struct dp_table_spec *spec = &dp_graph_parameter(graph, p)->table;
        (void)snprintf(keys.table[p].name, sizeof keys.table[p].name, "%s", spec->name);
        keys.table[p].dim = spec->dim;
    }
    assert_int_equal(dp_sample_keys_fit(&keys, graph, "f", &err), DP_OK);
    keys.table[1].dim++;
    assert_int_equal(dp_sample_keys_fit(&keys, graph, "f", &err), DP_DATA);
    keys.table[1].dim--;
    keys.table[2].name[0] = 'x';
    assert_int_equal(dp_sample_keys_fit(&keys, graph, "f", &err), DP_DATA);
    keys.tables = 2;
    assert_int_equal(dp_sample_keys_fit(&keys, graph, "f", &err), DP_DATA);
    dp_graph_free(&graph);
}

static void test_a_sample_is_due_at_the_next_multiple(void **state)
{
    struct dp_sample_keys keys = {.each = 10};
    assert_int_equal(dp_sample_keys_due(&keys, 0), 10);
    assert_int_equal(dp_sample_keys_due(&keys, 9), 10);
    assert_int_equal(dp_sample_keys_due(&keys, 10), 20);
    assert_int_equal(dp_sample_keys_due(&keys, 25), 30);
    assert_true(dp_sample_keys_due(&keys, UINT64_MAX) == UINT64_MAX);
    keys.each = 0;
    assert_true(dp_sample_keys_due(&keys, 9) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_sample_is_due_at_the_next_multiple),
                                       cmocka_unit_test(test_what_is_read_was_written),
                                       cmocka_unit_test(test_cut_at_every_byte),
                                       cmocka_unit_test(test_every_bit_counts),
                                       cmocka_unit_test(test_full_disk),
                                       cmocka_unit_test(test_fits_its_model_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
